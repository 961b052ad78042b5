// SPDX-License-Identifier: MIT
// The coordinator of the stress test: its connections to the workers, and the regular checks of
// everything.
#include "decider.hpp"

#include "../common/env.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <thread>

namespace lite_stress {
namespace {

constexpr std::uint64_t kPage = 4096;

class Coordinator : public Decider {
  public:
    explicit Coordinator(const CoordinatorOptions& options)
        : Decider(lite_test::env().seed), options_(options), listener_(listen_at(options.port)) {}

    void run() {
        while (workers_.size() < options_.workers)
            welcome();
        const auto begun = Clock::now();
        std::uint64_t next_check = options_.check_every;
        while (options_.seconds ? Clock::now() - begun < std::chrono::seconds(options_.seconds)
                                : done_ < options_.operations) {
            if (done_ >= next_check) {
                settle();
                check_everything();
                next_check = done_ + options_.check_every;
            }
            for (auto& worker : workers_) {
                if (!worker.operation && !worker.doomed)
                    decide(worker);
            }
            wait();
        }
        settle();
        check_everything();
        clean_up();
        report(std::chrono::duration<double>(Clock::now() - begun).count());
    }

  private:
    // -----------------------------------------------------------------

    void welcome() {
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        Hello hello;
        if (fd < 0 || !receive_all(fd, &hello, sizeof(hello)))
            throw Divergence("a worker that does not introduce itself");
        const int on = 1;
        (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        Worker worker;
        worker.number = ++arrived_;
        worker.fd = fd;
        worker.who = {hello.uid, hello.gid, hello.node};
        say(describe_worker(worker) + " comes, pid " + std::to_string(hello.pid));
        workers_.push_back(std::move(worker));
    }

    void wait() {
        std::vector<pollfd> polled{{listener_, POLLIN, 0}};
        for (const auto& worker : workers_)
            polled.push_back({worker.fd, POLLIN, 0});
        const auto n = ::poll(polled.data(), polled.size(), 1000);
        if (n < 0 && errno != EINTR)
            throw Divergence("poll failed");
        std::set<int> gone;
        for (std::size_t i = 1; n > 0 && i < polled.size(); ++i) {
            if (polled[i].revents && !receive(workers_[i - 1]))
                gone.insert(polled[i].fd);
        }
        std::erase_if(workers_, [&](const Worker& worker) { return gone.contains(worker.fd); });
        if (n > 0 && polled[0].revents)
            welcome();
        for (const auto& worker : workers_) {
            if ((worker.operation || worker.doomed) &&
                Clock::now() - worker.since > std::chrono::seconds(options_.patience_s)) {
                suspect(worker);
                throw Divergence(describe_worker(worker) + " does not answer");
            }
        }
    }

    // Returns false if the worker is gone.
    bool receive(Worker& worker) {
        Reply reply;
        if (!hear(worker, reply)) {
            abandon(worker);
            ::close(worker.fd);
            return false;
        }
        if (!worker.operation)
            throw Divergence("an answer without a question");
        finish(worker, reply, data_);
        return true;
    }

    // Receives a reply, and its data into data_; returns false if the worker is gone.
    bool hear(const Worker& worker, Reply& reply) {
        if (!receive_all(worker.fd, &reply, sizeof(reply)))
            return false;
        data_.resize(reply.size);
        return receive_all(worker.fd, data_.data(), data_.size());
    }

    // The reply of a worker that cannot be gone.
    Reply hear(const Worker& worker) {
        Reply reply;
        if (!hear(worker, reply))
            throw Divergence(describe_worker(worker) + " has gone");
        return reply;
    }

    void finish_now(Worker& worker) {
        const auto reply = hear(worker);
        finish(worker, reply, data_);
    }

    // Waits until no operation is in flight, no worker is missing, and none is about to go.
    void settle() {
        const auto calm = [&] {
            return workers_.size() == options_.workers &&
                   std::none_of(workers_.begin(), workers_.end(), [](const Worker& worker) {
                       return worker.operation || worker.doomed;
                   });
        };
        while (!calm())
            wait();
    }

    Worker& root() {
        std::vector<Worker*> all;
        for (auto& worker : workers_) {
            if (worker.who.uid == 0)
                all.push_back(&worker);
        }
        if (all.empty())
            throw Divergence("there is no worker of root");
        return *all[below(all.size())];
    }

    // One operation, with no other in flight.
    Reply ask(Worker& worker, const Command& command) {
        send(worker, command);
        return hear(worker);
    }

    // As start(), but waits for the end.
    void do_now(Worker& worker, const Command& command) {
        start(worker, command);
        finish_now(worker);
    }

    void check_everything() {
        std::uint64_t bytes = 0;
        for (const auto& [name, lmr] : names_) {
            if (!lmr)
                continue;
            while (!lmr->open.empty())
                (void)decide_now_resolve();
            for (const auto verb : {Verb::stat, Verb::grants, Verb::peek}) {
                Command command;
                command.verb = verb;
                command.length = verb == Verb::peek ? lmr->length : 0;
                set_name(command.name, name);
                do_now(root(), command);
            }
            bytes += whole_pages(lmr->length);
        }
        for (auto& worker : workers_) {
            std::vector<std::pair<std::uint64_t, Handle>> handles(worker.handles.begin(),
                                                                  worker.handles.end());
            for (const auto& [lh, handle] : handles) {
                Command command;
                command.verb = Verb::read;
                command.lh = lh;
                command.length = handle.lmr->length;
                do_now(worker, command);
            }
        }
        for (const auto& lmr : anonymous())
            bytes += whole_pages(lmr->length);
        check_memory(bytes);
        ++checks_;
    }

    bool decide_now_resolve() {
        auto& worker = root();
        if (!decide_resolve(worker))
            return false;
        finish_now(worker);
        return true;
    }

    static std::uint64_t whole_pages(std::uint64_t bytes) {
        return (bytes + kPage - 1) / kPage * kPage;
    }

    std::set<LmrPtr> anonymous() const {
        std::set<LmrPtr> all;
        for (const auto& worker : workers_) {
            for (const auto& [lh, handle] : worker.handles) {
                if (handle.lmr->maker)
                    all.insert(handle.lmr);
            }
        }
        return all;
    }

    // All nodes together give exactly the memory of the LMRs. Memory that a process has left behind
    // may be freed a little later.
    void check_memory(std::uint64_t wanted) {
        std::uint64_t used = 0;
        for (int tries = 0; tries < 200; ++tries) {
            used = 0;
            for (const auto node : nodes()) {
                const auto found =
                    std::find_if(workers_.begin(), workers_.end(),
                                 [&](const Worker& worker) { return worker.who.node == node; });
                Command command;
                command.verb = Verb::query;
                used += ask(*found, command).value;
            }
            if (used == wanted)
                return;
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        throw Divergence("memory in use: " + std::to_string(used) + " bytes instead of " +
                         std::to_string(wanted));
    }

    void clean_up() {
        for (auto& worker : workers_) {
            while (!worker.handles.empty()) {
                Command command;
                command.verb = Verb::unmap;
                command.lh = worker.handles.begin()->first;
                do_now(worker, command);
            }
        }
        for (const auto& [name, lmr] : std::map(names_)) {
            if (!lmr)
                continue;
            Command command;
            command.verb = Verb::free;
            set_name(command.name, name);
            do_now(root(), command);
        }
        check_memory(0);
        for (auto& worker : workers_) {
            Command command;
            command.verb = Verb::stop;
            send(worker, command);
            ::close(worker.fd);
        }
    }

    void report(double seconds) {
        std::printf("%llu operations in %.0f s, %llu looks at everything, %u LMRs, %u workers\n",
                    static_cast<unsigned long long>(done_), seconds,
                    static_cast<unsigned long long>(checks_), lmrs_, arrived_);
        for (const auto& [what, count] : counts_)
            std::printf("  %-20s %llu\n", what.c_str(), static_cast<unsigned long long>(count));
    }

    CoordinatorOptions options_;
    int listener_;
    std::vector<std::byte> data_;
    unsigned arrived_ = 0;
    std::uint64_t checks_ = 0;
};

}  // namespace

int coordinate(const CoordinatorOptions& options) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(lite_test::env().seed));
    std::fflush(stdout);
    Coordinator coordinator(options);
    try {
        coordinator.run();
    } catch (const Divergence& e) {
        coordinator.explain(e.what());
        return 1;
    }
    return 0;
}

}  // namespace lite_stress
