// SPDX-License-Identifier: MIT

#include "session.hpp"

#include "common/text/format.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace tools {
namespace {

std::string device_name(int index) {
    if (index >= 0)
        return fmt::format("/dev/lite{}", index);
    const char* chosen = std::getenv("LITE_INDEX");
    return fmt::format("/dev/lite{}", chosen && *chosen ? chosen : "0");
}

}  // namespace

lite::context& session::node() {
    if (m_node)
        return *m_node;
    open();
    if (m_options.priority == LITE_PRIORITY_DEFAULT)
        return *m_node;
    try {
        lite::set_priority(*m_node, m_options.priority);
    } catch (const lite::error& e) {
        if (e.code().value() == EPERM)
            throw failure("--priority: this class is above your ceiling; see 'litectl qos show'");
        throw failure(fmt::format("--priority: {}", system_text(e.code().value())));
    }
    return *m_node;
}

void session::open() {
    try {
        m_node.emplace(m_env.open(m_options.index));
    } catch (const lite::error& e) {
        const auto device = device_name(m_options.index);
        switch (e.code().value()) {
            case ENODEV:
                throw failure(
                    fmt::format("{}: no such LITE node ('litectl start' makes one)", device));
            case EINVAL:
                throw failure("the environment variable LITE_INDEX is not the number of a node");
            case ENOMEM:
            case ENOTCONN:
            case EPROTONOSUPPORT:
                throw failure(fmt::format("{}: {}", device, e.code().message()));
            default:
                // Mostly failures of open(2): the system's text fits better.
                throw failure(fmt::format("{}: {}", device, system_text(e.code().value())));
        }
    }
}

failure explain(std::string_view verb, std::string_view name, const lite::error& e) {
    return failure(fmt::format("{} {}: {}", verb, printable(name), e.code().message()));
}

lite::region map_for(session& session, std::string_view verb, std::string_view name,
                     lite::rights rights) {
    auto& node = session.node();
    try {
        return node.map(name, rights);
    } catch (const lite::error& e) {
        throw explain(verb, name, e);
    }
}

void check_range(std::string_view verb, std::string_view name, std::uint64_t offset,
                 std::uint64_t length, std::uint64_t size) {
    if (length <= size && offset <= size - length)
        return;
    throw failure(fmt::format("{} {}: offset {} + length {} is beyond the end ({})", verb,
                              printable(name), offset, length, byte_count(size)));
}

}  // namespace tools
