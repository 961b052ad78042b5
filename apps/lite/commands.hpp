// SPDX-License-Identifier: MIT
//
// The commands of "lite": options as the command line left them, and the
// functions that do it. They return an exit status, or throw failure,
// usage_error or interrupted.
#pragma once

#include "session.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tools {

struct alloc_arguments {
    std::string name;
    std::uint64_t size = 0;
    std::vector<std::uint32_t> nodes;
    std::uint32_t mode = 0600;
};
int alloc_command(session& session, const alloc_arguments& args);

struct free_arguments {
    std::vector<std::string> names;
};
// Goes on after a failure, like rm.
int free_command(session& session, const free_arguments& args);

struct list_arguments {
    bool json = false;
    bool human = false;
};
int list_command(session& session, const list_arguments& args);

struct stat_arguments {
    std::string name;
    bool json = false;
};
int stat_command(session& session, const stat_arguments& args);

struct write_arguments {
    std::string name;
    std::uint64_t offset = 0;
    std::optional<std::string> data;  // "-": standard input, as when neither is given
    std::optional<std::string> file;
    bool progress = true;
};
int write_command(session& session, const write_arguments& args);

struct read_arguments {
    std::string name;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> length;  // none: to the end
    bool hex = false;
    bool raw = false;
    std::optional<std::string> file;
    bool progress = true;
};
int read_command(session& session, const read_arguments& args);

struct fetch_add_arguments {
    std::string name;
    std::uint64_t offset = 0;
    std::uint64_t value = 0;
    bool hex = false;
};
int fetch_add_command(session& session, const fetch_add_arguments& args);

struct compare_swap_arguments {
    std::string name;
    std::uint64_t offset = 0;
    std::uint64_t expected = 0;
    std::uint64_t desired = 0;
    bool hex = false;
    bool quiet = false;
};
// status_failed also when the word was something else.
int compare_swap_command(session& session, const compare_swap_arguments& args);

}  // namespace tools
