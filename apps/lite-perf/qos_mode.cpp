// SPDX-License-Identifier: MIT
#include "qos_mode.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace perf {

namespace {

struct CloseCommand {
    void operator()(std::FILE* command) const { pclose(command); }
};

std::string current_mode(unsigned index) {
    const std::unique_ptr<std::FILE, CloseCommand> show(
        popen(fmt::format("litectl qos show -j -i {}", index).c_str(), "re"));
    if (!show)
        throw_errno("litectl");
    std::string text;
    for (int c = std::getc(show.get()); c != EOF; c = std::getc(show.get()))
        text += static_cast<char>(c);
    const auto shown = nlohmann::json::parse(text, nullptr, false);
    if (!shown.is_object() || !shown.contains("mode"))
        throw std::runtime_error("litectl does not tell the scheduling mode of this node");
    return shown["mode"];
}

}  // namespace

QosMode::QosMode(unsigned index)
    : restored_(current_mode(index),
                fmt::format(R"(litectl qos set -i {} --mode "$value")", index)) {}

void QosMode::set(const std::string& mode) {
    if (!restored_.set(mode))
        throw std::runtime_error(fmt::format("the scheduling mode {} cannot be set", mode));
}

}  // namespace perf
