// SPDX-License-Identifier: MIT
#include "faults.hpp"

#include "../common/env.hpp"
#include "../common/process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace lite_test {
namespace {

class Ioctls {
  public:
    explicit Ioctls(const Placement& where) : where_(where), lmr_(dev_, kLength, where.nodes) {}

    // What free_by_name() has got ready last.
    ~Ioctls() { (void)dev_(free_args(name_)); }
    Ioctls(const Ioctls&) = delete;
    Ioctls& operator=(const Ioctls&) = delete;

    std::vector<Attempt> attempts() {
        return {alloc(""),
                alloc(name_),
                alloc_no_handle(),
                map(),
                unmap(),
                free_by_handle(),
                free_by_name(),
                transfer("small write", LITE_OP_WRITE, 100),
                transfer("small read", LITE_OP_READ, 100),
                transfer("large write", LITE_OP_WRITE, kLength),
                transfer("large read", LITE_OP_READ, kLength),
                fetch_add(),
                stat(),
                list(),
                open()};
    }

  private:
    static constexpr std::uint64_t kLength = 300000;

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

    Attempt fetch_add() {
        return label(
            "fetch-add", [this] { return dev_(fetch_add_args(lmr_.lh(), 0, 1)); }, [](Errno) {});
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

    const Placement& where_;
    Device dev_{env().indexes.front()};
    NamedLmr lmr_;
    std::uint64_t second_ = dev_.map(lmr_.name());
    std::uint64_t used_ = dev_.query().mem_used;
    std::uint64_t victim_ = 0;
    std::string name_ = unique_name("failnth");
    std::vector<std::byte> buffer_ = std::vector<std::byte>(kLength);
    std::array<lite_lmr_info, 8> infos_{};
    lite_ioc_alloc args_{};
    lite_ioc_map map_{};
    int file_ = -1;
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
