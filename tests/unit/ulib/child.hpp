// SPDX-License-Identifier: MIT
//
// Children of fork(2), for tests.
#pragma once

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

// Runs @body in a child process. Returns its result; -1 if the child died of a signal.
int in_child(const auto& body) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        int result = 255;
        try {
            result = body();
        } catch (...) {  // NOLINT(bugprone-empty-catch): that is 255
        }
        ::_exit(result);
    }
    int status = 0;
    return pid > 0 && ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                             : -1;
}

// The result of in_child_of_same_pid() if namespaces cannot be made.
constexpr int no_namespaces = 77;

// Calls @make() in process 1 of a namespace, and @use() of its result in a child of that process,
// which is process 1 of another namespace. Returns the result of @use().
int in_child_of_same_pid(const auto& make, const auto& use) {
    return in_child([&] {
        if (::unshare(CLONE_NEWUSER | CLONE_NEWPID))
            return no_namespaces;
        return in_child([&] {
            auto made = make();
            if (::getpid() != 1 || ::unshare(CLONE_NEWPID))
                return no_namespaces;
            return in_child([&] { return ::getpid() == 1 ? use(made) : no_namespaces; });
        });
    });
}
