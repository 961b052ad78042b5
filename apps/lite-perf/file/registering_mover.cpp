// SPDX-License-Identifier: MIT
//
// What verbs offer for sending a file without a copy: each part is mapped and registered, written
// from where it is, and deregistered.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <vector>

#include "../memory.hpp"
#include "arms/verbs/verbs_client.hpp"
#include "file_mover.hpp"

namespace perf {

namespace {

/// A part of a file, mapped and registered.
class Registered {
  public:
    Registered(ibv_pd* pd, int fd, const Part& part, int protection) : bytes_(part.length) {
        data_ = mmap(nullptr, bytes_, protection, MAP_SHARED, fd, static_cast<off_t>(part.offset));
        if (data_ == MAP_FAILED)
            throw_errno("mmap");
        const bool writable = protection & PROT_WRITE;
        memory_.reset(ibv_reg_mr(pd, data_, bytes_, writable * IBV_ACCESS_LOCAL_WRITE));
        error_ = memory_ ? 0 : errno;
    }
    ~Registered() {
        memory_.reset();
        munmap(data_, bytes_);
    }
    Registered(const Registered&) = delete;
    Registered& operator=(const Registered&) = delete;

    /// errno if the registration was refused, else 0.
    int error() const { return error_; }
    ibv_sge sge() const {
        return {reinterpret_cast<std::uintptr_t>(data_), static_cast<std::uint32_t>(bytes_),
                memory_->lkey};
    }

  private:
    void* data_ = nullptr;
    std::size_t bytes_;
    MemoryRegion memory_;
    int error_ = 0;
};

class RegisteringMover final : public FileMover {
  public:
    explicit RegisteringMover(const Target& target)
        : own_(target.buffer_bytes()),
          client_(target, target.window),
          memory_(register_memory(client_.pd(), own_.bytes())),
          parts_(client_.window()) {}

    ~RegisteringMover() override { client_.disconnect(); }

    void send(int fd, std::uint64_t length, Shape shape) override {
        move_parts(
            length, shape,
            [&](const Part& part) {
                auto& memory = parts_[part.slot];
                memory = register_part(fd, part);
                post(IBV_WR_RDMA_WRITE, memory->sge(), part.offset);
            },
            [&](const Part& part) {
                client_.completion(true);
                parts_[part.slot].reset();
            });
    }

    void receive(int, std::uint64_t, Shape) override {
        throw std::logic_error("verbs: this arm cannot receive files");
    }

    void fetch(std::uint64_t offset, std::span<std::byte> to) override {
        for (std::size_t done = 0; done < to.size();) {
            const std::size_t n = std::min(own_.bytes().size(), to.size() - done);
            post(IBV_WR_RDMA_READ,
                 {reinterpret_cast<std::uintptr_t>(own_.bytes().data()),
                  static_cast<std::uint32_t>(n), memory_->lkey},
                 offset + done);
            client_.completion(true);
            std::ranges::copy(own_.bytes().first(n),
                              to.begin() + static_cast<std::ptrdiff_t>(done));
            done += n;
        }
    }

  private:
    /// Before Linux 6.2 only writable mappings of a file can be registered, even if the device just
    /// reads; later kernels refuse writable ones on most file systems. So read-only is tried first.
    std::unique_ptr<Registered> register_part(int fd, const Part& part) {
        auto registered = std::make_unique<Registered>(client_.pd(), fd, part, protection_);
        if (registered->error() == EFAULT && !(protection_ & PROT_WRITE)) {
            protection_ |= PROT_WRITE;
            registered = std::make_unique<Registered>(client_.pd(), fd, part, protection_);
        }
        if (registered->error()) {
            errno = registered->error();
            throw_errno("verbs: register a part of a file");
        }
        return registered;
    }

    void post(ibv_wr_opcode opcode, ibv_sge sge, std::uint64_t offset) const {
        ibv_send_wr wr{};
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = opcode;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr.rdma.remote_addr = client_.granted().address + offset;
        wr.wr.rdma.rkey = client_.granted().rkey;
        client_.post(wr);
    }

    // In order of creation; destroyed in reverse.
    Region own_;  // for fetch()
    VerbsClient client_;
    MemoryRegion memory_;
    std::vector<std::unique_ptr<Registered>> parts_;
    int protection_ = PROT_READ;
};

}  // namespace

std::unique_ptr<FileMover> make_registering_mover(const Target& target) {
    return std::make_unique<RegisteringMover>(target);
}

}  // namespace perf
