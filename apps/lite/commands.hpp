// SPDX-License-Identifier: MIT
//
// The commands of "lite": their options, and the functions that execute them. These return an exit
// status, or throw failure, usage_error or interrupted.
#pragma once

#include "copy/copy_file.hpp"
#include "copy/lmr_range.hpp"
#include "session.hpp"
#include "users.hpp"

#include "common/text/parse.hpp"

#include <cstddef>
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
// Continues after a failure, like rm.
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
    std::optional<std::string> data;  // "-", or neither data nor file: standard input
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

struct make_options {
    bool alloc = false;  // make the LMR to copy to
    std::vector<std::uint32_t> nodes;
    std::uint32_t mode = 0600;
};

struct put_arguments {
    std::string file;  // "-": standard input
    lmr_range to;
    make_options make;
    copy_options copy;
};
int put_command(session& session, const put_arguments& args);

struct get_arguments {
    lmr_range from;
    std::string file;  // "-": standard output
    copy_options copy;
};
int get_command(session& session, const get_arguments& args);

struct cp_arguments {
    std::vector<std::string> places;  // sources, then the target
    make_options make;
    copy_options copy;
};
// Continues after a failure, like cp(1).
int cp_command(session& session, const cp_arguments& args);

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
// status_failed also if the word was not replaced.
int compare_swap_command(session& session, const compare_swap_arguments& args);

struct grant_arguments {
    std::string name;
    std::uint32_t uid = 0;
    std::uint32_t node = lite::every_node;
    std::uint32_t rights = 0;
};
int grant_command(session& session, const grant_arguments& args);
// @args.rights must be 0.
int revoke_command(session& session, const grant_arguments& args);

struct grants_arguments {
    std::string name;
    bool json = false;
};
int grants_command(session& session, const grants_arguments& args);

struct chmod_arguments {
    mode_change mode;
    std::vector<std::string> names;
};
// These two continue after a failure, like chmod(1) and chown(1).
int chmod_command(session& session, const chmod_arguments& args);

struct chown_arguments {
    ownership to{};
    std::vector<std::string> names;
};
int chown_command(session& session, const chown_arguments& args);

struct rename_arguments {
    std::string name;
    std::string to;
};
int rename_command(session& session, const rename_arguments& args);

struct resize_arguments {
    std::string name;
    std::uint64_t size = 0;
};
int resize_command(session& session, const resize_arguments& args);

struct move_arguments {
    std::string name;
    std::uint32_t node = 0;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> length;  // none: to the end
    bool verbose = false;
    bool progress = true;
};
// An interruption takes effect between two steps; what was moved stays moved.
int move_command(session& session, const move_arguments& args);

struct word_arguments {
    std::string name;
    std::uint64_t offset = 0;
    std::uint64_t value = 0;
    bool hex = false;
};
int swap_command(session& session, const word_arguments& args);
int fetch_and_command(session& session, const word_arguments& args);
int fetch_or_command(session& session, const word_arguments& args);

struct set_arguments {
    std::string name;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> length;  // none: to the end
    std::vector<std::byte> pattern;
    bool progress = true;
};
int set_command(session& session, const set_arguments& args);

struct copy_arguments {
    std::string from;
    std::uint64_t from_offset = 0;
    std::string to;
    std::uint64_t to_offset = 0;
    std::uint64_t length = 0;
    bool progress = true;
};
int copy_command(session& session, const copy_arguments& args);

struct compare_arguments {
    std::string first;
    std::uint64_t first_offset = 0;
    std::string second;
    std::uint64_t second_offset = 0;
    std::uint64_t length = 0;
    bool quiet = false;
    bool progress = true;
};
// Returns as cmp(1): 1 means different, 2 an error.
int compare_command(session& session, const compare_arguments& args);

struct checksum_arguments {
    std::string name;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> length;  // none: to the end
    bool progress = true;
};
int checksum_command(session& session, const checksum_arguments& args);

// A function, by number or by name. parse_function() throws usage_error.
struct function_name {
    std::string text;  // as given
    std::string name;
    std::uint32_t number = 0;
};
function_name parse_function(std::string_view text);

struct serve_arguments {
    function_name function;
    bool echo = false;
    std::optional<std::string> exec;  // neither echo nor exec: requests go to standard output
    std::uint32_t mode = 0600;
    std::uint64_t max = 4096;
    std::uint64_t ring = 0;
    std::optional<std::uint64_t> count;  // none: until killed
    bool shared = false;
    bool quiet = false;
};
int serve_command(session& session, const serve_arguments& args);

struct call_arguments {
    std::vector<std::uint32_t> nodes;  // exactly one for send
    function_name function;
    std::optional<std::uint64_t> quorum;  // none: all nodes
    std::uint64_t room = LITE_RPC_BYTES_MAX;
    std::optional<std::string> data;  // "-": standard input; none: empty
    std::uint64_t timeout = LITE_RPC_TIMEOUT_DEFAULT;
};
int call_command(session& session, const call_arguments& args);
int send_command(session& session, const call_arguments& args);
struct lock_arguments {
    std::string name;
    std::uint64_t offset = 0;
    bool shared = false;
    std::optional<std::uint64_t> timeout_ms;  // 0: do not wait
    std::vector<std::string> command;
};
// Returns the program's exit status.
int lock_command(session& session, const lock_arguments& args);

struct barrier_arguments {
    std::string name;
    std::uint32_t n = 0;
    std::uint64_t offset = 0;
    bool create = false;
    std::uint32_t mode = 0600;
    std::optional<std::uint64_t> timeout_ms;
};
int barrier_command(session& session, const barrier_arguments& args);

}  // namespace tools
