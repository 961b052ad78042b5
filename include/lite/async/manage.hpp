// SPDX-License-Identifier: MIT
//
// liblite for C++20: awaitable operations on LMRs as a whole; a part of lite::executor
// (<lite/async.hpp>).
//
// Each function behaves, and throws, as the one of the same name in <lite/lite.hpp>. It also throws
// ECANCELED, if a stop was requested, and EINTR, if the process was stopped for a while; it is then
// unknown whether the LMR was made, freed or changed. Names are copied and checked at the call.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lite/async/engine.hpp>
#include <lite/lite.hpp>

namespace lite {

// An LMR by handle, which must stay, or by name, which is copied.
class lmr_or_name {
  public:
    // @throws error: EBADF, if it is 0
    lmr_or_name(lite_lh_t handle) : m_lh(handle), m_name(std::string_view()) {
        if (!handle)
            throw error(EBADF, "a handle");
    }
    lmr_or_name(const region& of) : lmr_or_name(of.handle()) {}

    // @throws error: EINVAL (empty, or a NUL inside), ENAMETOOLONG
    lmr_or_name(std::string_view name) : m_name(name) {
        if (name.empty())
            throw error(EINVAL, "an empty name");
    }
    lmr_or_name(const char* name) : lmr_or_name(std::string_view(name)) {}
    lmr_or_name(const std::string& name) : lmr_or_name(std::string_view(name)) {}

    // 0: by name.
    lite_lh_t handle() const noexcept { return m_lh; }
    // Empty: by handle.
    const char* name() const noexcept { return m_name.get(); }

  private:
    lite_lh_t m_lh = 0;
    detail::c_name m_name;
};

class manage_calls {
  public:
    explicit manage_calls(detail::engine& on) noexcept : m_engine(on) {}
    manage_calls(const manage_calls&) = delete;
    manage_calls& operator=(const manage_calls&) = delete;

    // Makes an LMR and opens it with all rights that its mode gives. Not unpinned: EINVAL.
    // @throws error as lite_alloc(); ECANCELED, EINTR
    task<region> alloc(const alloc_options& options, std::stop_token stop = {}) {
        refuse_unpinned(options);
        return make(detail::c_name(options.name), options.length, options.nodes, options.mode,
                    std::move(stop));
    }

    // Makes a named LMR without opening it. Not unpinned: EINVAL.
    // @throws error as lite_alloc(); ECANCELED, EINTR
    task<> create(const alloc_options& options, std::stop_token stop = {}) {
        refuse_unpinned(options);
        return make_only(detail::c_name(options.name), options.length, options.nodes, options.mode,
                         std::move(stop));
    }

    // Opens an LMR. @throws error as lite_map(); ECANCELED, EINTR
    task<region> map(std::string_view name, rights wanted = rights::read | rights::write,
                     std::stop_token stop = {}) {
        return open(lmr_or_name(name), wanted, std::move(stop));
    }

    // Makes an LMR of memory of the process, whole pages, without a copy; anonymous if @name is
    // empty. The destructor of the result blocks until no node can reach the memory; to await that,
    // call free() on its region.
    // @throws error as lite_register(); ECANCELED, EINTR
    task<registration> register_memory(std::span<std::byte> memory, std::string_view name = {},
                                       std::uint32_t mode = 0600, std::stop_token stop = {}) {
        return enrol(memory, detail::c_name(name), mode, std::move(stop));
    }

    // Closes a handle: @of then owns nothing. @throws error: EBADF; ECANCELED, EINTR
    task<> unmap(region& of, std::stop_token stop = {}) {
        lite_ctx* const ctx = m_engine.ctx();
        lite_ioc_unmap args{};
        args.lh = of.handle();
        lite_uring_unmapping(ctx, args.lh);
        const auto tell = [ctx, lh = args.lh](int result) noexcept {
            lite_uring_unmapped(ctx, lh, result);
        };
        co_await told(LITE_IOC_UNMAP, args, "unmap", std::move(stop), tell);
        of.release();
    }

    // Frees an LMR, everywhere. A handle, which must have rights::master, is closed; a region then
    // owns nothing.
    // @throws error as lite_free(), lite_free_name(); ECANCELED, EINTR
    task<> free(region& of, std::stop_token stop = {}) {
        co_await free(lmr_or_name(of), std::move(stop));
        of.release();
    }

    task<> free(lmr_or_name of, std::stop_token stop = {}) {
        lite_ioc_free args{};
        choose(args, of);
        const auto tell = [ctx = m_engine.ctx(), lh = args.lh](int result) noexcept {
            lite_uring_freed(ctx, lh, result);
        };
        co_await told(LITE_IOC_FREE, args, detail::describe("free", of.name()), std::move(stop),
                      tell);
    }

    // @throws error as lite_stat(), lite_stat_name(); ECANCELED
    task<lmr_status> stat(lmr_or_name of, std::stop_token stop = {}) {
        lmr_status status{{}, std::vector<std::uint32_t>(LITE_SPREAD_MAX)};
        lite_ioc_stat args{};
        args.lh = of.handle();
        std::memcpy(args.info.name, of.name(), sizeof(args.info.name));
        args.nodes = reinterpret_cast<std::uintptr_t>(status.nodes.data());
        args.n_nodes = LITE_SPREAD_MAX;
        co_await looked(LITE_IOC_STAT, args, detail::describe("stat", of.name()), std::move(stop));
        status.info = args.info;
        status.nodes.resize(std::min<std::size_t>(args.n_nodes, LITE_SPREAD_MAX));
        co_return status;
    }

    // All LMRs of the cluster. @throws error as lite_list(); ECANCELED
    task<std::vector<lmr_info>> list(std::stop_token stop = {}) {
        constexpr std::uint32_t batch = 64;
        std::vector<lmr_info> all;
        lite_ioc_list args{};
        do {
            const std::size_t before = all.size();
            all.resize(before + batch);
            args.infos = reinterpret_cast<std::uintptr_t>(all.data() + before);
            args.n_infos = batch;
            args.info_size = sizeof(lmr_info);
            co_await looked(LITE_IOC_LIST, args, "list", stop);
            if (args.n_infos > batch)
                throw error(EPROTO, "list");
            all.resize(before + args.n_infos);
        } while (args.cursor);
        co_return all;
    }

    // Sets the rights granted to a user; rights::none removes the grant, also from open handles.
    // @throws error as lite_grant_set(), lite_grant_set_name(); ECANCELED, EINTR
    task<> grant(lmr_or_name on, lite::grant to, std::stop_token stop = {}) {
        lite_ioc_grant args{};
        choose(args, on);
        args.grant.uid = to.uid;
        args.grant.node = to.node;
        args.grant.rights = static_cast<std::uint32_t>(to.allowed);
        co_await done(LITE_IOC_GRANT, args, "grant", on, std::move(stop));
    }

    // @throws error as lite_grants(), lite_grants_name(); ECANCELED
    task<std::vector<lite::grant>> grants(lmr_or_name on, std::stop_token stop = {}) {
        std::array<::lite_grant, LITE_GRANTS_MAX> found{};
        lite_ioc_grants args{};
        choose(args, on);
        args.grants = reinterpret_cast<std::uintptr_t>(found.data());
        args.n_grants = LITE_GRANTS_MAX;
        args.grant_size = sizeof(::lite_grant);
        co_await looked(LITE_IOC_GRANTS, args, detail::describe("grants", on.name()),
                        std::move(stop));
        std::vector<lite::grant> all;
        for (std::size_t i = 0; i < std::min<std::size_t>(args.n_grants, found.size()); i++)
            all.push_back({found[i].uid, found[i].node, rights(found[i].rights)});
        co_return all;
    }

    // @throws error as lite_setattr(), lite_setattr_name(); ECANCELED, EINTR
    task<> chmod(lmr_or_name of, std::uint32_t mode, std::stop_token stop = {}) {
        return set_attributes(of, keep, keep, mode, "chmod", std::move(stop));
    }

    // Either may be lite::keep.
    // @throws error as lite_setattr(), lite_setattr_name(); ECANCELED, EINTR
    task<> chown(lmr_or_name of, std::uint32_t uid, std::uint32_t gid, std::stop_token stop = {}) {
        return set_attributes(of, uid, gid, keep, "chown", std::move(stop));
    }

    // Renames an LMR, or names an anonymous one, which then outlives the context.
    // @throws error as lite_rename(), lite_rename_name(); ECANCELED, EINTR
    task<> rename(lmr_or_name from, std::string_view to, std::stop_token stop = {}) {
        return rename_to(from, lmr_or_name(to), std::move(stop));
    }

    // Extends an LMR by zeroes, or truncates it; @length is in bytes. Only @of gets the new
    // length(), not other regions.
    // @throws error as lite_resize(), lite_resize_name(); ECANCELED, EINTR
    task<> resize(region& of, std::uint64_t length, std::stop_token stop = {}) {
        co_await resize(lmr_or_name(of), length, std::move(stop));
        of.m_length = length;
    }

    task<> resize(lmr_or_name of, std::uint64_t length, std::stop_token stop = {}) {
        lite_ioc_resize args{};
        choose(args, of);
        args.length = length;
        co_await done(LITE_IOC_RESIZE, args, "resize", of, std::move(stop));
    }

    // Moves @length bytes at @offset, rounded outwards to pages, to another node's memory; @length
    // 0: everything from @offset on.
    // @throws error as lite_move(), lite_move_name(), with transferred(); ECANCELED, EINTR
    task<> move(lmr_or_name of, std::uint32_t node, std::uint64_t offset = 0,
                std::uint64_t length = 0, std::stop_token stop = {}) {
        lite_ioc_move args{};
        choose(args, of);
        args.offset = offset;
        args.length = length;
        args.node = node;
        const int err = co_await m_engine.command(LITE_IOC_MOVE, args, std::move(stop));
        if (err)
            throw error(err, detail::describe("move", of.name()), args.moved);
    }

  private:
    // An unpinned LMR needs memory of the library, which only lite_alloc() makes.
    static void refuse_unpinned(const alloc_options& options) {
        if (options.unpinned || options.leased)
            throw error(EINVAL, detail::describe("alloc", options.name));
    }

    template <std::size_t N>
    static void copy_name(char (&field)[N], const char* name) noexcept {
        static_assert(N == LITE_NAME_SIZE);
        std::memcpy(field, name, N);
    }

    template <typename Args>
    static void choose(Args& args, const lmr_or_name& of) noexcept {
        args.lh = of.handle();
        copy_name(args.name, of.name());
    }

    // Tells the library of the result, also if the coroutine is never resumed.
    template <typename Args, typename Tell>
    task<> told(unsigned number, Args& args, std::string doing, std::stop_token stop, Tell tell) {
        const detail::ioctl_of prepare(m_engine, number, args);
        detail::submission ended(m_engine, prepare, std::move(stop), tell);
        const int err = co_await ended;
        tell(err);
        if (err)
            throw error(err, doing);
    }

    template <typename Args>
    task<> done(unsigned number, Args& args, const char* doing, const lmr_or_name& to,
                std::stop_token stop) {
        const int err = co_await m_engine.command(number, args, std::move(stop));
        if (err)
            throw error(err, detail::describe(doing, to.name()));
    }

    // Idempotent, so it can be retried.
    template <typename Args>
    task<> looked(unsigned number, Args& args, std::string doing, std::stop_token stop) {
        const detail::ioctl_of prepare(m_engine, number, args);
        const int err = co_await m_engine.persist(prepare, std::move(stop));
        if (err)
            throw error(err, doing);
    }

    // Closes the handle if the coroutine is never resumed.
    template <typename Args>
    task<> opened(unsigned number, Args& args, std::string doing, std::stop_token stop) {
        lite_ctx* const ctx = m_engine.ctx();
        const auto undo = [&args, ctx](int result) noexcept {
            if (!result)
                lite_unmap(ctx, args.lh);
        };
        const detail::ioctl_of prepare(m_engine, number, args);
        detail::submission tried(m_engine, prepare, std::move(stop), undo);
        const int err = co_await tried;
        if (err)
            throw error(err, doing);
    }

    static lite_ioc_alloc to_make(const detail::c_name& name, std::uint64_t length,
                                  const std::vector<std::uint32_t>& nodes,
                                  std::uint32_t mode) noexcept {
        lite_ioc_alloc args{};
        copy_name(args.name, name.get());
        args.length = length;
        args.nodes = reinterpret_cast<std::uintptr_t>(nodes.data());
        args.n_nodes = static_cast<std::uint32_t>(nodes.size());
        args.mode = mode;
        return args;
    }

    task<region> make(detail::c_name name, std::uint64_t length, std::vector<std::uint32_t> nodes,
                      std::uint32_t mode, std::stop_token stop) {
        lite_ioc_alloc args = to_make(name, length, nodes, mode);
        co_await opened(LITE_IOC_ALLOC, args, detail::describe("alloc", name.get()),
                        std::move(stop));
        co_return region(m_engine.ctx(), args.lh, length);
    }

    task<> make_only(detail::c_name name, std::uint64_t length, std::vector<std::uint32_t> nodes,
                     std::uint32_t mode, std::stop_token stop) {
        lite_ioc_alloc args = to_make(name, length, nodes, mode);
        args.flags = LITE_ALLOC_NO_HANDLE;
        const int err = co_await m_engine.command(LITE_IOC_ALLOC, args, std::move(stop));
        if (err)
            throw error(err, detail::describe("alloc", name.get()));
    }

    task<region> open(lmr_or_name which, rights wanted, std::stop_token stop) {
        lite_ioc_map args{};
        copy_name(args.name, which.name());
        args.rights = static_cast<std::uint32_t>(wanted);
        co_await opened(LITE_IOC_MAP, args, detail::describe("map", which.name()), std::move(stop));
        co_return region(m_engine.ctx(), args.lh, args.length);
    }

    task<registration> enrol(std::span<std::byte> memory, detail::c_name name, std::uint32_t mode,
                             std::stop_token stop) {
        lite_ctx* const ctx = m_engine.ctx();
        lite_ioc_register args{};
        copy_name(args.name, name.get());
        args.addr = reinterpret_cast<std::uintptr_t>(memory.data());
        args.length = memory.size();
        args.mode = mode;
        // Frees the LMR rather than just its handle: the memory may go with the coroutine's owner.
        const auto undo = [&args, ctx](int result) noexcept {
            if (!result)
                lite_free(ctx, args.lh);
        };
        const detail::ioctl_of prepare(m_engine, LITE_IOC_REGISTER, args);
        detail::submission tried(m_engine, prepare, std::move(stop), undo);
        const int err = co_await tried;
        if (err)
            throw error(err, detail::describe("register", name.get()));
        co_return registration(region(ctx, args.lh, memory.size()));
    }

    task<> set_attributes(lmr_or_name of, std::uint32_t uid, std::uint32_t gid, std::uint32_t mode,
                          const char* doing, std::stop_token stop) {
        lite_ioc_setattr args{};
        choose(args, of);
        args.uid = uid;
        args.gid = gid;
        args.mode = mode;
        co_await done(LITE_IOC_SETATTR, args, doing, of, std::move(stop));
    }

    task<> rename_to(lmr_or_name from, lmr_or_name to, std::stop_token stop) {
        lite_ioc_rename args{};
        choose(args, from);
        copy_name(args.to, to.name());
        co_await done(LITE_IOC_RENAME, args, "rename", from, std::move(stop));
    }

    detail::engine& m_engine;
};

}  // namespace lite
