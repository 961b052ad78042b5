// SPDX-License-Identifier: MIT
//
// The command line of "lite", as documented in lite(1).

#include "commands.hpp"

#include "common/cli.hpp"
#include "common/text/format.hpp"
#include "common/text/parse.hpp"

#include "version.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace tools {
namespace {

constexpr auto times = "\nTimes: a number with ms, s, m or h; without, of milliseconds.";
constexpr auto sizes =
    "\nSizes and offsets: decimal or 0x hexadecimal, with K, M, G, T or P "
    "for powers of 1024.";

int parse_index(std::string_view text) {
    return static_cast<int>(parse_number(text, 0, (1 << 20) - 1));
}

std::uint32_t parse_class(std::string_view text) {
    return LITE_PRIORITY(static_cast<std::uint32_t>(parse_number(text, 0, LITE_PRIORITY_MAX - 1)));
}

std::uint32_t parse_node(std::string_view text) {
    return static_cast<std::uint32_t>(parse_number(text, 1, LITE_NODE_ID_MAX));
}

// Ids of the nodes to call, or 0: this node.
std::vector<std::uint32_t> parse_called(std::string_view text) {
    return text == "0" ? std::vector{std::uint32_t{0}} : parse_nodes(text);
}

std::uint32_t parse_participants(std::string_view text) {
    return static_cast<std::uint32_t>(parse_number(text, 1, LITE_BARRIER_MAX));
}

std::optional<std::uint64_t> parse_length(std::string_view text) {
    if (text == "all")
        return std::nullopt;
    return parse_size(text);
}

// Limit of a wait; 0: do not wait.
std::optional<std::uint64_t> parse_patience(std::string_view text) {
    return parse_time(text, 0, LITE_TIMEOUT_MAX);
}

class command_line {
  public:
    command_line(CLI::App& app, session& session) : m_app(app), m_session(session) {
        m_group = "Make, find and free LMRs";
        add_alloc();
        add_free();
        add_list();
        add_stat();
        m_group = "Read and write";
        add_write();
        add_read();
        add_put();
        add_get();
        add_cp();
        m_group = "Count and swap 8-byte words";
        add_fetch_add();
        add_compare_swap();
        add_word("swap", "NEW", "atomically replace an 8-byte word, print what it was",
                 "replace it by this", swap_command, m_swap);
        add_word("fetch-and", "MASK", "atomically clear bits of an 8-byte word, print what it was",
                 "bits that stay", fetch_and_command, m_fetch_and);
        add_word("fetch-or", "BITS", "atomically set bits of an 8-byte word, print what it was",
                 "bits to set", fetch_or_command, m_fetch_or);
        m_group = "Work on bytes where they are";
        add_set();
        add_copy();
        add_compare();
        add_checksum();
        m_group = "Change an LMR: name, length, place";
        add_rename();
        add_resize();
        add_move();
        m_group = "Say who may use it";
        add_grant();
        add_revoke();
        add_grants();
        add_chmod();
        add_chown();
        m_group = "Call functions and send messages";
        add_serve();
        add_call();
        add_send();
        m_group = "Wait for others";
        add_lock();
        add_barrier();
    }

    int execute() { return m_chosen(); }

  private:
    template <typename Arguments>
    CLI::App* add(const std::string& name, const std::string& description,
                  int (*command)(session&, const Arguments&), const Arguments& args) {
        auto* sub = m_app.add_subcommand(name, description)->group(m_group);
        sub->callback([this, command, &args] {
            m_chosen = [this, command, &args] { return command(m_session, args); };
        });
        return sub;
    }

    static void add_name(CLI::App* sub, std::string& target) {
        add_parsed(*sub, "NAME", parse_name, target, "name of the LMR")->required();
    }

    static void add_offset(CLI::App* sub, std::uint64_t& target, bool required = true) {
        add_parsed(*sub, "OFFSET", parse_size, target, "where in the LMR, in bytes")
            ->required(required);
    }

    void add_alloc() {
        auto* sub = add("alloc", "make an LMR of zeroed bytes", alloc_command, m_alloc);
        add_name(sub, m_alloc.name);
        add_parsed(*sub, "SIZE", parse_size, m_alloc.size, "its length in bytes")->required();
        add_parsed(*sub, "-n,--node", parse_nodes, m_alloc.nodes,
                   "ids of the nodes to spread it over, home first (default: this node)")
            ->type_name("N[,N...]");
        add_parsed(*sub, "-m,--mode", parse_mode, m_alloc.mode,
                   "permission bits in octal (default: 0600)")
            ->type_name("MODE");
        sub->footer(sizes);
    }

    void add_free() {
        auto* sub = add("free", "free LMRs, wherever they are mapped", free_command, m_free);
        add_names(sub, m_free.names);
    }

    void add_list() {
        auto* sub = add("ls", "list the LMRs of the cluster", list_command, m_list);
        sub->add_flag("-j,--json", m_list.json, "as JSON");
        sub->add_flag("-H,--human", m_list.human, "sizes like 1.5G");
    }

    void add_stat() {
        auto* sub = add("stat", "describe an LMR", stat_command, m_stat);
        add_name(sub, m_stat.name);
        sub->add_flag("-j,--json", m_stat.json, "as JSON");
    }

    void add_write() {
        auto* sub = add("write", "write to an LMR", write_command, m_write);
        add_name(sub, m_write.name);
        add_offset(sub, m_write.offset);
        auto* data =
            sub->add_option("DATA", m_write.data, "what to write; '-' or nothing: standard input");
        sub->add_option("-f,--file", m_write.file, "write what is in this file")
            ->type_name("FILE")
            ->excludes(data);
        add_no_progress(sub, m_write.progress);
        sub->footer(sizes);
    }

    void add_read() {
        auto* sub = add("read", "read from an LMR", read_command, m_read);
        add_name(sub, m_read.name);
        add_offset(sub, m_read.offset, false);
        add_parsed(*sub, "LENGTH", parse_length, m_read.length,
                   "how many bytes; 'all' or nothing: to the end");
        auto* hex = sub->add_flag("-x,--hex", m_read.hex, "show it as 'hexdump -C' does");
        auto* raw = sub->add_flag("-r,--raw", m_read.raw, "binary data to a terminal, too");
        auto* file =
            sub->add_option("-f,--file", m_read.file, "replace this file by it")->type_name("FILE");
        hex->excludes(raw)->excludes(file);
        raw->excludes(file);
        add_no_progress(sub, m_read.progress);
        sub->footer(sizes);
    }

    static void add_make(CLI::App* sub, make_options& target) {
        auto* alloc = sub->add_flag("-a,--alloc", target.alloc, "make the LMR");
        add_parsed(*sub, "-n,--node", parse_nodes, target.nodes,
                   "of one that is made: the nodes to spread it over, home first")
            ->type_name("N[,N...]")
            ->needs(alloc);
        add_parsed(*sub, "-m,--mode", parse_mode, target.mode,
                   "of one that is made: permission bits in octal (default: 0600)")
            ->type_name("MODE")
            ->needs(alloc);
    }

    static void add_copying(CLI::App* sub, copy_options& target) {
        sub->add_flag("-c,--checksum", target.checksum,
                      "afterwards compare both, by CRC-32C computed where they are");
        sub->add_flag("-r,--resume", target.resume,
                      "after an interruption: copy only what differs, by CRC-32C");
        add_no_progress(sub, target.progress);
        sub->footer(sizes);
    }

    void add_put() {
        auto* sub = add("put", "copy a file into an LMR", put_command, m_put);
        sub->add_option("FILE", m_put.file, "the file; '-': standard input")->required();
        add_parsed(*sub, "NAME", parse_range, m_put.to, "the LMR, and where in it: NAME[:OFFSET]")
            ->required();
        add_make(sub, m_put.make);
        add_copying(sub, m_put.copy);
    }

    void add_get() {
        auto* sub = add("get", "copy an LMR, or a part of it, into a file", get_command, m_get);
        add_parsed(*sub, "NAME", parse_source, m_get.from,
                   "the LMR, and which part of it: NAME[:OFFSET[:LENGTH]]")
            ->required();
        sub->add_option("FILE", m_get.file, "the file; '-': standard output")->required();
        add_copying(sub, m_get.copy);
    }

    void add_cp() {
        auto* sub = add("cp", "copy between files and LMRs, or between LMRs", cp_command, m_cp);
        // Sources and target are one argument: next to another, CLI11 would give it all words.
        sub->add_option("PLACE", m_cp.places,
                        "the sources, and last the target: files, and LMRs as "
                        "NAME:[OFFSET[:LENGTH]], with a colon before any slash; the target may "
                        "also be a directory, or ':', the LMRs of the files' names")
            ->required();
        add_make(sub, m_cp.make);
        add_copying(sub, m_cp.copy);
    }

    void add_fetch_add() {
        auto* sub = add("fetch-add", "atomically add to an 8-byte word, print what it was",
                        fetch_add_command, m_fetch_add);
        add_name(sub, m_fetch_add.name);
        add_offset(sub, m_fetch_add.offset);
        add_parsed(*sub, "VALUE", parse_addend, m_fetch_add.value, "what to add; may be negative")
            ->required();
        sub->add_flag("-x,--hex", m_fetch_add.hex, "print hexadecimal");
    }

    void add_compare_swap() {
        auto* sub = add("cas", "atomically replace an 8-byte word, print what it was",
                        compare_swap_command, m_compare_swap);
        add_name(sub, m_compare_swap.name);
        add_offset(sub, m_compare_swap.offset);
        add_parsed(*sub, "EXPECTED", parse_addend, m_compare_swap.expected,
                   "replace it only if it is this")
            ->required();
        add_parsed(*sub, "NEW", parse_addend, m_compare_swap.desired, "replace it by this")
            ->required();
        sub->add_flag("-x,--hex", m_compare_swap.hex, "print hexadecimal");
        sub->add_flag("-q,--quiet", m_compare_swap.quiet, "do not say that it was not replaced");
    }

    static void add_user(CLI::App* sub, grant_arguments& target) {
        add_parsed(*sub, "-u,--uid", parse_user, target.uid, "the user: a name or a number")
            ->type_name("U")
            ->required();
        add_parsed(*sub, "-n,--node", parse_node, target.node,
                   "only on the node of this id (default: on every node)")
            ->type_name("N");
    }

    void add_grant() {
        auto* sub = add("grant", "set the rights that a user has beside those of the mode",
                        grant_command, m_grant);
        add_name(sub, m_grant.name);
        add_user(sub, m_grant);
        add_parsed(*sub, "-r,--rights", parse_rights, m_grant.rights,
                   "some of r(ead), w(rite), a(tomic), s(hare), m(aster); they replace those "
                   "granted before")
            ->type_name("rwasm")
            ->required();
    }

    void add_revoke() {
        auto* sub = add("revoke", "take away what was granted to a user", revoke_command, m_revoke);
        add_name(sub, m_revoke.name);
        add_user(sub, m_revoke);
    }

    void add_grants() {
        auto* sub = add("grants", "show what was granted", grants_command, m_grants);
        add_name(sub, m_grants.name);
        sub->add_flag("-j,--json", m_grants.json, "as JSON");
    }

    // Unlike add_name(), does not check the names, so that a bad one does not stop the others.
    static void add_names(CLI::App* sub, std::vector<std::string>& target) {
        sub->add_option_function<std::vector<std::string>>(
               "NAME",
               [&target](const std::vector<std::string>& words) {
                   std::ranges::transform(words, std::back_inserter(target), unprintable);
               },
               "names of the LMRs")
            ->required();
    }

    void add_chmod() {
        auto* sub = add("chmod", "change the mode of LMRs", chmod_command, m_chmod);
        add_parsed(*sub, "MODE", parse_mode_change, m_chmod.mode,
                   "permission bits in octal, or changes like g+r,o=")
            ->required();
        add_names(sub, m_chmod.names);
    }

    void add_chown() {
        auto* sub = add("chown", "change owner or group of LMRs", chown_command, m_chown);
        add_parsed(*sub, "OWNER", parse_ownership, m_chown.to,
                   "OWNER, OWNER:GROUP or :GROUP, names or numbers")
            ->required();
        add_names(sub, m_chown.names);
    }

    void add_rename() {
        auto* sub = add("rename", "give an LMR another name", rename_command, m_rename);
        add_parsed(*sub, "OLD", parse_name, m_rename.name, "its name")->required();
        add_parsed(*sub, "NEW", parse_name, m_rename.to, "its name from then on")->required();
    }

    void add_resize() {
        auto* sub =
            add("resize", "make an LMR longer, by zeroes, or shorter", resize_command, m_resize);
        add_name(sub, m_resize.name);
        add_parsed(*sub, "SIZE", parse_size, m_resize.size, "its new length in bytes")->required();
        sub->footer(sizes);
    }

    void add_move() {
        auto* sub = add("move", "move an LMR, or a part of it, to another node's memory",
                        move_command, m_move);
        add_name(sub, m_move.name);
        add_parsed(*sub, "-n,--node", parse_node, m_move.node, "id of the node")
            ->type_name("N")
            ->required();
        add_parsed(*sub, "-o,--offset", parse_size, m_move.offset,
                   "where the part begins (default: 0)")
            ->type_name("OFFSET");
        add_parsed(*sub, "-l,--length", parse_length, m_move.length,
                   "how many bytes (default: to the end)")
            ->type_name("LENGTH");
        sub->add_flag("-v,--verbose", m_move.verbose, "say how much was moved");
        add_no_progress(sub, m_move.progress);
        sub->footer(sizes);
    }

    void add_word(const char* verb, const char* operand, const char* description, const char* what,
                  int (*command)(session&, const word_arguments&), word_arguments& args) {
        auto* sub = add(verb, description, command, args);
        add_name(sub, args.name);
        add_offset(sub, args.offset);
        add_parsed(*sub, operand, parse_addend, args.value, what)->required();
        sub->add_flag("-x,--hex", args.hex, "print hexadecimal");
    }

    void add_set() {
        auto* sub = add("set", "fill a part of an LMR with a pattern", set_command, m_set);
        add_name(sub, m_set.name);
        add_offset(sub, m_set.offset);
        add_parsed(*sub, "LENGTH", parse_length, m_set.length, "how many bytes; 'all': to the end")
            ->required();
        add_parsed(*sub, "PATTERN", parse_pattern, m_set.pattern,
                   "1 to 8 bytes, two hexadecimal digits each, the first byte first")
            ->required();
        add_no_progress(sub, m_set.progress);
        sub->footer(sizes);
    }

    void add_copy() {
        auto* sub = add("copy", "copy between LMRs, or within one", copy_command, m_copy);
        add_parsed(*sub, "SOURCE", parse_name, m_copy.from, "name of the LMR to copy from")
            ->required();
        add_parsed(*sub, "OFFSET", parse_size, m_copy.from_offset, "where in it, in bytes")
            ->required();
        add_parsed(*sub, "TARGET", parse_name, m_copy.to,
                   "name of the LMR to copy to; may be the same")
            ->required();
        add_parsed(*sub, "TO-OFFSET", parse_size, m_copy.to_offset, "where in that, in bytes")
            ->required();
        add_parsed(*sub, "LENGTH", parse_size, m_copy.length, "how many bytes")->required();
        add_no_progress(sub, m_copy.progress);
        sub->footer(sizes);
    }

    void add_compare() {
        auto* sub = add("cmp", "compare parts of LMRs", compare_command, m_compare);
        add_parsed(*sub, "NAME1", parse_name, m_compare.first, "name of an LMR")->required();
        add_parsed(*sub, "OFFSET1", parse_size, m_compare.first_offset, "where in it, in bytes")
            ->required();
        add_parsed(*sub, "NAME2", parse_name, m_compare.second, "name of another; may be the same")
            ->required();
        add_parsed(*sub, "OFFSET2", parse_size, m_compare.second_offset, "where in that, in bytes")
            ->required();
        add_parsed(*sub, "LENGTH", parse_size, m_compare.length, "how many bytes")->required();
        sub->add_flag("-q,--quiet", m_compare.quiet, "do not say where they differ");
        add_no_progress(sub, m_compare.progress);
        sub->footer(sizes);
    }

    void add_checksum() {
        auto* sub =
            add("checksum", "print the CRC-32C of a part of an LMR", checksum_command, m_checksum);
        add_name(sub, m_checksum.name);
        add_offset(sub, m_checksum.offset, false);
        add_parsed(*sub, "LENGTH", parse_length, m_checksum.length,
                   "how many bytes; 'all' or nothing: to the end");
        add_no_progress(sub, m_checksum.progress);
        sub->footer(sizes);
    }

    static void add_function(CLI::App* sub, function_name& target) {
        add_parsed(*sub, "FUNCTION", parse_function, target,
                   "its number (1 to 1023 are root's), or its name")
            ->required();
    }

    void add_serve() {
        auto* sub = add("serve", "serve a function until killed", serve_command, m_serve);
        add_function(sub, m_serve.function);
        auto* echo = sub->add_flag("-e,--echo", m_serve.echo, "answer with the request");
        sub->add_option("-x,--exec", m_serve.exec,
                        "run this by sh(1) for each request, which is its input; its output is "
                        "the reply, its exit status what the caller is told")
            ->type_name("COMMAND")
            ->excludes(echo);
        add_parsed(*sub, "-m,--mode", parse_mode, m_serve.mode,
                   "who may call, the w bits in octal (default: 0600)")
            ->type_name("MODE");
        add_parsed(
            *sub, "-l,--length",
            [](std::string_view text) {
                const auto n = parse_size(text);
                if (n > LITE_RPC_BULK_MAX)
                    throw usage_error("more than 64M");
                return n;
            },
            m_serve.max, "most bytes of requests and replies (default: 4K, at most 64M)")
            ->type_name("SIZE");
        add_parsed(
            *sub, "-r,--ring",
            [](std::string_view text) {
                const auto n = parse_size(text);
                if (n < LITE_RPC_RING_MIN || n > LITE_RPC_RING_MAX)
                    throw usage_error("must be 4K to 1M");
                return n;
            },
            m_serve.ring,
            "memory for calls in flight from each node (default: 16 of the longest calls, but 128K "
            "to 1M)")
            ->type_name("SIZE");
        add_parsed(
            *sub, "-c,--count",
            [](std::string_view text) { return std::optional(parse_number(text, 1)); },
            m_serve.count, "end after so many requests")
            ->type_name("N");
        sub->add_flag("-s,--shared", m_serve.shared, "others of this user may serve it, too");
        sub->add_flag("-q,--quiet", m_serve.quiet, "do not say which number it has");
        sub->footer(sizes);
    }

    void add_call() {
        auto* sub = add("call", "call a function of a node or of several, print the replies",
                        call_command, m_call);
        add_parsed(*sub, "NODE", parse_called, m_call.nodes,
                   "id of the node; 0: this one. Several with commas between them")
            ->required();
        add_request(sub, m_call);
        add_parsed(
            *sub, "-q,--quorum",
            [](std::string_view text) {
                return std::optional(parse_number(text, 1, LITE_RPC_LEGS_MAX));
            },
            m_call.quorum, "of several nodes, wait for so many only")
            ->type_name("N");
        add_parsed(
            *sub, "-l,--length",
            [](std::string_view text) {
                const auto n = parse_size(text);
                if (n > LITE_RPC_BULK_MAX)
                    throw usage_error("more than 64M");
                return n;
            },
            m_call.room, "most bytes of a reply (default: 64K, at most 64M)")
            ->type_name("SIZE");
        sub->footer(std::string(sizes) + times);
    }

    void add_send() {
        auto* sub = add("send", "send a function of a node a message", send_command, m_send);
        add_parsed(
            *sub, "NODE",
            [](std::string_view text) {
                return std::vector{
                    static_cast<std::uint32_t>(parse_number(text, 0, LITE_NODE_ID_MAX))};
            },
            m_send.nodes, "id of the node; 0: this one")
            ->required();
        add_request(sub, m_send);
        sub->footer(times);
    }

    static void add_request(CLI::App* sub, call_arguments& args) {
        add_function(sub, args.function);
        sub->add_option("DATA", args.data, "the request; '-': standard input (default: nothing)");
        add_parsed(
            *sub, "-t,--timeout",
            [](std::string_view text) { return parse_time(text, 1, LITE_TIMEOUT_MAX); },
            args.timeout, "how long to wait (default: 5s)")
            ->type_name("TIME");
    }

    void add_lock() {
        auto* sub = add("lock", "run a program while having a lock", lock_command, m_lock);
        add_name(sub, m_lock.name);
        add_offset(sub, m_lock.offset);
        add_parsed(*sub, "-t,--timeout", parse_patience, m_lock.timeout_ms,
                   "wait so long at most; 0: not at all")
            ->type_name("TIME");
        sub->add_flag("-s,--shared", m_lock.shared, "share the lock with other holders");
        sub->add_option("COMMAND", m_lock.command, "the program and its arguments, after '--'")
            ->required();
        sub->footer(std::string(sizes) + times);
    }

    void add_barrier() {
        auto* sub =
            add("barrier", "wait until that many participants wait", barrier_command, m_barrier);
        add_name(sub, m_barrier.name);
        add_parsed(*sub, "N", parse_participants, m_barrier.n, "how many, this one included")
            ->required();
        add_parsed(*sub, "-o,--offset", parse_size, m_barrier.offset,
                   "where in the LMR the barrier is, in bytes (default: 0)")
            ->type_name("OFFSET");
        auto* create = sub->add_flag("-c,--create", m_barrier.create,
                                     "make the LMR if there is none; it stays until it is freed");
        add_parsed(*sub, "-m,--mode", parse_mode, m_barrier.mode,
                   "of one that is made: permission bits in octal (default: 0600)")
            ->type_name("MODE")
            ->needs(create);
        add_parsed(*sub, "-t,--timeout", parse_patience, m_barrier.timeout_ms,
                   "wait so long at most")
            ->type_name("TIME");
        sub->footer(std::string(sizes) + times);
    }

    static void add_no_progress(CLI::App* sub, bool& progress) {
        sub->add_flag_callback(
            "--no-progress", [&progress] { progress = false; }, "no progress bar");
    }

    CLI::App& m_app;
    std::string m_group;  // heading in --help of the commands added next
    session& m_session;
    std::function<int()> m_chosen;
    alloc_arguments m_alloc;
    free_arguments m_free;
    list_arguments m_list;
    stat_arguments m_stat;
    write_arguments m_write;
    read_arguments m_read;
    put_arguments m_put;
    get_arguments m_get;
    cp_arguments m_cp;
    fetch_add_arguments m_fetch_add;
    compare_swap_arguments m_compare_swap;
    grant_arguments m_grant;
    grant_arguments m_revoke;
    grants_arguments m_grants;
    chmod_arguments m_chmod;
    chown_arguments m_chown;
    rename_arguments m_rename;
    resize_arguments m_resize;
    move_arguments m_move;
    word_arguments m_swap;
    word_arguments m_fetch_and;
    word_arguments m_fetch_or;
    set_arguments m_set;
    copy_arguments m_copy;
    compare_arguments m_compare;
    checksum_arguments m_checksum;
    serve_arguments m_serve;
    call_arguments m_call;
    call_arguments m_send;
    lock_arguments m_lock;
    barrier_arguments m_barrier;
};

}  // namespace

int run_lite(const arguments& words, const environment& env) {
    CLI::App app("Named memory on the machines of a LITE cluster.", "lite");
    session_options options;
    app.set_version_flag("-V,--version", "lite " LITE_VERSION, "print the version and exit");
    app.require_subcommand(1);
    app.fallthrough();
    add_parsed(app, "-i,--index", parse_index, options.index,
               "use /dev/liteN (default: LITE_INDEX in the environment, or 0)")
        ->type_name("N");
    add_parsed(app, "--priority", parse_class, options.priority,
               "class of what goes to other nodes: 0 (highest) to 7 (default: 4)")
        ->type_name("CLASS");

    session session(env, options);
    command_line commands(app, session);
    return run(app, words, env.io, [&] { return commands.execute(); });
}

}  // namespace tools
