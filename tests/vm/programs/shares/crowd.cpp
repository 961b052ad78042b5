// SPDX-License-Identifier: MIT
// Many of the objects that the holder of a lock could have to look at:
//
//   crowd collect INDEX COUNT          begins COUNT calls, each of a group of its own, and has a
//                                      thread wait for each; prints the median nanoseconds of a
//                                      COLLECT that finds nothing, before and meanwhile
//   crowd line CLIENT SERVER NODE COUNT
//                                      begins COUNT calls of functions that answer none, more than
//                                      a user may have in flight; says "ready", and keeps them
//                                      until its input ends
//   crowd cancel CLIENT SERVER NODE COUNT
//                                      begins such calls through one open file, says "ready", waits
//                                      for a line, and cancels them
//   crowd recv INDEX COUNT             has COUNT threads wait for requests, and as many for calls,
//                                      of one open file; says "ready", and ends when the node stops
//   crowd names SERVER COUNT           serves COUNT functions with names; says "ready", and keeps
//                                      them until its input ends
//   crowd rings CLIENT SERVER NODE COUNT
//                                      calls COUNT functions, each of which has a small ring; says
//                                      "round 1"; and so on for each byte of input, until its end
//   crowd busy CLIENT SERVER NODE COUNT
//                                      begins a call of each of COUNT functions, which answer none;
//                                      says "ready", and keeps them until its input ends
//   crowd late CLIENT NODE COUNT       makes COUNT calls, one after the other, to a function of
//                                      `crowd line`; they time out
//   crowd find NODE COUNT              asks COUNT times for a function name that does not exist
//   crowd found INDEX NODE NAME        finds a function by name, says "found"; calls it after each
//                                      byte of input, and prints the errno, or 0
//   crowd poll SERVER COUNT            polls for requests to a function, while COUNT instances of
//                                      epoll(7) wait for them; says "ready", until it is killed
//   crowd call CLIENT NODE COUNT       calls that function
//   crowd echo CLIENT SERVER NODE COUNT
//                                      calls a function of its own, through another open file
//   crowd binds CLIENT NODE COUNT      begins COUNT calls with LITE_RPC_QUEUE, of as many
//                                      functions; says "ready", and keeps them until its input ends
//   crowd queued CLIENT SERVER NODE MILLISECONDS
//                                      makes such a call of a function of its own, with this
//                                      time-out; prints the errno that it ends with, or 0
//   crowd begin CLIENT NODE FUNCTION COUNT
//                                      begins so many calls of that function, as long as there is
//                                      room, prints how many, and keeps them until its input ends
//   crowd share SERVER COUNT           has COUNT open files serve one function; prints how many do,
//                                      and the errno of the next one
//   crowd map INDEX COUNT NODE...      makes COUNT LMRs of a page at each of these nodes, with the
//                                      first node as home, and opens them; says "ready", and keeps
//                                      them until its input ends
//   crowd claim INDEX NAME COUNT       prints the id of its process, and has COUNT threads make an
//                                      LMR of that name; prints how many made it, and how many
//                                      learned that it exists
//   crowd free INDEX COUNT             makes COUNT LMRs with names, says "ready", waits for a line,
//                                      frees one after the other, says "done", and waits for the
//                                      end of its input
//   crowd open INDEX PREFIX COUNT      opens the LMRs with the names PREFIX-0, PREFIX-1, ... again
//                                      and again; says "ready", and goes on until it is killed
//   crowd reopen INDEX NAME COUNT      opens an LMR COUNT times, one after the other; prints the id
//                                      of its process
//   crowd change INDEX WHAT            opens the LMR with the name WHAT, says "ready", waits for a
//                                      line, and does what the name says: chmod, grant or resize
//
// CLIENT and SERVER are indexes: /dev/lite<CLIENT> calls functions that are served through
// /dev/lite<SERVER>; NODE is the id of the server's node.
#include "common/raw.hpp"
#include "uapi/lite_rpc.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;
using lite_test::Device;
using lite_test::Errno;

constexpr std::uint32_t kMute = 2200;  // and the next ones
constexpr std::uint32_t kMutes = 3;
constexpr std::uint32_t kPolled = 2210;
constexpr std::uint32_t kEcho = 2211;
constexpr std::uint32_t kShared = 2212;
constexpr std::uint32_t kRings = 3000;  // and the next ones
constexpr int kRounds = 201;

void succeed(Errno result, const char* what) {
    if (result.value)
        throw std::runtime_error(std::string(what) + ": " + std::strerror(result.value));
}

void say(const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
}

void await_end_of_input() {
    char c;
    while (::read(0, &c, 1) > 0) {
    }
}

Errno serve(const Device& device, std::uint32_t function, std::uint32_t flags = 0,
            const std::string& name = {}, std::uint32_t ring_size = 0) {
    lite_ioc_rpc_register args{};
    args.size = sizeof(args);
    args.flags = flags;
    args.function = function;
    args.mode = 0666;
    args.max_request = 8;
    args.max_reply = 8;
    args.ring_size = ring_size;
    name.copy(args.name, sizeof(args.name) - 1);
    return device.call(LITE_IOC_RPC_REGISTER, &args);
}

// Takes a request, if there is one, and answers it.
bool answer(const Device& device, int timeout_ms) {
    std::uint64_t word = 0;
    lite_ioc_rpc_recv args{};
    args.size = sizeof(args);
    args.buf = reinterpret_cast<std::uintptr_t>(&word);
    args.buf_len = sizeof(word);
    args.timeout_ms = timeout_ms;
    if (device.call(LITE_IOC_RPC_RECV, &args).value)
        return false;
    args.flags = LITE_RPC_REPLY_ONLY;
    succeed(device.call(LITE_IOC_RPC_RECV, &args), "reply");
    return true;
}

lite_ioc_rpc_call call_args(std::uint32_t node, std::uint32_t function) {
    lite_ioc_rpc_call args{};
    args.size = sizeof(args);
    args.node = node;
    args.function = function;
    args.timeout_ms = LITE_FOREVER;
    return args;
}

void begin(const Device& device, std::uint32_t node, std::uint32_t function, std::uint32_t group,
           std::int32_t timeout_ms = LITE_FOREVER) {
    auto args = call_args(node, function);
    args.timeout_ms = timeout_ms;
    args.flags = LITE_RPC_ASYNC | LITE_RPC_QUEUE;
    args.group = group;
    succeed(device.call(LITE_IOC_RPC_CALL, &args), "call");
}

lite_ioc_rpc_collect collect_args(std::uint32_t group, std::uint32_t flags) {
    lite_ioc_rpc_collect args{};
    args.size = sizeof(args);
    args.flags = flags;
    args.timeout_ms = LITE_FOREVER;
    args.group = group;
    return args;
}

// The median time of a COLLECT of a group without calls, in nanoseconds.
long median_of_nothing(const Device& device) {
    std::vector<long> took;
    for (int i = 0; i < kRounds; i++) {
        auto args = collect_args(1'000'000'000, LITE_RPC_NOWAIT);
        const auto begun = Clock::now();
        const auto result = device.call(LITE_IOC_RPC_COLLECT, &args);
        took.push_back((Clock::now() - begun) / std::chrono::nanoseconds(1));
        if (result.value != ENOENT)
            throw std::runtime_error("there was something to collect");
    }
    std::nth_element(took.begin(), took.begin() + kRounds / 2, took.end());
    return took[kRounds / 2];
}

// Whether all other threads sleep.
bool others_sleep() {
    const auto self = std::to_string(::gettid());
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream file(entry.path() / "stat");
        std::string number, name, state;
        file >> number >> name >> state;
        if (number != self && state != "S")
            return false;
    }
    return true;
}

int collect(unsigned index, std::uint32_t count) {
    const Device server(index), client(index);
    succeed(serve(server, kMute), "register");
    const long alone = median_of_nothing(client);
    std::vector<std::thread> threads;
    for (std::uint32_t group = 1; group <= count; group++) {
        begin(client, 0, kMute, group);
        threads.emplace_back([&client, group] {
            auto args = collect_args(group, 0);
            (void)client.call(LITE_IOC_RPC_COLLECT, &args);
        });
    }
    while (!others_sleep())
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const long beside = median_of_nothing(client);
    for (std::uint32_t group = 1; group <= count; group++) {
        auto args = collect_args(group, LITE_RPC_CANCEL);
        succeed(client.call(LITE_IOC_RPC_COLLECT, &args), "cancel");
    }
    for (auto& thread : threads)
        thread.join();
    say(std::to_string(alone) + " " + std::to_string(beside));
    return 0;
}

// Begins COUNT calls, of so many functions in turn, and keeps them until the input ends.
void keep_calls(unsigned here, std::uint32_t node, std::uint32_t count, std::uint32_t first,
                std::uint32_t functions) {
    std::vector<Device> clients;
    for (std::uint32_t i = 0; i < count; i++) {
        if (i % LITE_RPC_ASYNC_MAX == 0)
            clients.emplace_back(here);
        begin(clients.back(), node, first + i % functions, 0);
    }
    say("ready");
    await_end_of_input();
}

int line(unsigned here, unsigned there, std::uint32_t node, std::uint32_t count) {
    const Device server(there);
    for (std::uint32_t i = 0; i < kMutes; i++)
        succeed(serve(server, kMute + i), "register");
    keep_calls(here, node, count, kMute, kMutes);
    return 0;
}

int cancel(unsigned here, unsigned there, std::uint32_t node, std::uint32_t count) {
    const Device server(there), client(here);
    succeed(serve(server, kMute), "register");
    for (std::uint32_t i = 0; i < count; i++)
        begin(client, node, kMute, 1);
    say("ready");
    await_end_of_input();
    auto args = collect_args(1, LITE_RPC_CANCEL);
    succeed(client.call(LITE_IOC_RPC_COLLECT, &args), "cancel");
    return 0;
}

int recv(unsigned index, int count) {
    const Device server(index), device(index);
    succeed(serve(server, kMute), "register");
    succeed(serve(device, kMute + 1), "register");
    begin(device, 0, kMute, 1);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++) {
        threads.emplace_back([&device] { answer(device, LITE_FOREVER); });
        threads.emplace_back([&device] {
            auto args = collect_args(1, 0);
            (void)device.call(LITE_IOC_RPC_COLLECT, &args);
        });
    }
    while (!others_sleep())
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    say("ready");
    for (auto& thread : threads)
        thread.join();
    return 0;
}

int names(unsigned index, std::uint32_t count) {
    std::vector<Device> servers;
    for (std::uint32_t i = 0; i < count; i++) {
        if (i % LITE_RPC_FUNCTIONS_MAX == 0)
            servers.emplace_back(index);
        succeed(serve(servers.back(), 0, 0, "crowd-" + std::to_string(i)), "register");
    }
    say("ready");
    await_end_of_input();
    return 0;
}

// Functions with small rings.
std::vector<Device> serve_rings(unsigned there, std::uint32_t count) {
    std::vector<Device> servers;
    for (std::uint32_t i = 0; i < count; i++) {
        if (i % LITE_RPC_FUNCTIONS_MAX == 0)
            servers.emplace_back(there);
        succeed(serve(servers.back(), kRings + i, 0, {}, 4096), "register");
    }
    return servers;
}

int busy(unsigned here, unsigned there, std::uint32_t node, std::uint32_t count) {
    const auto servers = serve_rings(there, count);
    keep_calls(here, node, count, kRings, count);
    return 0;
}

int rings(unsigned here, unsigned there, std::uint32_t node, std::uint32_t count) {
    const Device client(here);
    const auto servers = serve_rings(there, count);
    for (int round = 1;; round++) {
        for (std::uint32_t i = 0; i < count; i++) {
            auto args = collect_args(1, 0);
            begin(client, node, kRings + i, 1);
            answer(servers[i / LITE_RPC_FUNCTIONS_MAX], LITE_FOREVER);
            succeed(client.call(LITE_IOC_RPC_COLLECT, &args), "collect");
        }
        say("round " + std::to_string(round));
        char c;
        if (::read(0, &c, 1) != 1)
            return 0;
    }
}

int late(unsigned index, std::uint32_t node, int count) {
    const Device client(index);
    for (int i = 0; i < count; i++) {
        auto args = call_args(node, kMute);
        args.timeout_ms = 1;
        if (client.call(LITE_IOC_RPC_CALL, &args).value != ETIMEDOUT)
            throw std::runtime_error("a call did not time out");
    }
    return 0;
}

int find(std::uint32_t node, int count) {
    const Device device(0);
    for (int i = 0; i < count; i++) {
        lite_ioc_rpc_find args{};
        args.size = sizeof(args);
        args.node = node;
        std::string("crowd").copy(args.name, sizeof(args.name) - 1);
        if (device.call(LITE_IOC_RPC_FIND, &args).value != ECONNREFUSED)
            throw std::runtime_error("it is found");
    }
    return 0;
}

int poll(unsigned index, int count) {
    rlimit files{};
    files.rlim_cur = files.rlim_max = static_cast<rlim_t>(count) + 100;
    if (::setrlimit(RLIMIT_NOFILE, &files))
        throw std::runtime_error("no more files");
    const Device device(index);
    succeed(serve(device, kPolled), "register");
    for (int i = 0; i < count; i++) {
        epoll_event event{};
        event.events = EPOLLIN;
        const int fd = ::epoll_create1(0);
        if (fd < 0 || ::epoll_ctl(fd, EPOLL_CTL_ADD, device.fd(), &event))
            throw std::runtime_error("epoll");
    }
    say("ready");
    for (;;) {
        while (answer(device, LITE_NOWAIT)) {
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

int call(unsigned index, std::uint32_t node, int count, std::uint32_t function) {
    const Device device(index);
    for (int i = 0; i < count; i++) {
        auto args = call_args(node, function);
        succeed(device.call(LITE_IOC_RPC_CALL, &args), "call");
    }
    return 0;
}

int binds(unsigned here, std::uint32_t node, std::uint32_t count) {
    keep_calls(here, node, count, kRings, count);
    return 0;
}

int queued(unsigned here, unsigned there, std::uint32_t node, std::int32_t timeout_ms) {
    const Device client(here), server(there);
    succeed(serve(server, kEcho), "register");
    begin(client, node, kEcho, 1, timeout_ms);
    std::thread serving([&] { answer(server, timeout_ms); });
    auto args = collect_args(1, 0);
    succeed(client.call(LITE_IOC_RPC_COLLECT, &args), "collect");
    serving.join();
    say(std::to_string(args.error));
    return 0;
}

int found(unsigned index, std::uint32_t node, const std::string& name) {
    const Device device(index);
    lite_ioc_rpc_find find{};
    find.size = sizeof(find);
    find.node = node;
    name.copy(find.name, sizeof(find.name) - 1);
    succeed(device.call(LITE_IOC_RPC_FIND, &find), "find");
    say("found");
    char c;
    while (::read(0, &c, 1) == 1) {
        auto args = call_args(node, find.function);
        args.timeout_ms = LITE_FOREVER;
        say(std::to_string(device.call(LITE_IOC_RPC_CALL, &args).value));
    }
    return 0;
}

int begin_many(unsigned here, std::uint32_t node, std::uint32_t function, int count) {
    const Device client(here);
    auto args = call_args(node, function);
    args.timeout_ms = LITE_FOREVER;
    args.flags = LITE_RPC_ASYNC | LITE_RPC_NOWAIT;
    char reply[64];
    args.reply = reinterpret_cast<std::uintptr_t>(reply);
    args.reply_room = sizeof(reply);
    int begun = 0;
    Errno result;
    while (begun < count && !(result = client.call(LITE_IOC_RPC_CALL, &args)).value)
        begun++;
    if (begun < count && result.value != EAGAIN)
        succeed(result, "call");
    say(std::to_string(begun));
    await_end_of_input();
    return 0;
}

int echo(unsigned here, unsigned there, std::uint32_t node, int count) {
    const Device server(there);
    succeed(serve(server, kEcho), "register");
    std::thread serving([&] {
        for (int i = 0; i < count; i++)
            answer(server, LITE_FOREVER);
    });
    const int result = call(here, node, count, kEcho);
    serving.join();
    return result;
}

int share(unsigned index, int count) {
    rlimit files{};
    files.rlim_cur = files.rlim_max = static_cast<rlim_t>(count) + 100;
    if (::setrlimit(RLIMIT_NOFILE, &files))
        throw std::runtime_error("no more files");
    std::vector<Device> servers;
    Errno result;
    while (!result.value && static_cast<int>(servers.size()) < count) {
        servers.emplace_back(index);
        result = serve(servers.back(), kShared, LITE_RPC_SHARED);
    }
    say(std::to_string(servers.size() - (result.value ? 1 : 0)) + " " +
        std::to_string(result.value));
    return 0;
}

int map(unsigned index, int count, const std::vector<std::uint32_t>& nodes) {
    const Device device(index);
    for (int i = 0; i < count; i++) {
        auto args = lite_test::alloc_args("", 4096 * nodes.size());
        lite_test::set_nodes(args, nodes);
        succeed(device.call(LITE_IOC_ALLOC, &args), "alloc");
    }
    say("ready");
    await_end_of_input();
    return 0;
}

int claim(unsigned index, const std::string& name, int count) {
    const Device device(index);
    std::atomic<int> made = 0;
    std::atomic<int> exists = 0;
    std::vector<std::thread> threads;
    say(std::to_string(::getpid()));
    for (int i = 0; i < count; i++) {
        threads.emplace_back([&] {
            auto args = lite_test::alloc_args(name, 4096);
            const auto result = device.call(LITE_IOC_ALLOC, &args);
            made += result.value == 0;
            exists += result.value == EEXIST;
        });
    }
    for (auto& thread : threads)
        thread.join();
    say(std::to_string(made) + " " + std::to_string(exists));
    return 0;
}

int free(unsigned index, int count) {
    const Device device(index);
    std::vector<std::uint64_t> handles;
    for (int i = 0; i < count; i++) {
        auto args = lite_test::alloc_args("freed-" + std::to_string(i), 4096);
        succeed(device.call(LITE_IOC_ALLOC, &args), "alloc");
        handles.push_back(args.lh);
    }
    say("ready");
    char c;
    if (::read(0, &c, 1) != 1)
        return 1;
    for (const auto lh : handles) {
        auto args = lite_test::free_args(lh);
        succeed(device.call(LITE_IOC_FREE, &args), "free");
    }
    say("done");
    await_end_of_input();
    return 0;
}

void open_and_close(const Device& device, const std::string& name) {
    auto map = lite_test::map_args(name, LITE_RIGHT_READ);
    succeed(device.call(LITE_IOC_MAP, &map), "map");
    auto unmap = lite_test::unmap_args(map.lh);
    succeed(device.call(LITE_IOC_UNMAP, &unmap), "unmap");
}

// Each of many threads opens a few, so that it opens each of them often.
int open(unsigned index, const std::string& prefix, int count) {
    constexpr int each = 100;
    constexpr int rounds = 5;
    const Device device(index);
    std::atomic<int> busy = (count + each - 1) / each;
    std::vector<std::thread> threads;
    for (int first = 0; first < count; first += each) {
        threads.emplace_back([&, first] {
            for (int round = 1;; round++) {
                for (int i = first; i < std::min(first + each, count); i++)
                    open_and_close(device, prefix + "-" + std::to_string(i));
                if (round == rounds && !--busy)
                    say("ready");
                // Several times a second will do.
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
            }
        });
    }
    threads.front().join();
    return 1;
}

int reopen(unsigned index, const std::string& name, int count) {
    const Device device(index);
    for (int i = 0; i < count; i++)
        open_and_close(device, name);
    say(std::to_string(::getpid()));
    return 0;
}

int change(unsigned index, const std::string& what) {
    const Device device(index);
    auto map = lite_test::map_args(what, LITE_RIGHTS_ALL);
    succeed(device.call(LITE_IOC_MAP, &map), "map");
    say("ready");
    char c;
    if (::read(0, &c, 1) != 1)
        return 1;
    if (what == "chmod") {
        auto args = lite_test::setattr_args(map.lh, LITE_KEEP, LITE_KEEP, 0600);
        succeed(device.call(LITE_IOC_SETATTR, &args), "setattr");
    } else if (what == "grant") {
        // The second grant takes away what the first one gives.
        for (const auto rights :
             {std::uint32_t{LITE_RIGHT_READ | LITE_RIGHT_WRITE}, std::uint32_t{LITE_RIGHT_READ}}) {
            auto args = lite_test::grant_args(map.lh, 1234, 0, rights);
            succeed(device.call(LITE_IOC_GRANT, &args), "grant");
        }
    } else {
        auto args = lite_test::resize_args(map.lh, 32768);
        succeed(device.call(LITE_IOC_RESIZE, &args), "resize");
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const auto number = [&](std::size_t i) {
        return static_cast<std::uint32_t>(std::stoul(words.at(i)));
    };
    try {
        if (words.empty())
            return 2;
        if (words[0] == "collect")
            return collect(number(1), number(2));
        if (words[0] == "line")
            return line(number(1), number(2), number(3), number(4));
        if (words[0] == "cancel")
            return cancel(number(1), number(2), number(3), number(4));
        if (words[0] == "recv")
            return recv(number(1), static_cast<int>(number(2)));
        if (words[0] == "names")
            return names(number(1), number(2));
        if (words[0] == "rings")
            return rings(number(1), number(2), number(3), number(4));
        if (words[0] == "busy")
            return busy(number(1), number(2), number(3), number(4));
        if (words[0] == "late")
            return late(number(1), number(2), static_cast<int>(number(3)));
        if (words[0] == "find")
            return find(number(1), static_cast<int>(number(2)));
        if (words[0] == "found")
            return found(number(1), number(2), words.at(3));
        if (words[0] == "poll")
            return poll(number(1), static_cast<int>(number(2)));
        if (words[0] == "call")
            return call(number(1), number(2), static_cast<int>(number(3)), kPolled);
        if (words[0] == "echo")
            return echo(number(1), number(2), number(3), static_cast<int>(number(4)));
        if (words[0] == "binds")
            return binds(number(1), number(2), number(3));
        if (words[0] == "queued")
            return queued(number(1), number(2), number(3), static_cast<std::int32_t>(number(4)));
        if (words[0] == "begin")
            return begin_many(number(1), number(2), number(3), static_cast<int>(number(4)));
        if (words[0] == "share")
            return share(number(1), static_cast<int>(number(2)));
        if (words[0] == "claim")
            return claim(number(1), words.at(2), static_cast<int>(number(3)));
        if (words[0] == "free")
            return free(number(1), static_cast<int>(number(2)));
        if (words[0] == "open")
            return open(number(1), words.at(2), static_cast<int>(number(3)));
        if (words[0] == "reopen")
            return reopen(number(1), words.at(2), static_cast<int>(number(3)));
        if (words[0] == "change")
            return change(number(1), words.at(2));
        if (words[0] == "map") {
            std::vector<std::uint32_t> nodes;
            for (std::size_t i = 3; i < words.size(); i++)
                nodes.push_back(number(i));
            return map(number(1), static_cast<int>(number(2)), nodes);
        }
    } catch (const std::exception& e) {
        std::fprintf(stderr, "crowd: %s\n", e.what());
        return 1;
    }
    return 2;
}
