// SPDX-License-Identifier: MIT
// The messages between the coordinator of the stress test and its workers, over TCP: one command at
// a time to each worker, and its reply. All machines are of one kind, so structures are sent as
// they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lite_stress {

enum class Verb : std::uint32_t {
    alloc,
    map,
    unmap,
    free,
    read,
    write,
    fetch_add,
    swap,
    fetch_and,
    fetch_or,
    set,
    copy,
    compare,
    checksum,
    grant,
    setattr,
    rename,
    resize,
    move,
    stat,
    grants,
    peek,   // map by name, read, unmap
    query,  // how much memory the node gives to LMRs
    exit,   // with everything open
    stop,   // in order, for good
};

const char* name_of(Verb verb);

struct Command {
    Verb verb{};
    std::uint32_t die_after_us = 0;  // a signal ends the process after that time; 0: none
    std::uint64_t lh = 0;            // 0: by name
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t value = 0;  // seed of what is written; operand; pattern
    std::uint64_t lh2 = 0;    // second range: the source of a copy
    std::uint64_t offset2 = 0;
    std::uint32_t rights = 0;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::uint32_t mode = 0;
    std::uint32_t node = 0;
    std::uint32_t n_nodes = 0;
    std::uint32_t nodes[8] = {};
    std::uint32_t pattern = 0;  // bytes of it
    char name[32] = {};
    char to[32] = {};
};

struct Reply {
    std::int32_t error = 0;
    std::uint32_t size = 0;   // of the data that follows
    std::uint64_t value = 0;  // a handle, a length, an old value, bytes, a checksum
};

// The first message of a worker: its user and its node.
struct Hello {
    std::uint32_t node = 0;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::uint32_t pid = 0;
};

// Whole structures or nothing: false at the end of the connection.
bool send_all(int fd, const void* data, std::size_t size);
bool receive_all(int fd, void* data, std::size_t size);

struct Address {
    std::string host;
    std::uint16_t port;
};
int listen_at(std::uint16_t port);
// Tries for a while, as workers may start earlier than the coordinator.
int connect_to(const Address& address);

// The two parts of the program. They return an exit status.
struct CoordinatorOptions {
    std::uint16_t port = 7000;
    std::size_t workers = 9;
    std::uint64_t operations = 10000;
    std::uint64_t seconds = 0;  // instead of operations, if not 0
    std::uint64_t check_every = 1000;
    std::uint64_t patience_s = 60;
};
int coordinate(const CoordinatorOptions& options);

struct WorkerOptions {
    Address coordinator;
    unsigned index = 0;
    std::size_t count = 3;
};
int work(const WorkerOptions& options);

}  // namespace lite_stress
