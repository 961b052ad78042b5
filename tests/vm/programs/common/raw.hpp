// SPDX-License-Identifier: MIT
// /dev/liteN without liblite in between, so that tests can make calls that the library never would.
#pragma once

#include "uapi/lite.h"

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lite_test {

// The result of a system call: 0 or a positive errno; prints as its name.
struct Errno {
    int value = 0;
    friend bool operator==(const Errno&, const Errno&) = default;
};
std::ostream& operator<<(std::ostream& out, const Errno& e);

inline constexpr Errno ok{};
constexpr Errno err(int value) { return Errno{value}; }

// Copies @name into a name field, with a NUL if there is room for it.
void set_name(std::span<char, LITE_NAME_SIZE> field, std::string_view name);

lite_ioc_query query_args();
lite_ioc_alloc alloc_args(std::string_view name, std::uint64_t length, std::uint32_t mode = 0600,
                          std::uint32_t flags = 0);
void set_nodes(lite_ioc_alloc& args, std::span<const std::uint32_t> nodes);
lite_ioc_map map_args(std::string_view name, std::uint32_t rights);
lite_ioc_unmap unmap_args(std::uint64_t lh);
lite_ioc_free free_args(std::uint64_t lh);
lite_ioc_free free_args(std::string_view name);
lite_ioc_stat stat_args(std::uint64_t lh);
lite_ioc_stat stat_args(std::string_view name);
lite_ioc_list list_args(std::span<lite_lmr_info> infos, std::uint64_t cursor = 0);
lite_op read_args(std::uint64_t lh, std::uint64_t offset, void* buf, std::uint64_t length);
lite_op write_args(std::uint64_t lh, std::uint64_t offset, const void* buf, std::uint64_t length);
lite_op fetch_add_args(std::uint64_t lh, std::uint64_t offset, std::uint64_t addend);
lite_op cmp_swap_args(std::uint64_t lh, std::uint64_t offset, std::uint64_t expected,
                      std::uint64_t desired);

// The target of a call: a handle, or a name.
struct Target {
    Target(std::uint64_t handle) : lh(handle) {}
    Target(std::string_view text) : name(text) {}
    Target(const std::string& text) : name(text) {}
    std::uint64_t lh = 0;
    std::string_view name;
};

lite_ioc_grant grant_args(Target on, std::uint32_t uid, std::uint32_t node, std::uint32_t rights);
lite_ioc_grants grants_args(Target of, std::span<lite_grant> room);
lite_ioc_setattr setattr_args(Target of, std::uint32_t uid, std::uint32_t gid, std::uint32_t mode);
lite_ioc_rename rename_args(Target from, std::string_view to);
lite_ioc_resize resize_args(Target of, std::uint64_t length);
lite_ioc_move move_args(Target of, std::uint32_t node, std::uint64_t offset = 0,
                        std::uint64_t length = 0);

// An open file of /dev/liteN. The calls return the kernel's result; the helpers below them throw
// std::runtime_error if it is not 0.
class Device {
  public:
    explicit Device(unsigned index = 0);
    ~Device();
    Device(Device&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Device& operator=(Device&& other) noexcept;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    int fd() const { return fd_; }
    void close();

    Errno call(unsigned long request, void* argument) const;
    Errno operator()(lite_ioc_query& a) const { return call(LITE_IOC_QUERY, &a); }
    Errno operator()(lite_ioc_alloc& a) const { return call(LITE_IOC_ALLOC, &a); }
    Errno operator()(lite_ioc_map& a) const { return call(LITE_IOC_MAP, &a); }
    Errno operator()(lite_ioc_unmap& a) const { return call(LITE_IOC_UNMAP, &a); }
    Errno operator()(lite_ioc_free& a) const { return call(LITE_IOC_FREE, &a); }
    Errno operator()(lite_op& a) const { return call(LITE_IOC_OP, &a); }
    Errno operator()(lite_ioc_stat& a) const { return call(LITE_IOC_STAT, &a); }
    Errno operator()(lite_ioc_list& a) const { return call(LITE_IOC_LIST, &a); }
    Errno operator()(lite_ioc_grant& a) const { return call(LITE_IOC_GRANT, &a); }
    Errno operator()(lite_ioc_grants& a) const { return call(LITE_IOC_GRANTS, &a); }
    Errno operator()(lite_ioc_setattr& a) const { return call(LITE_IOC_SETATTR, &a); }
    Errno operator()(lite_ioc_rename& a) const { return call(LITE_IOC_RENAME, &a); }
    Errno operator()(lite_ioc_resize& a) const { return call(LITE_IOC_RESIZE, &a); }
    Errno operator()(lite_ioc_move& a) const { return call(LITE_IOC_MOVE, &a); }

    // For arguments that are used once: dev(read_args(...)).
    template <typename Args>
    requires(!std::is_lvalue_reference_v<Args>) Errno operator()(Args&& args) const {
        return (*this)(args);
    }

    lite_ioc_query query() const;
    std::uint64_t alloc(std::uint64_t length, std::span<const std::uint32_t> nodes = {},
                        std::string_view name = {}, std::uint32_t mode = 0600) const;
    std::uint64_t map(std::string_view name, std::uint32_t rights = LITE_RIGHT_READ |
                                                                    LITE_RIGHT_WRITE |
                                                                    LITE_RIGHT_ATOMIC) const;
    void unmap(std::uint64_t lh) const;
    void free(std::uint64_t lh) const;
    void free(std::string_view name) const;
    void read(std::uint64_t lh, std::uint64_t offset, std::span<std::byte> into) const;
    void write(std::uint64_t lh, std::uint64_t offset, std::span<const std::byte> from) const;
    std::uint64_t fetch_add(std::uint64_t lh, std::uint64_t offset, std::uint64_t addend) const;
    std::uint64_t cmp_swap(std::uint64_t lh, std::uint64_t offset, std::uint64_t expected,
                           std::uint64_t desired) const;
    lite_lmr_info stat(std::string_view name) const;
    std::vector<lite_lmr_info> list(std::uint32_t at_a_time = 64) const;
    void grant(Target on, std::uint32_t uid, std::uint32_t node, std::uint32_t rights) const;
    std::vector<lite_grant> grants(Target of) const;
    void chmod(Target of, std::uint32_t mode) const;
    void rename(Target from, std::string_view to) const;
    void resize(Target of, std::uint64_t length) const;
    void move(Target of, std::uint32_t node, std::uint64_t offset = 0,
              std::uint64_t length = 0) const;
    // The ids of the nodes with the memory of the LMR.
    std::vector<std::uint32_t> places(Target of) const;

  private:
    int fd_ = -1;
};

// Waits until the node gives no memory to LMRs; throws Failure. LMRs with their home at another
// node may be freed a little after the close(2) of an earlier test.
void wait_until_unused(const Device& dev);

// A named LMR that is freed at the end of the scope, through a file of its own, whatever the test
// did to the first file. The test may free it itself.
class NamedLmr {
  public:
    NamedLmr(const Device& dev, std::uint64_t length, std::span<const std::uint32_t> nodes = {},
             std::uint32_t mode = 0600, std::string_view stem = "lmr");
    ~NamedLmr();
    NamedLmr(const NamedLmr&) = delete;
    NamedLmr& operator=(const NamedLmr&) = delete;

    const std::string& name() const { return name_; }
    std::uint64_t lh() const { return lh_; }

  private:
    std::string name_;
    std::uint64_t lh_;
};

}  // namespace lite_test
