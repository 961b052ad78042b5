// SPDX-License-Identifier: MIT

#include "module.hpp"

#include "common/error.hpp"
#include "common/io.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tools {
namespace {

// exec() takes non-const words, but does not change them.
using argument_list = std::array<char*, 3>;

// The start of modprobe's output, less than 8 KB, and its status as of waitpid(2).
struct outcome {
    int error = 0;  // errno if it could not be started
    int status = 0;
    std::string said;
};

// Looks for it in PATH, then in /sbin, which a user's PATH may lack.
outcome run_modprobe() {
    std::string program = "modprobe";
    std::string fallback = "/sbin/modprobe";
    std::string name = "lite";
    argument_list words{program.data(), name.data(), nullptr};

    int ends[2];
    if (::pipe2(ends, O_CLOEXEC))
        return {errno, 0, {}};
    const unique_fd reading(ends[0]);
    unique_fd writing(ends[1]);

    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, writing.get(), 1);
    ::posix_spawn_file_actions_adddup2(&actions, writing.get(), 2);
    outcome result;
    pid_t child = -1;
    result.error =
        ::posix_spawnp(&child, program.c_str(), &actions, nullptr, words.data(), environ);
    if (result.error == ENOENT)
        result.error =
            ::posix_spawn(&child, fallback.c_str(), &actions, nullptr, words.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (result.error)
        return result;

    // While this end is open, read() sees no end of file.
    writing = unique_fd();
    std::array<char, 4096> chunk;
    for (;;) {
        const auto n = ::read(reading.get(), chunk.data(), chunk.size());
        if (n > 0 && result.said.size() < chunk.size())
            result.said.append(chunk.data(), static_cast<std::size_t>(n));
        else if (n == 0 || (n < 0 && errno != EINTR))
            break;
    }
    while (::waitpid(child, &result.status, 0) < 0 && errno == EINTR)
        ;
    return result;
}

}  // namespace

void load_module() {
    const auto outcome = run_modprobe();
    if (!outcome.error && WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0)
        return;

    std::string why;
    if (outcome.error)
        why = fmt::format(": {}", system_text(outcome.error));
    else if (const auto line = outcome.said.substr(0, outcome.said.find('\n')); !line.empty())
        why = fmt::format(" ({})", line);
    throw failure(
        fmt::format("the lite module is not loaded, and 'modprobe lite' failed{}; "
                    "try 'insmod PATH/lite.ko' as root",
                    why));
}

}  // namespace tools
