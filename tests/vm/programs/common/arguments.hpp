// SPDX-License-Identifier: MIT
// The command lines of these programs. CLI11 itself takes the compiler nine seconds in each file
// that includes it, so only options.cpp does.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lite_test {

// Where a value goes. It keeps what it has if the option is not given. Values of lists are
// separated by commas.
using OptionTarget =
    std::variant<int*, unsigned*, std::uint16_t*, std::uint64_t*, double*, std::string*,
                 std::vector<int>*, std::vector<unsigned>*, std::vector<std::uint64_t>*>;

// A program, or one of its commands. Targets must live until parse().
class Command {
  public:
    explicit Command(CLI::App& app) : app_(&app) {}

    // "--name VALUE", or an argument if @name has no dashes.
    Command& option(const std::string& name, OptionTarget target, const std::string& help = "");
    Command& required(const std::string& name, OptionTarget target, const std::string& help = "");
    // A number that is between @least and @most, both included.
    Command& range(const std::string& name, OptionTarget target, double least, double most,
                   const std::string& help = "");
    Command& flag(const std::string& name, bool& target, const std::string& help = "");
    // One or more arguments.
    Command& several(const std::string& name, std::vector<std::string>& target);

    // A command of this one, one of which must be given. @chosen is called if it is.
    Command command(const std::string& name, const std::string& help = "",
                    const std::function<void()>& chosen = {});
    // Whether this command was given.
    explicit operator bool() const;

  private:
    CLI::App* app_;
};

class Arguments : public Command {
  public:
    explicit Arguments(const std::string& help) : Arguments(make(help)) {}

    // Fills the targets. Ends the process if the command line is wrong or asks for help.
    void parse(int argc, const char* const* argv) const;

  private:
    explicit Arguments(std::shared_ptr<CLI::App> app) : Command(*app), program_(std::move(app)) {}
    static std::shared_ptr<CLI::App> make(const std::string& help);

    std::shared_ptr<CLI::App> program_;
};

}  // namespace lite_test
