// SPDX-License-Identifier: MIT
//
// The commands of "lite" that serve functions and call them. The test plays the kernel.

#include "lite_machine.hpp"

#include "common/signals.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace std::string_literals;

namespace {

// A fake kernel with one function, for its callers and its server.
class functions {
  public:
    explicit functions(machine& lite) {
        lite.cluster.intercept = [this](unsigned long request, void* arg) {
            return answer(request, arg);
        };
    }

    // Requests for a server, in order.
    std::deque<std::string> requests;
    std::uint32_t request_flags = 0;
    // The server's replies, and their statuses.
    std::vector<std::string> replies;
    std::vector<std::uint32_t> statuses;
    // Errors of the wait for a request, each used once.
    std::deque<int> interruptions;
    std::deque<int> pauses;  // the same for the wait after an answer
    // Results of the first attempts to answer.
    std::deque<int> reply_errors;
    lite_ioc_rpc_register registered{};
    int register_error = 0;

    // The request of a caller, and its results.
    lite_ioc_rpc_call call{};
    std::string asked;
    std::string reply;
    std::uint32_t status = 0;
    int call_error = 0;
    lite_ioc_rpc_find find{};
    int find_error = 0;

  private:
    std::optional<int> answer(unsigned long request, void* arg) {
        switch (request) {
            case LITE_IOC_RPC_REGISTER:
                registered = *static_cast<lite_ioc_rpc_register*>(arg);
                static_cast<lite_ioc_rpc_register*>(arg)->function =
                    registered.function ? registered.function : 32768;
                return register_error;
            case LITE_IOC_RPC_RECV:
                return recv(*static_cast<lite_ioc_rpc_recv*>(arg));
            case LITE_IOC_RPC_FIND:
                find = *static_cast<lite_ioc_rpc_find*>(arg);
                static_cast<lite_ioc_rpc_find*>(arg)->function = 40000;
                return find_error;
            case LITE_IOC_RPC_CALL:
                return serve(*static_cast<lite_ioc_rpc_call*>(arg));
            default:
                return std::nullopt;
        }
    }

    int recv(lite_ioc_rpc_recv& r) {
        if (r.flags & (LITE_RPC_REPLY | LITE_RPC_REPLY_ONLY)) {
            // Each request is answered once.
            CHECK(r.token == m_taken);
            CHECK(m_taken != 0);
            const int error = reply_errors.empty() ? 0 : reply_errors.front();
            if (!reply_errors.empty())
                reply_errors.pop_front();
            if (error)
                return error;
            m_taken = 0;
            replies.emplace_back(reinterpret_cast<const char*>(r.reply), r.reply_len);
            statuses.push_back(r.status);
            r.answered = 1;
            interruptions.insert(interruptions.end(), pauses.begin(), pauses.end());
            pauses.clear();
        }
        r.token = 0;
        if (r.flags & LITE_RPC_REPLY_ONLY)
            return 0;
        // The wait is bounded, because a signal may come just before it.
        CHECK(r.timeout_ms > 0);
        if (!interruptions.empty()) {
            const int error = interruptions.front();
            interruptions.pop_front();
            return error;
        }
        CHECK_FALSE(requests.empty());
        if (requests.empty())
            return -ENODEV;
        const auto request = requests.front();
        requests.pop_front();
        CHECK(request.size() <= r.buf_len);
        std::memcpy(reinterpret_cast<void*>(r.buf), request.data(), request.size());
        r.length = static_cast<std::uint32_t>(request.size());
        r.node = 3;
        r.uid = 1001;
        r.gid = 1002;
        r.req_flags = request_flags;
        r.token = m_taken = request_flags & LITE_RPC_REQ_ONEWAY ? 0 : ++m_tokens;
        return 0;
    }

    int serve(lite_ioc_rpc_call& c) {
        call = c;
        asked.assign(reinterpret_cast<const char*>(c.request), c.request_len);
        c.reply_len = static_cast<std::uint32_t>(reply.size());
        c.status = status;
        if (!call_error && !(c.flags & LITE_RPC_ONEWAY)) {
            CHECK(reply.size() <= c.reply_room);
            std::memcpy(reinterpret_cast<void*>(c.reply), reply.data(), reply.size());
        }
        return call_error;
    }

    std::uint64_t m_tokens = 0;
    std::uint64_t m_taken = 0;
};

}  // namespace

TEST_CASE("lite: usage errors of serve, call, send, lock and barrier", "[lite][rpc]") {
    machine lite;
    check_usage(lite({"serve"}), "FUNCTION is required");
    check_usage(lite({"serve", "0"}), "FUNCTION: '0' is out of range (1..65535)");
    check_usage(lite({"serve", "65536"}), "FUNCTION: '65536' is out of range (1..65535)");
    check_usage(lite({"serve", "a\nb"}),
                "FUNCTION: 'a\\x0ab' is not a name: it has a control character");
    const std::string longest(LITE_FUNCTION_NAME_MAX, 'f');
    check_usage(lite({"serve", longest + "x"}),
                "FUNCTION: '" + longest + "x': longer than 63 bytes");
    check_usage(lite({"serve", "f", "--echo", "--exec", "cat"}), "--echo excludes --exec");
    check_usage(lite({"serve", "f", "--length", "67108865"}), "--length: more than 64M");
    check_usage(lite({"call", "1", "f", "--length", "65M"}), "--length: more than 64M");
    check_usage(lite({"serve", "f", "--ring", "4095"}), "--ring: must be 4K to 1M");
    check_usage(lite({"serve", "f", "--ring", "1025K"}), "--ring: must be 4K to 1M");
    check_usage(lite({"serve", "f", "--count", "0"}),
                "--count: '0' is out of range (1..18446744073709551615)");
    check_usage(lite({"serve", "f", "--mode", "0777"}),
                "--mode: '0777' has bits beyond 0666: LMRs can be read and written, nothing else");
    for (const char* verb : {"call", "send"}) {
        CAPTURE(verb);
        check_usage(lite({verb}), "NODE is required");
        check_usage(lite({verb, "1"}), "FUNCTION is required");
        check_usage(lite({verb, "1", "f", "--timeout", "0"}),
                    "--timeout: '0' is out of range (1..86400000 ms)");
        check_usage(lite({verb, "1", "f", "--timeout", "25h"}),
                    "--timeout: '25h' is out of range (1..86400000 ms)");
        CHECK(lite({verb, "1", "f", "data", "more"}).status == 2);
    }
    check_usage(lite({"send", "x", "f"}), "NODE: 'x' is not a number (decimal or 0x hexadecimal)");
    check_usage(lite({"send", "65536", "f"}), "NODE: '65536' is out of range (0..65535)");
    for (const char* nodes : {"x", "65536", "1,0", "1,,2", "1,"}) {
        CAPTURE(nodes);
        const auto r = lite({"call", nodes, "f"});
        CHECK(r.status == 2);
        CHECK_THAT(r.err, Catch::StartsWith("lite: NODE: '"s + nodes + "' is not a list of node"));
    }
    check_usage(lite({"lock"}), "NAME is required");
    check_usage(lite({"lock", "x"}), "OFFSET is required");
    check_usage(lite({"lock", "x", "0"}), "COMMAND is required");
    check_usage(lite({"lock", "x", "0", "--timeout", "soon", "--", "true"}),
                "--timeout: 'soon' is not a time (a number with ms, s, m or h; without, of "
                "milliseconds)");
    // In early versions this number was in seconds.
    check_usage(lite({"lock", "x", "0", "--timeout", "0.3", "--", "true"}),
                "--timeout: '0.3' lacks a unit, as in 0.3s or 0.3ms");
    check_usage(lite({"barrier", "x", "2", "--timeout", "2147484s"}),
                "--timeout: '2147484s' is out of range (0..86400000 ms)");
    check_usage(lite({"barrier", "x"}), "N is required");
    check_usage(lite({"barrier", "x", "0"}), "N: '0' is out of range (1..4096)");
    check_usage(lite({"barrier", "x", "4097"}), "N: '4097' is out of range (1..4096)");
    // Usage errors are found without a node.
    CHECK_FALSE(lite.opened);
    for (const char* command : {"serve", "call", "send", "lock", "barrier"}) {
        CAPTURE(command);
        CHECK(lite({"--help"}).out.find("  "s + command + ' ') != std::string::npos);
        CHECK(lite({command, "-h"}).status == 0);
    }
}

TEST_CASE("lite serve registers a function with the given options", "[lite][rpc]") {
    machine lite;
    functions f(lite);
    f.requests = {"x"};
    auto r = lite({"serve", "echo", "--echo", "--count", "1"});
    CHECK(r.status == 0);
    CHECK(r.err == "lite: serving function 32768\n");
    CHECK(f.registered.function == 0);
    CHECK(f.registered.name == "echo"s);
    CHECK(f.registered.mode == 0600);
    CHECK(f.registered.max_request == 4096);
    CHECK(f.registered.max_reply == 4096);
    CHECK(f.registered.ring_size == 0);
    CHECK(f.registered.flags == 0);

    f.requests = {"x"};
    check_silent(lite({"serve", "2000", "-eqs", "-c", "1", "-m", "0666", "-l", "64K", "-r", "1M"}));
    CHECK(f.registered.function == 2000);
    CHECK(f.registered.name == ""s);
    CHECK(f.registered.mode == 0666);
    CHECK(f.registered.max_request == LITE_RPC_BYTES_MAX);
    CHECK(f.registered.ring_size == LITE_RPC_RING_MAX);
    CHECK(f.registered.flags == LITE_RPC_SHARED);

    f.register_error = -EEXIST;
    check_failure(lite({"serve", "echo"}), "serve echo: its number or name is taken");
    f.register_error = -EPERM;
    check_failure(lite({"serve", "7"}), "serve 7: numbers up to 1023 are root's");
}

TEST_CASE("lite serve answers each request once", "[lite][rpc]") {
    machine lite;
    functions f(lite);
    // The server goes on after signals that have handlers, and after its own time-outs.
    f.interruptions = {-EINTR, -ETIMEDOUT};
    f.requests = {"one", "", "three"};
    check_silent(lite({"serve", "f", "-eq", "-c", "3"}));
    CHECK(f.replies == std::vector<std::string>{"one", "", "three"});
    CHECK(f.statuses == std::vector<std::uint32_t>{0, 0, 0});

    // The same if the next request comes later.
    f.replies.clear();
    f.requests = {"one", "two"};
    f.pauses = {-ETIMEDOUT, -EINTR};
    check_silent(lite({"serve", "f", "-eq", "-c", "2"}));
    CHECK(f.pauses.empty());
    CHECK(f.replies == std::vector<std::string>{"one", "two"});

    // Without --echo or --exec the server prints requests.
    f.replies.clear();
    f.requests = {"one ", "two"};
    const auto printed = lite({"serve", "f", "-q", "-c", "2"});
    CHECK(printed.status == 0);
    CHECK(printed.out == "one two");
    CHECK(f.replies == std::vector<std::string>{"", ""});

    // Messages get no answer.
    f.replies.clear();
    f.request_flags = LITE_RPC_REQ_ONEWAY;
    f.requests = {"hi", "ho"};
    CHECK(lite({"serve", "f", "-q", "-c", "2"}).out == "hiho");
    CHECK(f.replies.empty());

    f.interruptions = {-ENODEV};
    check_failure(lite({"serve", "f", "-q"}), "serve f: "s + lite_strerror(ENODEV));
}

TEST_CASE("lite serve ends after a signal", "[lite][rpc]") {
    machine lite;
    functions f(lite);
    f.requests = {"x"};
    lite.cluster.intercept = [&, next = lite.cluster.intercept](unsigned long request, void* arg) {
        if (request == LITE_IOC_RPC_RECV && f.requests.empty()) {
            ::raise(SIGTERM);
            f.interruptions = {-EINTR};
        }
        return next(request, arg);
    };
    try {
        lite({"serve", "f", "-eq"});
        FAIL("lite serve has not ended");
    } catch (const tools::interrupted& e) {
        CHECK(e.signal == SIGTERM);
    }
    CHECK(f.replies == std::vector<std::string>{"x"});
    CHECK(lite.cluster.open_files() == 0);
}

TEST_CASE("lite serve answers the request that it has executed, and then ends", "[lite][rpc]") {
    machine lite;
    functions f(lite);
    f.requests = {"x"};
    lite.cluster.intercept = [&, next = lite.cluster.intercept](unsigned long request, void* arg) {
        if (request == LITE_IOC_RPC_RECV && f.replies.empty() && !f.requests.empty())
            ::raise(SIGTERM);
        return next(request, arg);
    };
    CHECK_THROWS_AS(lite({"serve", "f", "-eq"}), tools::interrupted);
    CHECK(f.replies == std::vector<std::string>{"x"});
}

TEST_CASE("lite serve waits while memory is short", "[lite][rpc]") {
    machine lite;
    functions f(lite);
    f.requests = {"one", "two"};
    // Memory is short for a request, for an answer, and for the last answer.
    f.interruptions = {-ENOMEM, -ENOMEM};
    f.reply_errors = {-ENOMEM, 0, -ENOMEM};
    f.pauses = {-ENOMEM};
    check_silent(lite({"serve", "f", "-eq", "-c", "2"}));
    CHECK(f.replies == std::vector<std::string>{"one", "two"});
    CHECK(f.interruptions.empty());
    CHECK(f.reply_errors.empty());

    // A signal ends the retries.
    f.interruptions.assign(1000, -ENOMEM);
    lite.cluster.intercept = [next = lite.cluster.intercept](unsigned long request, void* arg) {
        if (request == LITE_IOC_RPC_RECV)
            ::raise(SIGTERM);
        return next(request, arg);
    };
    CHECK_THROWS_AS(lite({"serve", "f", "-eq"}), tools::interrupted);
    CHECK(f.interruptions.size() == 999);
}

TEST_CASE("lite serve --exec", "[lite][rpc]") {
    machine lite;
    functions f(lite);
    const auto serve = [&](const std::string& command, std::deque<std::string> requests,
                           const std::string& length = "4K") {
        f.replies.clear();
        f.statuses.clear();
        const auto count = std::to_string(requests.size());
        f.requests = std::move(requests);
        check_silent(lite({"serve", "f", "-q", "-l", length, "-c", count, "--exec", command}));
    };
    serve("tr a-z A-Z", {"shout", "", "more"});
    CHECK(f.replies == std::vector<std::string>{"SHOUT", "", "MORE"});
    CHECK(f.statuses == std::vector<std::uint32_t>{0, 0, 0});

    serve("echo $LITE_CALLER_NODE $LITE_CALLER_UID $LITE_CALLER_GID; exit 7", {"x"});
    CHECK(f.replies == std::vector<std::string>{"3 1001 1002\n"});
    CHECK(f.statuses == std::vector<std::uint32_t>{7});

    // The command dies of a signal.
    serve("kill -KILL $$", {"x"});
    CHECK(f.statuses == std::vector<std::uint32_t>{128 + SIGKILL});
    // The command does not exist.
    serve("/no/such/program 2>/dev/null", {"x"});
    CHECK(f.statuses == std::vector<std::uint32_t>{127});
    // The output is too long.
    serve("yes", {"x", "y"});
    CHECK(f.replies == std::vector<std::string>{"", ""});
    CHECK(f.statuses == std::vector<std::uint32_t>{126, 126});

    // The longest request and the longest reply, transferred at the same time.
    std::string all(LITE_RPC_BYTES_MAX, 'x');
    serve("cat", {all, all}, "64K");
    CHECK(f.replies == std::vector<std::string>{all, all});
    // A command need not read its input.
    serve("exec <&-; echo done", {all}, "64K");
    CHECK(f.replies == std::vector<std::string>{"done\n"});
}

TEST_CASE("lite serve --exec ends the command after a signal", "[lite][rpc]") {
    machine lite;
    functions f(lite);
    const std::string command = GENERATE(
        // The command's output is open; it is closed.
        "sleep 1000 & kill -TERM $PPID; wait", "exec >&-; sleep 1000 & kill -TERM $PPID; wait");
    CAPTURE(command);
    // All processes of the command have this pipe open.
    int alive[2];
    REQUIRE(::pipe2(alive, O_CLOEXEC) == 0);
    ::fcntl(alive[1], F_SETFD, 0);
    f.requests = {"x"};
    CHECK_THROWS_AS(lite({"serve", "f", "-q", "--exec", command}), tools::interrupted);
    CHECK(f.replies.empty());
    ::close(alive[1]);
    pollfd gone{alive[0], POLLIN, 0};
    CHECK(::poll(&gone, 1, 100000) == 1);
    CHECK(gone.revents == POLLHUP);
    ::close(alive[0]);
}

TEST_CASE("lite serve --exec: signals that the parent has left ignored", "[lite][rpc]") {
    machine lite;
    functions f(lite);
    const tools::signal_setting children(SIGCHLD, SIG_IGN);
    f.requests = {"x"};
    check_silent(lite({"serve", "f", "-q", "-c", "1", "--exec", "exit 5"}));
    CHECK(f.statuses == std::vector<std::uint32_t>{5});
    // The command must not inherit that lite ignores SIGPIPE.
    f.requests = {"x"};
    f.statuses.clear();
    check_silent(lite({"serve", "f", "-q", "-c", "1", "--exec", "kill -PIPE $$; exit 5"}));
    CHECK(f.statuses == std::vector<std::uint32_t>{128 + SIGPIPE});
    // Afterwards the settings are the old ones.
    struct sigaction action {};
    ::sigaction(SIGCHLD, nullptr, &action);
    CHECK(action.sa_handler == SIG_IGN);
    ::sigaction(SIGPIPE, nullptr, &action);
    CHECK(action.sa_handler == SIG_DFL);
}

TEST_CASE("lite call", "[lite][rpc]") {
    machine lite;
    functions f(lite);
    f.reply = "the reply";
    auto r = lite({"call", "3", "2000", "the request"});
    CHECK(r.status == 0);
    CHECK(r.out == "the reply");
    CHECK(r.err.empty());
    CHECK(f.asked == "the request");
    CHECK(f.call.node == 3);
    CHECK(f.call.function == 2000);
    CHECK(f.call.flags == 0);
    CHECK(f.call.timeout_ms == LITE_RPC_TIMEOUT_DEFAULT);
    CHECK(f.call.reply_room == LITE_RPC_BYTES_MAX);
    CHECK(f.find.size == 0);  // numbers are not looked up

    // The longest name, in four times as many characters.
    std::string escaped;
    for (int i = 0; i < LITE_FUNCTION_NAME_MAX; i++)
        escaped += "\\x66";
    CHECK(lite({"call", "3", escaped, "the request"}).out == "the reply");

    // By name, with standard input, and with an empty request.
    CHECK(lite({"call", "0", "echo", "-", "-t", "0.02s"}, "piped"s).out == "the reply");
    CHECK(f.find.node == 0);
    CHECK(f.find.name == "echo"s);
    CHECK(f.call.node == 0);
    CHECK(f.call.function == 40000);
    CHECK(f.call.timeout_ms == 20);
    CHECK(f.asked == "piped");
    CHECK(lite({"call", "0", "echo"}, "not this").status == 0);
    CHECK(f.asked.empty());
    // A word that looks like a list is one word.
    CHECK(lite({"call", "0", "echo", "[1,2]"}).status == 0);
    CHECK(f.asked == "[1,2]");
    // lite reads one byte more than a request may have.
    f.call_error = -E2BIG;
    check_failure(lite({"call", "0", "7", "-"}, std::string(LITE_RPC_BULK_MAX + 100, 'x')),
                  "call 7: longer than the function's requests, or replies, may be");
    CHECK(f.asked.size() == LITE_RPC_BULK_MAX + 1);

    f.call_error = -EACCES;
    check_failure(lite({"call", "0", "7"}), "call 7: permission denied by the function's mode");
    f.call_error = -ECONNREFUSED;
    check_failure(lite({"call", "0", "7"}), "call 7: no process serves that function there");
    f.call_error = 0;
    f.find_error = -ECONNREFUSED;
    check_failure(lite({"call", "0", "echo"}), "call echo: no process serves that function there");

    // The reply comes first, then the server's status.
    f.find_error = 0;
    f.status = 4;
    r = lite({"call", "0", "echo"});
    CHECK(r.out == "the reply");
    CHECK(r.status == 1);
    CHECK(r.err == "lite: call echo: the server says 4\n");
}

TEST_CASE("lite call of several nodes reports each failure with the texts for functions",
          "[lite][rpc]") {
    machine lite;
    std::uint64_t collected = 0;
    lite.cluster.intercept = [&](unsigned long request, void* arg) -> std::optional<int> {
        if (request == LITE_IOC_RPC_FIND) {
            auto& find = *static_cast<lite_ioc_rpc_find*>(arg);
            find.function = 40000;
            return find.node == 2 ? -ENAMETOOLONG : 0;
        }
        if (request == LITE_IOC_RPC_CALL)
            return 0;
        if (request != LITE_IOC_RPC_COLLECT)
            return std::nullopt;
        auto& ended = *static_cast<lite_ioc_rpc_collect*>(arg);
        ended.cookie = collected++;
        ended.error = ended.cookie ? -E2BIG : -EACCES;
        return 0;
    };
    const auto r = lite({"call", "2,3,4", "f", "x"});
    CHECK(r.status == 1);
    CHECK(r.err ==
          "lite: call f: node 2: name is too long (63 bytes at most)\n"
          "lite: call f: node 3: permission denied by the function's mode\n"
          "lite: call f: node 4: longer than the function's requests, or replies, may be\n"
          "lite: call f: 0 of 3 nodes have answered\n");
}

TEST_CASE("lite call of several nodes: each line of a reply has the id of its node",
          "[lite][rpc]") {
    machine lite;
    const std::vector<std::string> replies = {"one\n3: evil\n\nend", "", "\xff\r4: evil\n"};
    std::vector<lite_ioc_rpc_call> calls;
    std::size_t collected = 0;
    lite.cluster.intercept = [&](unsigned long request, void* arg) -> std::optional<int> {
        if (request == LITE_IOC_RPC_CALL) {
            calls.push_back(*static_cast<lite_ioc_rpc_call*>(arg));
            return 0;
        }
        if (request != LITE_IOC_RPC_COLLECT)
            return std::nullopt;
        auto& ended = *static_cast<lite_ioc_rpc_collect*>(arg);
        const auto& reply = replies[collected];
        std::memcpy(reinterpret_cast<void*>(calls[collected].reply), reply.data(), reply.size());
        ended.cookie = collected++;
        ended.reply_len = static_cast<std::uint32_t>(reply.size());
        return 0;
    };
    const auto r = lite({"call", "2,3,4", "7"});
    CHECK(r.status == 0);
    CHECK(r.out == "2: one\n2: 3: evil\n2: \n2: end\n3: \n4: \xff\r4: evil\n");

    calls.clear();
    collected = 0;
    const terminal screen;
    const capture err;
    lite.env.io = {0, screen.fd(), err.fd()};
    CHECK(tools::run_lite({"call", "2,3,4", "7"}, lite.env) == 0);
    CHECK(screen.take() == "2: one\n2: 3: evil\n2: \n2: end\n3: \n4: \\xff\\x0d4: evil\n");
}

TEST_CASE("lite call, serve: write errors are reported", "[lite][rpc]") {
    machine lite;
    functions f(lite);
    f.reply = "the reply";
    f.requests = {"one"};
    const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    REQUIRE(full >= 0);
    const capture err;
    lite.env.io = {0, full, err.fd()};
    CHECK(tools::run_lite({"call", "0", "7"}, lite.env) == 1);
    CHECK(tools::run_lite({"serve", "f", "-q"}, lite.env) == 1);
    const auto line = "lite: write error: No space left on device\n"s;
    CHECK(err.text() == line + line);
    ::close(full);
}

TEST_CASE("lite send", "[lite][rpc]") {
    machine lite;
    functions f(lite);
    check_silent(lite({"send", "2", "log", "a line", "--timeout", "100"}));
    CHECK(f.asked == "a line");
    CHECK(f.call.node == 2);
    CHECK(f.call.function == 40000);
    CHECK(f.call.flags == LITE_RPC_ONEWAY);
    CHECK(f.call.timeout_ms == 100);
    f.call_error = -ETIMEDOUT;
    check_failure(lite({"send", "2", "log"}), "send log: a node did not answer in time");
}

TEST_CASE("lite: names that look like lists", "[lite]") {
    machine lite;
    for (const char* name : {"a", "b", "[a,b]", "[]"})
        check_silent(lite({"alloc", name, "8"}));
    check_silent(lite({"free", "[a,b]", "[]"}));
    CHECK(lite.cluster.find("a"));
    CHECK(lite.cluster.find("b"));
    CHECK_FALSE(lite.cluster.find("[a,b]"));
    CHECK_FALSE(lite.cluster.find("[]"));
    check_usage(lite({"[x]"}), "'[x]' is not a command");
    check_usage(lite({"barrier", "a", "[1]"}),
                "N: '[1]' is not a number (decimal or 0x hexadecimal)");
}
