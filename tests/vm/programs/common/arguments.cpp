// SPDX-License-Identifier: MIT
#include "arguments.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <type_traits>

namespace lite_test {

namespace {

CLI::Option* add(CLI::App& app, const std::string& name, OptionTarget target,
                 const std::string& help) {
    return std::visit(
        [&](auto* value) {
            auto* option = app.add_option(name, *value, help);
            if constexpr (!std::is_arithmetic_v<std::remove_pointer_t<decltype(value)>> &&
                          !std::is_same_v<decltype(value), std::string*>)
                option->delimiter(',');
            return option;
        },
        target);
}

}  // namespace

Command& Command::option(const std::string& name, OptionTarget target, const std::string& help) {
    add(*app_, name, target, help);
    return *this;
}

Command& Command::required(const std::string& name, OptionTarget target, const std::string& help) {
    add(*app_, name, target, help)->required();
    return *this;
}

Command& Command::range(const std::string& name, OptionTarget target, double least, double most,
                        const std::string& help) {
    add(*app_, name, target, help)->check(CLI::Range(least, most));
    return *this;
}

Command& Command::flag(const std::string& name, bool& target, const std::string& help) {
    app_->add_flag(name, target, help);
    return *this;
}

Command& Command::several(const std::string& name, std::vector<std::string>& target) {
    app_->add_option(name, target)->required();
    return *this;
}

Command Command::command(const std::string& name, const std::string& help,
                         const std::function<void()>& chosen) {
    app_->require_subcommand(1);
    CLI::App* sub = app_->add_subcommand(name, help);
    if (chosen)
        sub->callback(chosen);
    return Command(*sub);
}

Command::operator bool() const { return app_->parsed(); }

std::shared_ptr<CLI::App> Arguments::make(const std::string& help) {
    return std::make_shared<CLI::App>(help);
}

void Arguments::parse(int argc, const char* const* argv) const {
    try {
        program_->parse(argc, argv);
    } catch (const CLI::Error& e) {
        std::exit(program_->exit(e));
    }
}

}  // namespace lite_test
