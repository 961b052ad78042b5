// SPDX-License-Identifier: MIT
#include "workloads/restored.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace perf {

namespace {

// One shell executes all changes in order, so the last one restores the value. It survives what
// ends lite-perf, and notices that as the end of its input.
constexpr std::string_view script = R"(
trap '' INT TERM HUP QUIT PIPE
change() {{
    {{ {1}
    }} </dev/null >&2
}}
current='{0}'
while read -r value; do
    change
    status=$?
    [ $status -ne 0 ] || current=$value
    echo $status
done
value='{0}'
[ "$current" = "$value" ] || change
)";

pid_t start_shell(const std::string& text, int channel) {
    const char* const words[] = {"sh", "-c", text.c_str(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO})
        posix_spawn_file_actions_adddup2(&actions, channel, fd);
    pid_t pid = 0;
    const int error =
        posix_spawnp(&pid, words[0], &actions, nullptr, const_cast<char* const*>(words), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        throw std::system_error(error, std::generic_category(), "sh");
    return pid;
}

}  // namespace

Restored::Restored(std::string value, const std::string& change) : value_(std::move(value)) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        throw_errno("socketpair");
    channel_ = Fd(ends[0]);
    const Fd other(ends[1]);
    shell_ = start_shell(fmt::format(script, value_, change), other.get());
}

Restored::~Restored() {
    channel_ = Fd();
    while (waitpid(shell_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

bool Restored::set(const std::string& value) {
    if (value == value_)
        return true;
    std::string line = value + '\n';
    iovec part{line.data(), line.size()};
    send_all(channel_.get(), {&part, 1});
    std::string status;
    for (char c = 0; c != '\n'; status += c) {
        if (!receive_all(channel_.get(), bytes_of(c)))
            return false;
    }
    if (status != "0\n")
        return false;
    value_ = value;
    return true;
}

}  // namespace perf
