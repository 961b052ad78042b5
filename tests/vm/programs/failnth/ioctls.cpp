// SPDX-License-Identifier: MIT
#include "faults.hpp"

#include "../common/env.hpp"
#include "../common/memory.hpp"
#include "../common/process.hpp"

#include <uapi/lite_order.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace lite_test {
namespace {

class Ioctls {
  public:
    explicit Ioctls(const Placement& where) : where_(where), lmr_(dev_, kLength, where.nodes) {}

    // Frees the LMR that free_by_name() has prepared last.
    ~Ioctls() { (void)dev_(free_args(name_)); }
    Ioctls(const Ioctls&) = delete;
    Ioctls& operator=(const Ioctls&) = delete;

    std::vector<Attempt> attempts() {
        std::vector<Attempt> all{
            alloc(""), alloc(name_), alloc_no_handle(), register_memory(""), register_memory(name_),
            register_unpinned("unpinned", LITE_REGISTER_UNPINNED),
            register_unpinned("leased", LITE_REGISTER_UNPINNED | LITE_REGISTER_LEASED), arena(),
            map(), unmap(), transfer("small write", LITE_OP_WRITE, 100),
            transfer("small read", LITE_OP_READ, 100),
            transfer("large write", LITE_OP_WRITE, kLength),
            transfer("large read", LITE_OP_READ, kLength),
            file("small send", LITE_IOC_SENDFILE, 100),
            file("large send", LITE_IOC_SENDFILE, kLength),
            file("small receive", LITE_IOC_RECVFILE, 100),
            file("large receive", LITE_IOC_RECVFILE, kLength), fetch_add(), fence(), vector(),
            memory_operation("swap", LITE_OP_SWAP, 8),
            memory_operation("set", LITE_OP_SET, kLength),
            memory_operation("copy", LITE_OP_COPY, kLength),
            memory_operation("compare", LITE_OP_COMPARE, kLength),
            memory_operation("checksum", LITE_OP_CHECKSUM, kLength), lock(), lock_shared(),
            unlock(), stat(), list(), open(), grant(), revoke(), grants(), setattr(), rename(),
            resize("resize longer", kLength * 2), resize("resize shorter", kLength / 2), move(),
            // Last, as these leave LMRs behind, and others check the memory in use.
            free_by_handle(), free_by_name()};
        // Only memory at this node can be mapped.
        if (where_.nodes.empty() || where_.nodes == std::vector{env().self})
            all.push_back(mmap_lmr());
        return all;
    }

  private:
    static constexpr std::uint64_t kLength = 300000;
    // A word that no other attempt uses.
    static constexpr std::uint64_t kLockAt = 299992;

    Attempt label(
        const std::string& text, std::function<Errno()> call, std::function<void(Errno)> restore,
        std::function<void()> prepare = [] {}) {
        return {where_.label + ": " + text, std::move(call), std::move(restore),
                std::move(prepare)};
    }

    void make_named() {
        if (dev_(stat_args(name_)) == err(ENOENT))
            dev_.unmap(dev_.alloc(kLength, where_.nodes, name_));
    }

    void check_nothing_left() {
        expect_equal(dev_(stat_args(name_)), err(ENOENT), "name of an LMR that was not made");
        expect_equal(dev_.query().mem_used, used_, "memory in use after an LMR was not made");
    }

    Attempt alloc(const std::string& name) {
        return label(
            name.empty() ? "alloc anonymous" : "alloc named",
            [this, name] {
                args_ = alloc_args(name, kLength);
                set_nodes(args_, where_.nodes);
                return dev_(args_);
            },
            [this](Errno e) {
                if (e == ok)
                    dev_.free(args_.lh);
                check_nothing_left();
            });
    }

    Attempt alloc_no_handle() {
        return label(
            "alloc without handle",
            [this] {
                args_ = alloc_args(name_, kLength, 0600, LITE_ALLOC_NO_HANDLE);
                set_nodes(args_, where_.nodes);
                return dev_(args_);
            },
            [this](Errno e) {
                if (e == ok)
                    dev_.free(name_);
                check_nothing_left();
            });
    }

    Attempt map() {
        return label(
            "map",
            [this] {
                map_ = map_args(lmr_.name(), LITE_RIGHT_READ);
                return dev_(map_);
            },
            [this](Errno e) {
                if (e == ok)
                    dev_.unmap(map_.lh);
            });
    }

    Attempt unmap() {
        return label(
            "unmap", [this] { return dev_(unmap_args(second_)); },
            [this](Errno e) {
                if (e == ok)
                    second_ = dev_.map(lmr_.name());
                else
                    (void)dev_.fetch_add(second_, 0, 0);
            });
    }

    Attempt free_by_handle() {
        return label(
            "free by handle", [this] { return dev_(free_args(victim_)); },
            [this](Errno e) {
                if (e == ok)
                    victim_ = dev_.alloc(kLength, where_.nodes);
            },
            [this] { victim_ = dev_.alloc(kLength, where_.nodes); });
    }

    Attempt free_by_name() {
        return label(
            "free by name", [this] { return dev_(free_args(name_)); },
            [this](Errno) { make_named(); }, [this] { make_named(); });
    }

    Attempt transfer(const std::string& text, lite_opcode opcode, std::uint64_t length) {
        return label(
            text,
            [this, opcode, length] {
                auto op = opcode == LITE_OP_READ
                              ? read_args(lmr_.lh(), 5, buffer_.data(), length - 5)
                              : write_args(lmr_.lh(), 5, buffer_.data(), length - 5);
                return dev_(op);
            },
            [](Errno) {});
    }

    // Workers move some of the sets: their allocations do not fail.
    Attempt file(const std::string& text, unsigned long request, std::uint64_t length) {
        return label(
            text + " of a file",
            [this, request, length] {
                lite_ioc_file args{};
                args.size = sizeof(args);
                args.lh = lmr_.lh();
                args.length = length;
                args.fd = moved_;
                args.pages = 32;
                const Errno e = dev_.call(request, &args);
                // A failure after the first set is a short count.
                expect(e != ok || args.moved == length || (args.moved && args.moved < length),
                       "count of bytes moved");
                return e;
            },
            [this](Errno) {
                // No page is held: the file could be sealed.
                expect_equal(::fcntl(moved_, F_ADD_SEALS, F_SEAL_WRITE), 0, "seal");
                ::close(moved_);
                moved_ = make_file();
            },
            [this] { moved_ = make_file(); });
    }

    int make_file() const {
        const int fd = ::memfd_create("failnth", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        expect_equal(::pwrite(fd, buffer_.data(), buffer_.size(), 0),
                     static_cast<ssize_t>(buffer_.size()), "pwrite");
        return fd;
    }

    Attempt fence() {
        return label(
            "fence",
            [this] {
                lite_op op{};
                op.size = sizeof(op);
                op.opcode = LITE_OP_FENCE;
                op.lh = lmr_.lh();
                return dev_(op);
            },
            [](Errno) {});
    }

    Attempt fetch_add() {
        return label(
            "fetch-add", [this] { return dev_(fetch_add_args(lmr_.lh(), 0, 1)); }, [](Errno) {});
    }

    Attempt vector() {
        return label(
            "vector",
            [this] {
                auto set = fetch_add_args(lmr_.lh(), 0, 0);
                set.opcode = LITE_OP_SET;
                set.swap = 1;
                std::array ops{read_args(lmr_.lh(), 0, buffer_.data(), 64),
                               write_args(lmr_.lh(), 64, buffer_.data(), 64),
                               fetch_add_args(lmr_.lh(), 128, 1), set};
                lite_ioc_vector args{};
                args.size = sizeof(args);
                args.ops = reinterpret_cast<std::uintptr_t>(ops.data());
                args.n_ops = ops.size();
                args.op_size = sizeof(lite_op);
                const auto whole = dev_.call(LITE_IOC_VECTOR, &args);
                if (whole != ok)
                    return whole;
                const auto failed = std::ranges::find_if(ops, [](auto& op) { return op.error; });
                return failed == ops.end() ? ok : err(-failed->error);
            },
            [](Errno) {});
    }

    Attempt memory_operation(const std::string& text, lite_opcode opcode, std::uint64_t length) {
        return label(
            text,
            [this, opcode, length] {
                auto op = fetch_add_args(lmr_.lh(), 0, 0);
                op.opcode = opcode;
                op.length = length;
                if (opcode == LITE_OP_COPY || opcode == LITE_OP_COMPARE)
                    op.operand = second_;
                if (opcode == LITE_OP_SET)
                    op.swap = 1;
                return dev_(op);
            },
            [](Errno) {});
    }

    Errno lock_call(const Device& dev, std::uint64_t lh, std::uint32_t flags,
                    std::int32_t timeout_ms) const {
        lite_ioc_lock args{};
        args.size = sizeof(args);
        args.flags = flags;
        args.lh = lh;
        args.offset = kLockAt;
        args.owner = 1;
        args.timeout_ms = timeout_ms;
        return dev.call(LITE_IOC_LOCK, &args);
    }

    Errno unlock_call(unsigned long request) const {
        lite_ioc_unlock args{};
        args.size = sizeof(args);
        args.lh = lmr_.lh();
        args.offset = kLockAt;
        args.owner = 1;
        return dev_.call(request, &args);
    }

    // Whatever has failed, the lock can be taken now; it may take a moment if it is released in the
    // background.
    void check_lock() {
        Device other(env().indexes.front());
        const auto lh = other.map(lmr_.name());
        const auto e = lock_call(other, lh, 0, 60000);
        expect(e == ok || e == err(EOWNERDEAD), "lock is to be had");
        other.close();
        // The lock went with the closed file: make it consistent again.
        expect_equal(lock_call(dev_, lmr_.lh(), 0, 60000), err(EOWNERDEAD),
                     "lock of a closed file");
        expect_equal(unlock_call(LITE_IOC_CONSISTENT), ok, "consistent");
        expect_equal(unlock_call(LITE_IOC_UNLOCK), ok, "unlock");
    }

    Attempt lock() {
        return label(
            "lock", [this] { return lock_call(dev_, lmr_.lh(), 0, 0); },
            [this](Errno e) {
                if (e == ok)
                    expect_equal(unlock_call(LITE_IOC_UNLOCK), ok, "unlock");
                check_lock();
            });
    }

    Attempt lock_shared() {
        return label(
            "lock shared", [this] { return lock_call(dev_, lmr_.lh(), LITE_LOCK_SHARED, 5000); },
            [this](Errno e) {
                if (e == ok)
                    expect_equal(unlock_call(LITE_IOC_UNLOCK), ok, "unlock");
                check_lock();
            });
    }

    Attempt unlock() {
        return label(
            "unlock", [this] { return unlock_call(LITE_IOC_UNLOCK); },
            [this](Errno e) {
                // EFAULT: the kernel did not read the argument, so the lock is still held. After
                // any other error it is released.
                if (e == err(EFAULT))
                    expect_equal(unlock_call(LITE_IOC_UNLOCK), ok, "unlock again");
                check_lock();
                expect_equal(lock_call(dev_, lmr_.lh(), 0, 5000), ok, "lock");
            },
            [this] { expect_equal(lock_call(dev_, lmr_.lh(), 0, 5000), ok, "lock"); });
    }

    Attempt stat() {
        return label(
            "stat", [this] { return dev_(stat_args(lmr_.name())); }, [](Errno) {});
    }

    Attempt list() {
        return label(
            "list", [this] { return dev_(list_args(infos_)); }, [](Errno) {});
    }

    Attempt open() {
        return label(
            "open",
            [this] {
                const auto path = "/dev/lite" + std::to_string(env().indexes.front());
                file_ = ::open(path.c_str(), O_RDWR);
                return file_ < 0 ? err(errno) : ok;
            },
            [this](Errno e) {
                if (e == ok)
                    ::close(file_);
            });
    }

    Attempt grant() {
        return label(
            "grant", [this] { return dev_(grant_args(lmr_.name(), kUser, 0, LITE_RIGHT_READ)); },
            [this](Errno e) {
                expect_equal(dev_.grants(lmr_.name()).size(), e == ok ? 1U : 0U, "grants");
                dev_.grant(lmr_.name(), kUser, 0, 0);
            });
    }

    Attempt revoke() {
        return label(
            "revoke", [this] { return dev_(grant_args(lmr_.name(), kUser, 0, 0)); },
            [this](Errno e) {
                expect_equal(dev_.grants(lmr_.name()).size(), e == ok ? 0U : 1U, "grants");
                (void)dev_.fetch_add(lmr_.lh(), 0, 0);
                dev_.grant(lmr_.name(), kUser, 0, LITE_RIGHT_READ);
            },
            [this] { dev_.grant(lmr_.name(), kUser, 0, LITE_RIGHT_READ); });
    }

    Attempt grants() {
        return label(
            "grants", [this] { return dev_(grants_args(lmr_.name(), room_)); }, [](Errno) {});
    }

    Attempt setattr() {
        return label(
            "setattr",
            [this] { return dev_(setattr_args(lmr_.name(), LITE_KEEP, LITE_KEEP, 0400)); },
            [this](Errno e) {
                expect_equal(dev_.stat(lmr_.name()).mode, e == ok ? 0400U : 0600U, "mode");
                dev_.chmod(lmr_.name(), 0600);
            });
    }

    Attempt rename() {
        return label(
            "rename", [this] { return dev_(rename_args(changing_.name(), renamed_)); },
            [this](Errno e) {
                expect_equal(dev_(stat_args(renamed_)), e == ok ? ok : err(ENOENT), "new name");
                expect_equal(dev_(stat_args(changing_.name())), e == ok ? err(ENOENT) : ok,
                             "old name");
                if (e == ok)
                    dev_.rename(renamed_, changing_.name());
            });
    }

    // The length that it had before.
    void restore_length() {
        dev_.resize(changing_.name(), kLength);
        expect_equal(dev_.query().mem_used, used_, "memory in use after a resize and another");
    }

    Attempt resize(const std::string& text, std::uint64_t length) {
        return label(
            text, [this, length] { return dev_(resize_args(changing_.name(), length)); },
            [this, length](Errno e) {
                const auto now = dev_.stat(changing_.name()).length;
                expect_equal(now, e == ok ? length : kLength, "length");
                (void)dev_.fetch_add(changing_.lh(), now / 8 * 8 - 8, 1);
                restore_length();
            });
    }

    // Parts that were moved before a failure stay at the new place, so the LMR only has to be
    // usable.
    Attempt move() {
        const auto to = env().remote.empty() ? env().self : env().remote.back();
        return label(
            "move", [this, to] { return dev_(move_args(changing_.name(), to)); },
            [this](Errno) {
                dev_.read(changing_.lh(), 0, buffer_);
                dev_.move(changing_.name(), where_.nodes.front());
                expect_equal(dev_.query().mem_used, used_, "memory in use after it was moved back");
            });
    }

    Attempt mmap_lmr() {
        return label(
            "mmap",
            [this] {
                mmap_ = {};
                mmap_.size = sizeof(mmap_);
                mmap_.lh = lmr_.lh();
                mmap_.length = kLength;
                mmap_.prot = LITE_PROT_READ | LITE_PROT_WRITE;
                return dev_.call(LITE_IOC_MMAP, &mmap_);
            },
            [this](Errno e) {
                if (e != ok)
                    return;
                auto* at = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(mmap_.addr));
                at[kLength - 1] = std::byte{1};
                ::munmap(at, kLength);
            });
    }

    Attempt register_memory(const std::string& name) {
        return label(
            name.empty() ? "register anonymous" : "register named",
            [this, name] {
                register_ = {};
                register_.size = sizeof(register_);
                register_.addr = reinterpret_cast<std::uintptr_t>(pages_.data());
                register_.length = pages_.size();
                register_.mode = 0600;
                set_name(register_.name, name);
                return dev_.call(LITE_IOC_REGISTER, &register_);
            },
            [this](Errno e) {
                if (e == ok)
                    dev_.free(register_.lh);
                check_nothing_left();
            });
    }

    // Registers memory that is not pinned, and has some of it brought in.
    Attempt register_unpinned(const std::string& text, std::uint32_t flags) {
        return label(
            "register " + text,
            [this, flags] {
                register_ = {};
                register_.size = sizeof(register_);
                register_.flags = flags;
                register_.addr = reinterpret_cast<std::uintptr_t>(pages_.data());
                register_.length = pages_.size();
                register_.mode = 0600;
                const Errno e = dev_.call(LITE_IOC_REGISTER, &register_);
                if (e != ok)
                    return e;
                made_ = register_.lh;
                auto op = write_args(made_, 5, buffer_.data(), 100);
                return dev_(op);
            },
            [this](Errno) {
                if (made_)
                    dev_.free(std::exchange(made_, 0));
                // The kernel lets go of chunks in the background.
                wait_until("chunks are gone", [&] { return dev_.query().mem_used == used_; });
                check_nothing_left();
            });
    }

    // Makes an arena, and an LMR of a part of it; both are gone afterwards.
    Attempt arena() {
        return label(
            "arena",
            [this] {
                lite_ioc_arena made{};
                made.size = sizeof(made);
                made.flags = LITE_ARENA_EAGER;
                made.length = 2 * LITE_ARENA_BLOCK;
                Errno e = dev_.call(LITE_IOC_ARENA, &made);
                if (e != ok)
                    return e;
                register_ = {};
                register_.size = sizeof(register_);
                register_.addr = made.addr + LITE_ARENA_BLOCK / 2;
                register_.length = LITE_ARENA_BLOCK;
                register_.mode = 0600;
                e = dev_.call(LITE_IOC_REGISTER, &register_);
                if (e == ok)
                    made_ = register_.lh;
                // It needs memory, too, and the fault may be in it; there is only one.
                auto* at = reinterpret_cast<void*>(static_cast<std::uintptr_t>(made.addr));
                if (::munmap(at, made.length))
                    expect_equal(::munmap(at, made.length), 0, "munmap again");
                return e;
            },
            [this](Errno) {
                if (made_)
                    dev_.free(std::exchange(made_, 0));
                check_nothing_left();
            });
    }

    static constexpr std::uint32_t kUser = 4711;

    const Placement& where_;
    Device dev_{env().indexes.front()};
    std::uint64_t made_ = 0;  // LMR of a part of an arena
    NamedLmr lmr_;
    NamedLmr changing_{dev_, kLength, std::span(where_.nodes).first(1)};
    std::string renamed_ = unique_name("renamed");
    std::array<lite_grant, 4> room_{};
    std::uint64_t second_ = dev_.map(lmr_.name());
    std::uint64_t used_ = dev_.query().mem_used;
    std::uint64_t victim_ = 0;
    std::string name_ = unique_name("failnth");
    std::vector<std::byte> buffer_ = std::vector<std::byte>(kLength);
    std::array<lite_lmr_info, 8> infos_{};
    lite_ioc_alloc args_{};
    lite_ioc_map map_{};
    lite_ioc_mmap mmap_{};
    lite_ioc_register register_{};
    Mapping pages_{64 * kPage};
    int file_ = -1;
    int moved_ = -1;
};

}  // namespace

void sweep_ioctls(FailNth& faults, unsigned samples) {
    for (const auto& where : env().placements()) {
        Ioctls ioctls(where);
        for (const auto& attempt : ioctls.attempts())
            sweep(faults, attempt, samples);
    }
}

}  // namespace lite_test
