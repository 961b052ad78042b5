// SPDX-License-Identifier: MIT
//
// litectl events.

#include "administration.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>

namespace tools {
namespace {

using clock = std::chrono::system_clock;

// RFC 3339: local time to the millisecond, with the offset from UTC.
std::string timestamp(clock::time_point now) {
    const auto ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() %
        1000;
    const auto local = fmt::localtime(clock::to_time_t(now));
    auto zone = fmt::format("{:%z}", local);
    if (zone.size() == 5)
        zone.insert(3, ":");
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}{}", local, ms, zone);
}

}  // namespace

int events_command(const surroundings& world, const show_arguments& args) {
    const auto channel = world.connect();
    const auto on_event = [&](const message& event) {
        const auto index = event.u32(LITE_A_INDEX).value_or(0);
        if (args.index && *args.index != index)
            return true;
        const auto id = event.u16(LITE_A_NODE_ID);
        const auto state = event.u8(LITE_A_STATE);
        const auto cause = event.u8(LITE_A_CAUSE);
        const auto figure = event.u64(LITE_A_FIGURE).value_or(0);
        const auto time = timestamp(clock::now());
        if (args.json) {
            nlohmann::ordered_json object;
            object["time"] = time;
            object["index"] = index;
            object["id"] = id ? nlohmann::ordered_json(*id) : nlohmann::ordered_json();
            object["state"] =
                state ? nlohmann::ordered_json(state_name(*state)) : nlohmann::ordered_json();
            if (cause) {
                object["cause"] = cause_name(*cause);
                object["figure"] = figure;
            }
            print_json(world.io.out, object, true);
        } else {
            const auto about = cause ? fmt::format("session with node {} ended by {} ({}), which",
                                                   id.value_or(0), cause_name(*cause), figure)
                                     : fmt::format("node {}", id.value_or(0));
            print(world.io.out, fmt::format("{} /dev/lite{}: {} is {}\n", time, index, about,
                                            state ? state_name(*state) : "?"));
        }
        return true;
    };
    channel->follow([] {}, on_event,
                    [&] {
                        complain(world.io.err, "litectl", "warning: some events were lost");
                        return true;
                    });
    return status_ok;
}

}  // namespace tools
