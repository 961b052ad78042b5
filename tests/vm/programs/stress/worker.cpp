// SPDX-License-Identifier: MIT
// The workers of the stress test: processes of several users on one node that carry out commands,
// and do not know the right results. A worker that ends, by command or by a signal in the middle of
// an operation, is replaced.
#include "protocol.hpp"

#include "../common/data/pattern.hpp"
#include "../common/process.hpp"
#include "../common/raw.hpp"

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <span>

namespace lite_stress {
namespace {

using namespace lite_test;

// The exit status of a worker that was told to go without closing anything.
constexpr int kGone = 3;

const std::array kPeople{Identity{0, 0}, Identity{1000, 1000}, Identity{1001, 1000},
                         Identity{1002, 1002}};

// Reads the data of replies into one buffer, which it keeps.
class Worker {
  public:
    Worker(int fd, unsigned index) : fd_(fd), dev_(index) {}

    int run(const Identity& who) {
        const Hello hello{dev_.query().node_id, who.uid, who.gid,
                          static_cast<std::uint32_t>(::getpid())};
        Command command;
        if (!send_all(fd_, &hello, sizeof(hello)))
            return 1;
        while (receive_all(fd_, &command, sizeof(command))) {
            if (command.verb == Verb::stop)
                return 0;
            if (command.verb == Verb::exit)
                return kGone;
            data_.clear();
            Reply reply;
            arm(command.die_after_us);
            reply.error = execute(command, reply).value;
            reply.size = static_cast<std::uint32_t>(data_.size());
            if (!send_all(fd_, &reply, sizeof(reply)) || !send_all(fd_, data_.data(), data_.size()))
                return 1;
        }
        return 1;  // the coordinator is gone
    }

  private:
    static void arm(std::uint32_t after_us) {
        if (!after_us)
            return;
        itimerval timer{};
        timer.it_value.tv_sec = after_us / 1000000;
        timer.it_value.tv_usec = after_us % 1000000;
        ::setitimer(ITIMER_REAL, &timer, nullptr);  // SIGALRM, which has no handler
    }

    static Target target(const Command& c) {
        return c.lh ? Target(c.lh) : Target(std::string_view(c.name));
    }

    Errno execute(const Command& c, Reply& reply) {
        switch (c.verb) {
            case Verb::alloc: {
                auto args = alloc_args(c.name, c.length, c.mode);
                set_nodes(args, std::span(c.nodes, c.n_nodes));
                const auto e = dev_(args);
                reply.value = args.lh;
                return e;
            }
            case Verb::map: {
                auto args = map_args(c.name, c.rights);
                const auto e = dev_(args);
                reply.value = args.lh;
                return e;
            }
            case Verb::unmap:
                return dev_(unmap_args(c.lh));
            case Verb::free:
                return c.lh ? dev_(free_args(c.lh)) : dev_(free_args(std::string_view(c.name)));
            case Verb::read:
                return read(c.lh, c);
            case Verb::write: {
                data_.resize(c.length);
                fill_pattern(data_, c.value, c.offset);
                auto args = write_args(c.lh, c.offset, data_.data(), c.length);
                const auto e = dev_(args);
                reply.value = args.result;
                data_.clear();
                return e;
            }
            case Verb::peek: {
                auto args = map_args(c.name, LITE_RIGHT_READ);
                auto e = dev_(args);
                if (e == ok) {
                    e = read(args.lh, c);
                    dev_.unmap(args.lh);
                }
                return e;
            }
            case Verb::fetch_add:
            case Verb::swap:
            case Verb::fetch_and:
            case Verb::fetch_or:
            case Verb::set:
            case Verb::copy:
            case Verb::compare:
            case Verb::checksum:
                return there(c, reply);
            default:
                return change(c, reply);
        }
    }

    Errno change(const Command& c, Reply& reply) {
        switch (c.verb) {
            case Verb::grant:
                return dev_(grant_args(target(c), c.uid, c.node, c.rights));
            case Verb::setattr:
                return dev_(setattr_args(target(c), c.uid, c.gid, c.mode));
            case Verb::rename:
                return dev_(rename_args(target(c), c.to));
            case Verb::resize:
                return dev_(resize_args(target(c), c.length));
            case Verb::move: {
                auto args = move_args(target(c), c.node, c.offset, c.length);
                const auto e = dev_(args);
                reply.value = args.moved;
                return e;
            }
            case Verb::stat: {
                auto args = c.lh ? stat_args(c.lh) : stat_args(std::string_view(c.name));
                const auto e = dev_(args);
                answer(&args.info, sizeof(args.info));
                return e;
            }
            case Verb::grants: {
                std::array<lite_grant, LITE_GRANTS_MAX> room{};
                auto args = grants_args(target(c), room);
                const auto e = dev_(args);
                reply.value = args.n_grants;
                answer(room.data(), sizeof(room));
                return e;
            }
            default:
                reply.value = dev_.query().mem_used;
                return ok;
        }
    }

    // Operations that are carried out where the memory is.
    Errno there(const Command& c, Reply& reply) {
        auto args = fetch_add_args(c.lh, c.offset, c.value);
        args.opcode = opcode(c.verb);
        args.length = c.length;
        if (c.verb == Verb::set) {
            args.swap = c.pattern;
        } else if (c.lh2) {
            args.operand = c.lh2;
            args.swap = c.offset2;
        }
        const auto e = dev_(args);
        reply.value = args.result;
        return e;
    }

    static std::uint16_t opcode(Verb verb) {
        switch (verb) {
            case Verb::fetch_add:
                return LITE_OP_FETCH_ADD;
            case Verb::swap:
                return LITE_OP_SWAP;
            case Verb::fetch_and:
                return LITE_OP_FETCH_AND;
            case Verb::fetch_or:
                return LITE_OP_FETCH_OR;
            case Verb::set:
                return LITE_OP_SET;
            case Verb::copy:
                return LITE_OP_COPY;
            case Verb::compare:
                return LITE_OP_COMPARE;
            default:
                return LITE_OP_CHECKSUM;
        }
    }

    Errno read(std::uint64_t lh, const Command& c) {
        // Bytes that the read does not write must not look as if they were read.
        data_.assign(c.length, std::byte{0xee});
        const auto e = dev_(read_args(lh, c.offset, data_.data(), c.length));
        if (e != ok)
            data_.clear();
        return e;
    }

    void answer(const void* from, std::size_t size) {
        const auto* bytes = static_cast<const std::byte*>(from);
        data_.assign(bytes, bytes + size);
    }

    int fd_;
    Device dev_;
    std::vector<std::byte> data_;
};

pid_t start(const WorkerOptions& options, std::size_t number) {
    const auto pid = ::fork();
    if (pid != 0)
        return pid;
    try {
        const auto& who = kPeople[number % kPeople.size()];
        become(who);
        ::_exit(Worker(connect_to(options.coordinator), options.index).run(who));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "stress: worker: %s\n", e.what());
        ::_exit(1);
    }
}

}  // namespace

int work(const WorkerOptions& options) {
    // Different users on different nodes: the numbers go on where those of the node before end.
    const auto first = Device(options.index).query().node_id;
    std::map<pid_t, std::size_t> workers;
    for (std::size_t i = 0; i < options.count; ++i)
        workers[start(options, first + i)] = first + i;
    while (!workers.empty()) {
        int status = 0;
        const auto pid = ::wait(&status);
        const auto found = workers.find(pid);
        if (found == workers.end())
            continue;
        const auto number = found->second;
        workers.erase(found);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        const bool expected =
            WIFEXITED(status) ? WEXITSTATUS(status) == kGone : WTERMSIG(status) == SIGALRM;
        if (!expected) {
            std::fprintf(stderr, "stress: a worker ended with status %#x\n",
                         static_cast<unsigned>(status));
            return 1;
        }
        workers[start(options, number)] = number;
    }
    return 0;
}

}  // namespace lite_stress
