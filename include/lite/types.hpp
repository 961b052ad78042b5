// SPDX-License-Identifier: MIT
//
// liblite for C++20: errors, time-outs, rights, descriptions of LMRs, and types that may be moved
// as bytes. Included by <lite/lite.hpp>.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include <pthread.h>
#include <unistd.h>

#include <lite/lite.h>

namespace lite {

// The category of LITE's errno values, called "lite": codes compare equal to std::errc and have the
// texts of lite_strerror().
inline const std::error_category& category() noexcept {
    class lite_category final : public std::error_category {
        const char* name() const noexcept override { return "lite"; }
        std::string message(int code) const override { return lite_strerror(code); }
        std::error_condition default_error_condition(int code) const noexcept override {
            return {code, std::generic_category()};
        }
    };
    static const lite_category instance;
    return instance;
}

// As category(), for functions and calls: called "lite-rpc", with the texts of
// lite_rpc_strerror().
inline const std::error_category& rpc_category() noexcept {
    class lite_rpc_category final : public std::error_category {
        const char* name() const noexcept override { return "lite-rpc"; }
        std::string message(int code) const override { return lite_rpc_strerror(code); }
        std::error_condition default_error_condition(int code) const noexcept override {
            return {code, std::generic_category()};
        }
    };
    static const lite_rpc_category instance;
    return instance;
}

// Thrown by every function here, besides std::bad_alloc.
class error : public std::system_error {
  public:
    // @code: errno, positive or negative. @doing: what failed, as "map foo". @transferred: leading
    // bytes that a failed transfer is known to have moved. @in: category of the text.
    error(int code, const std::string& doing, std::uint64_t transferred = 0,
          const std::error_category& in = category())
        : std::system_error(code < 0 ? -code : code, in, doing), m_transferred(transferred) {}

    // For transfers and moves; 0 if nothing is known to have been moved, and for everything else.
    std::uint64_t transferred() const noexcept { return m_transferred; }

  private:
    std::uint64_t m_transferred;
};

// How long to wait: a time, taken as 1 ms if it is less and as a day if it is more, or one of the
// constants, which mean what those of <lite/lite.h> do. Their values are none that the time left
// until a deadline may have: a deadline that has passed means neither no_wait nor forever.
using timeout = std::chrono::milliseconds;
inline constexpr timeout no_wait = timeout::min();
inline constexpr timeout default_timeout = timeout::min() + timeout(1);
inline constexpr timeout forever = timeout::max();

namespace detail {

// As the C functions want it.
constexpr int milliseconds(timeout t) noexcept {
    if (t == no_wait)
        return LITE_NOWAIT;
    if (t == default_timeout)
        return LITE_TIMEOUT_DEFAULT;
    if (t == forever)
        return LITE_FOREVER;
    return static_cast<int>(std::clamp<std::int64_t>(t.count(), 1, LITE_TIMEOUT_MAX));
}

}  // namespace detail

enum class rights : std::uint32_t {
    none = 0,
    read = LITE_RIGHT_READ,
    write = LITE_RIGHT_WRITE,
    atomic = LITE_RIGHT_ATOMIC,
    share = LITE_RIGHT_SHARE,    // grant one's own rights to others
    master = LITE_RIGHT_MASTER,  // free it, change it, grant anything
    all = LITE_RIGHTS_ALL,
};

constexpr rights operator|(rights a, rights b) noexcept {
    return rights(std::uint32_t(a) | std::uint32_t(b));
}

constexpr rights operator&(rights a, rights b) noexcept {
    return rights(std::uint32_t(a) & std::uint32_t(b));
}

constexpr rights operator^(rights a, rights b) noexcept {
    return rights(std::uint32_t(a) ^ std::uint32_t(b));
}

// The complement within rights::all.
constexpr rights operator~(rights a) noexcept { return a ^ rights::all; }

constexpr rights& operator|=(rights& a, rights b) noexcept { return a = a | b; }

constexpr rights& operator&=(rights& a, rights b) noexcept { return a = a & b; }

constexpr rights& operator^=(rights& a, rights b) noexcept { return a = a ^ b; }

using node_info = ::lite_ioc_query;
using lmr_info = ::lite_lmr_info;

// Name in a description; empty for an anonymous LMR.
inline std::string_view name_of(const lmr_info& info) noexcept {
    return {info.name, ::strnlen(info.name, sizeof(info.name))};
}

// A description of an LMR, and the ids of the nodes that it is spread over.
struct lmr_status {
    lmr_info info;
    std::vector<std::uint32_t> nodes;
};

// In place of a uid, a gid or a mode: do not change it.
inline constexpr std::uint32_t keep = LITE_KEEP;

// In place of a node id: every node.
inline constexpr std::uint32_t every_node = 0;

// Rights granted to a user beyond those of owner, group and mode.
struct grant {
    std::uint32_t uid;
    std::uint32_t node;  // id, or every_node
    rights allowed;

    bool operator==(const grant&) const = default;
};

namespace detail {

// What tells a process from its parent and siblings where process ids do not: each namespace of
// pid_namespaces(7) has a process 1.
struct forks {
    std::uint32_t count;  // of the fork(2)s from the first process to this one
    std::uint32_t time;   // of the last one, in ns, modulo 2^32
};

[[gnu::visibility("default")]] inline forks forked{};
[[gnu::visibility("default")]] inline const int fork_handler =
    ::pthread_atfork(nullptr, nullptr, [] {
        timespec now{};
        ::clock_gettime(CLOCK_MONOTONIC, &now);
        forked.count++;
        forked.time = static_cast<std::uint32_t>(now.tv_sec) * 1'000'000'000U +
                      static_cast<std::uint32_t>(now.tv_nsec);
    });

// The process that made something in the kernel. A child of fork(2) has a copy of the object, but
// the thing itself is still its maker's to release.
class maker {
  public:
    // No process: there is nothing to release.
    maker() noexcept = default;
    static maker self() noexcept { return maker(number()); }

    // Asks the kernel for the process id, as clone(2) runs no fork handlers. Too slow for fast
    // paths.
    bool is_self() const noexcept { return m_number == number(); }

  private:
    explicit maker(std::uint32_t number) noexcept : m_number(number) {}

    // Linux has process ids of 1 to 2^22 - 1.
    static std::uint32_t number() noexcept {
        return static_cast<std::uint32_t>(::getpid()) | forked.count << 22;
    }

    std::uint32_t m_number = 0;
};

// A name as the C API wants it: NUL-terminated, without a NUL inside.
class c_name {
  public:
    // @throws error: EINVAL (a NUL inside), ENAMETOOLONG
    explicit c_name(std::string_view name) {
        if (name.size() > LITE_NAME_MAX)
            throw error(ENAMETOOLONG, std::string(name.substr(0, 32)) + "...");
        if (name.find('\0') != std::string_view::npos)
            throw error(EINVAL, "a name with a NUL byte");
        name.copy(m_bytes.data(), name.size());
    }

    const char* get() const noexcept { return m_bytes.data(); }

  private:
    std::array<char, LITE_NAME_SIZE> m_bytes{};
};

inline std::string describe(std::string_view verb, std::string_view name) {
    std::string text(verb);
    if (!name.empty())
        text.append(" ").append(name);
    return text;
}

// The grants that @list(grants, &n) reports.
template <typename List>
std::vector<grant> grants(List list) {
    std::array<::lite_grant, LITE_GRANTS_MAX> found{};
    auto n = static_cast<std::uint32_t>(found.size());
    list(found.data(), &n);
    std::vector<grant> all;
    for (std::size_t i = 0; i < std::min<std::size_t>(n, found.size()); i++)
        all.push_back({found[i].uid, found[i].node, rights(found[i].rights)});
    return all;
}

template <typename T>
constexpr bool is_char_array =
    std::is_array_v<T>&& std::is_same_v<std::remove_cv_t<std::remove_extent_t<T>>, char>;

}  // namespace detail

// An object that can be moved as bytes, with the same meaning on every node: no pointers and no
// views.
template <typename T>
concept plain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_array_v<T> &&
                !std::ranges::view<T>;

// Several plain objects in a row: std::vector, std::array, std::span. String literals are text, and
// excluded.
template <typename R>
concept plain_range = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                      !detail::is_char_array<std::remove_reference_t<R>> &&
                      std::is_trivially_copyable_v<std::ranges::range_value_t<R>> &&
                      !std::is_pointer_v<std::ranges::range_value_t<R>>;

}  // namespace lite
