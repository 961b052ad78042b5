// SPDX-License-Identifier: MIT
//
// The LITE arm for windows: io_uring commands in batches. One system call submits a batch and waits
// for an older one.
#include <liburing.h>
#include <lite/uring.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "arms/lite/lite_memory.hpp"
#include "transport.hpp"
#include "workloads/batches.hpp"

namespace perf {

namespace {

class Ring {
  public:
    /// @file: the file of all commands.
    Ring(unsigned entries, int file) : owner_(gettid()) {
        // Completions are processed only while waiting for them.
        int error = io_uring_queue_init(entries, &ring_,
                                        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
        check(error);
        error = io_uring_register_files(&ring_, &file, 1);
        if (error)
            io_uring_queue_exit(&ring_);
        check(error);
    }
    ~Ring() { io_uring_queue_exit(&ring_); }
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    io_uring* get() { return &ring_; }
    /// Only the thread that made the ring may use it.
    bool is_ours() const { return owner_ == gettid(); }

  private:
    static void check(int error) {
        if (error)
            throw std::system_error(-error, std::generic_category(), "io_uring");
    }

    io_uring ring_{};
    pid_t owner_;
};

class LiteUringTransport final : public Transport {
  public:
    explicit LiteUringTransport(const Target& target)
        : memory_(target), ops_(std::clamp(target.window, 1U, window_limit)) {}

    // Waits: the kernel may still write to the buffer and the operations.
    ~LiteUringTransport() override {
        while (under_way_ && enter(under_way_) >= 0)
            take([](const io_uring_cqe&) {});
    }

    std::string_view name() const override { return "lite-uring"; }
    std::span<std::byte> buffer() override { return memory_.buffer(); }
    bool supports(Op op) const override { return memory_.supports(op); }
    unsigned max_window() const override { return static_cast<unsigned>(ops_.size()); }
    // Two batches: one in flight while the other is completed and submitted again.
    unsigned batch(unsigned window) const override { return std::max(window / 2, 1U); }

    // Only prepares the commands; collect() submits them.
    void post(std::span<const Request> requests) override {
        if (batches_.none() && (!ring_ || !ring_->is_ours())) {
            ring_.reset();
            ring_ = std::make_unique<Ring>(max_window(), lite_fd(memory_.context()));
        }
        const std::uint64_t batch = batches_.begin(static_cast<unsigned>(requests.size()));
        for (const Request& request : requests) {
            lite_op& op = ops_[posted_++ % ops_.size()];
            op = memory_.operation(request);
            io_uring_sqe* sqe = io_uring_get_sqe(ring_->get());
            if (!sqe)
                throw std::logic_error("io_uring: too many operations in flight");
            lite_uring_op(sqe, memory_.context(), &op);
            // index of the registered file
            sqe->fd = 0;
            sqe->flags |= IOSQE_FIXED_FILE;
            sqe->user_data = batch;
        }
    }

    std::uint64_t collect() override {
        while (const unsigned left = batches_.oldest_left()) {
            const int error = enter(left);
            if (error < 0)
                throw std::system_error(-error, std::generic_category(), "io_uring");
            int failed = 0;
            take([&](const io_uring_cqe& cqe) {
                batches_.done(cqe.user_data);
                failed = std::min(failed, cqe.res);
            });
            check_lite(failed, "command");
        }
        collected_ += batches_.end_oldest();
        return ops_[(collected_ - 1) % ops_.size()].result;
    }

  private:
    static constexpr unsigned window_limit = 128;

    /// Submits what is prepared and waits for @completions, or until a signal.
    int enter(unsigned completions) {
        const int submitted = io_uring_submit_and_wait(ring_->get(), completions);
        if (submitted > 0)
            under_way_ += static_cast<unsigned>(submitted);
        return submitted == -EINTR ? 0 : submitted;
    }

    template <typename Use>
    void take(Use use) {
        io_uring_cqe* cqe;
        unsigned head;
        unsigned n = 0;
        io_uring_for_each_cqe(ring_->get(), head, cqe) {
            use(*cqe);
            n++;
        }
        io_uring_cq_advance(ring_->get(), n);
        under_way_ -= n;
    }

    LiteMemory memory_;
    // A ring of the operations in flight; the oldest has the number collected_.
    std::vector<lite_op> ops_;
    std::uint64_t posted_ = 0;
    std::uint64_t collected_ = 0;
    Batches batches_;
    std::unique_ptr<Ring> ring_;
    unsigned under_way_ = 0;  // commands submitted and not completed
};

}  // namespace

std::unique_ptr<Transport> make_lite_uring_transport(const Target& target) {
    return std::make_unique<LiteUringTransport>(target);
}

}  // namespace perf
