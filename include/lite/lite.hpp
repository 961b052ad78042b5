// SPDX-License-Identifier: MIT
//
// liblite for C++20: named memory on the machines of a LITE cluster.
//
//	lite::context node;
//	auto table = node.alloc({.name = "table", .length = 1 << 20, .nodes = {2, 3}});
//	table.write(0, "hello");
//	auto copy = node.map("table", lite::rights::read | lite::rights::atomic);
//	auto words = copy.load<std::array<std::uint32_t, 4>>(64);
//
// A thin layer over <lite/lite.h>, which documents it in detail; there is nothing to link but
// liblite. Failures are thrown as lite::error, a std::system_error: `e.code() ==
// std::errc::result_out_of_range` works. Several threads may use an object at once, except to move,
// swap, assign or destroy it, and except for region::unmap(), free(), resize(), set_priority() and
// release(), and registration::release(), which change the object itself. context::resize() changes
// only the LMR.
//
// Destructors release what this process has made. In a child of fork(2), objects inherited from the
// parent release only the child's memory and descriptor. Functions called explicitly, such as
// region::unmap() and free(), act in a child as well; see <lite/lite.h>.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <lite/lite.h>
#include <lite/memory_map.hpp>
#include <lite/sync.hpp>
#include <lite/types.hpp>

namespace lite {

// A mapped LMR: owns its handle and unmaps it in the destructor, in the process that made the
// object. The context must outlive it. Offsets and lengths are in bytes.
class region {
  public:
    // An empty region: everything but assigning to it fails with EBADF.
    region() noexcept = default;

    // Takes ownership of handle @lh of @ctx, of an LMR of @length bytes.
    region(lite_ctx* ctx, lite_lh_t lh, std::uint64_t length) noexcept
        : m_ctx(ctx), m_lh(lh), m_length(length), m_maker(detail::maker::self()) {}

    region(region&& other) noexcept
        : m_ctx(std::exchange(other.m_ctx, nullptr)),
          m_lh(std::exchange(other.m_lh, 0)),
          m_length(std::exchange(other.m_length, 0)),
          m_maker(other.m_maker),
          m_priority(other.m_priority) {}

    region& operator=(region&& other) noexcept {
        region taken(std::move(other));
        swap(taken);
        return *this;
    }

    ~region() {
        // Fails only if the handle is already gone.
        if (m_lh && !inherited())
            lite_unmap(m_ctx, m_lh);
    }

    void swap(region& other) noexcept {
        std::swap(m_ctx, other.m_ctx);
        std::swap(m_lh, other.m_lh);
        std::swap(m_length, other.m_length);
        std::swap(m_maker, other.m_maker);
        std::swap(m_priority, other.m_priority);
    }

    // Is this a copy, made by fork(2), of an object of the parent? The handle is valid in both.
    bool inherited() const noexcept { return m_lh && !m_maker.is_self(); }

    explicit operator bool() const noexcept { return m_lh != 0; }
    lite_lh_t handle() const noexcept { return m_lh; }
    // The length when the LMR was mapped, or after resize() of this object; stat() asks the home.
    std::uint64_t length() const noexcept { return m_length; }

    // The priority of this object's operations: LITE_PRIORITY(class), class 0 (highest) to 7; or
    // LITE_PRIORITY_DEFAULT, that of the context. They fail with EPERM if the class is above the
    // user's ceiling, and with EINVAL if there is no such class.
    std::uint8_t priority() const noexcept { return m_priority; }
    void set_priority(std::uint8_t priority) noexcept { m_priority = priority; }

    // Gives up the handle without closing it.
    lite_lh_t release() noexcept {
        m_ctx = nullptr;
        m_length = 0;
        return std::exchange(m_lh, 0);
    }

    // Closes the handle. @throws error: EBADF
    void unmap() {
        check(lite_unmap(live("unmap"), m_lh), "unmap");
        release();
    }

    // Frees the LMR, everywhere, and closes the handle, which must have rights::master. The handle
    // stays open on failure.
    // @throws error as lite_free()
    void free() {
        check(lite_free(live("free"), m_lh), "free");
        release();
    }

    // Reads exactly @to.size() bytes, at least one.
    // @throws error as lite_read(), with transferred()
    void read(std::uint64_t offset, std::span<std::byte> to) const {
        transfer(LITE_OP_READ, offset, to.data(), to.size(), "read");
    }

    template <plain_range R>
    requires(!std::is_const_v<std::remove_reference_t<
                 std::ranges::range_reference_t<R>>>) void read(std::uint64_t offset,
                                                                R&& to) const {
        read(offset,
             std::as_writable_bytes(std::span(std::ranges::data(to), std::ranges::size(to))));
    }

    // Writes exactly @from.size() bytes, at least one.
    // @throws error as lite_write(), with transferred()
    void write(std::uint64_t offset, std::span<const std::byte> from) {
        transfer(LITE_OP_WRITE, offset, from.data(), from.size(), "write");
    }

    template <plain_range R>
    void write(std::uint64_t offset, const R& from) {
        write(offset, std::as_bytes(std::span(std::ranges::data(from), std::ranges::size(from))));
    }

    // The same for a text, without a terminating NUL.
    void write(std::uint64_t offset, std::string_view text) {
        write(offset, std::as_bytes(std::span(text.data(), text.size())));
    }

    // Reads one object. @throws error as lite_read()
    template <plain T>
    T load(std::uint64_t offset) const {
        std::array<std::byte, sizeof(T)> bytes;
        read(offset, std::span<std::byte>(bytes));
        return std::bit_cast<T>(bytes);
    }

    // Writes one object. @throws error as lite_write()
    template <plain T>
    void store(std::uint64_t offset, const T& value) {
        write(offset, std::as_bytes(std::span(std::addressof(value), 1)));
    }

    // Adds to the 8-byte word at @offset, modulo 2^64, and returns its previous value.
    // @throws error as lite_fetch_add()
    std::uint64_t fetch_add(std::uint64_t offset, std::uint64_t add) {
        return operate(LITE_OP_FETCH_ADD, offset, word_bytes, add, 0, "fetch-add");
    }

    // Replaces the 8-byte word at @offset by @desired if it is @expected; returns its previous
    // value.
    // @throws error as lite_cmp_swap()
    std::uint64_t compare_swap(std::uint64_t offset, std::uint64_t expected,
                               std::uint64_t desired) {
        return operate(LITE_OP_CMP_SWAP, offset, word_bytes, expected, desired, "compare-swap");
    }

    // As std::atomic: true if replaced, else @expected becomes the value found.
    bool compare_exchange(std::uint64_t offset, std::uint64_t& expected, std::uint64_t desired) {
        const auto old = compare_swap(offset, expected, desired);
        return std::exchange(expected, old) == old;
    }

    // Maps @length bytes at @offset, a multiple of the page size, into the process; all of them
    // must be in this machine's memory.
    // @throws error as lite_mmap()
    memory_map mmap(std::uint64_t offset, std::size_t length,
                    protection wanted = protection::read_write, std::uint32_t flags = 0) const {
        void* data = nullptr;
        check(lite_mmap(live("mmap"), m_lh, offset, length, static_cast<int>(wanted), flags, &data),
              "mmap");
        return {data, length};
    }

    // All of the LMR. @throws error as lite_mmap(); EFBIG, if it is longer than a 32-bit program
    // can map
    memory_map mmap(protection wanted = protection::read_write) const {
        if (!std::in_range<std::size_t>(m_length))
            throw error(EFBIG, "mmap");
        return mmap(0, m_length, wanted);
    }

    // Replaces the 8-byte word at @offset and returns its previous value.
    // @throws error as lite_swap()
    std::uint64_t exchange(std::uint64_t offset, std::uint64_t desired) {
        return operate(LITE_OP_SWAP, offset, word_bytes, desired, 0, "swap");
    }

    // Clears the bits of the 8-byte word at @offset that are not in @mask and returns its previous
    // value.
    // @throws error as lite_fetch_and()
    std::uint64_t fetch_and(std::uint64_t offset, std::uint64_t mask) {
        return operate(LITE_OP_FETCH_AND, offset, word_bytes, mask, 0, "fetch-and");
    }

    // Sets bits of the 8-byte word at @offset and returns its previous value.
    // @throws error as lite_fetch_or()
    std::uint64_t fetch_or(std::uint64_t offset, std::uint64_t bits) {
        return operate(LITE_OP_FETCH_OR, offset, word_bytes, bits, 0, "fetch-or");
    }

    // Fills @length bytes, at least one, with a pattern of 1 to 8 bytes.
    // @throws error as lite_set(), with transferred()
    void set(std::uint64_t offset, std::uint64_t length, std::span<const std::byte> pattern) {
        if (pattern.empty() || pattern.size() > sizeof(std::uint64_t))
            throw error(EINVAL, "set");
        std::uint64_t word = 0;
        for (std::size_t i = pattern.size(); i-- > 0;)
            word = word << 8 | std::to_integer<std::uint64_t>(pattern[i]);
        operate(LITE_OP_SET, offset, length, word, pattern.size(), "set");
    }

    // Copies @length bytes, at least one, from a region of the same context; within this one the
    // ranges may overlap.
    // @throws error as lite_copy(), with transferred()
    void copy(std::uint64_t offset, const region& from, std::uint64_t from_offset,
              std::uint64_t length) {
        operate(LITE_OP_COPY, offset, length, from.m_lh, from_offset, "copy");
    }

    // The number of leading bytes, out of @length (at least one), that equal those of a region of
    // the same context.
    // @throws error as lite_compare()
    std::uint64_t compare(std::uint64_t offset, const region& other, std::uint64_t other_offset,
                          std::uint64_t length) const {
        return operate(LITE_OP_COMPARE, offset, length, other.m_lh, other_offset, "compare");
    }

    // The CRC-32C of @length bytes, at least one, continuing from the checksum @seed.
    // @throws error as lite_checksum()
    std::uint32_t checksum(std::uint64_t offset, std::uint64_t length,
                           std::uint32_t seed = 0) const {
        return static_cast<std::uint32_t>(
            operate(LITE_OP_CHECKSUM, offset, length, seed, 0, "checksum"));
    }

    // @throws error as lite_stat()
    lmr_status stat() const {
        lmr_status status{{}, std::vector<std::uint32_t>(LITE_SPREAD_MAX)};
        std::uint32_t n = LITE_SPREAD_MAX;
        check(lite_stat(live("stat"), m_lh, &status.info, status.nodes.data(), &n), "stat");
        status.nodes.resize(std::min<std::size_t>(n, LITE_SPREAD_MAX));
        return status;
    }

    // Sets the rights granted to a user; rights::none removes the grant, also from open handles.
    // @throws error as lite_grant_set()
    void grant(const lite::grant& to) {
        check(lite_grant_set(live("grant"), m_lh, to.uid, to.node,
                             static_cast<std::uint32_t>(to.allowed)),
              "grant");
    }

    // @throws error as lite_grants()
    std::vector<lite::grant> grants() const {
        return detail::grants([this](::lite_grant* list, std::uint32_t* n) {
            check(lite_grants(live("grants"), m_lh, list, n), "grants");
        });
    }

    // @throws error as lite_setattr()
    void chmod(std::uint32_t mode) { check(lite_chmod(live("chmod"), m_lh, mode), "chmod"); }

    // Either may be lite::keep. @throws error as lite_setattr()
    void chown(std::uint32_t uid, std::uint32_t gid) {
        check(lite_chown(live("chown"), m_lh, uid, gid), "chown");
    }

    // Renames the LMR, or names an anonymous one, which then outlives the context.
    // @throws error as lite_rename()
    void rename(std::string_view to) {
        check(lite_rename(live("rename"), m_lh, detail::c_name(to).get()), "rename");
    }

    // Extends the LMR by zeroes, or truncates it. @throws error as lite_resize()
    void resize(std::uint64_t length) {
        check(lite_resize(live("resize"), m_lh, length), "resize");
        m_length = length;
    }

    // Moves @length bytes at @offset, rounded outwards to pages, to another node's memory; @length
    // 0: everything from @offset on.
    // @throws error as lite_move(), with transferred()
    void move(std::uint32_t node, std::uint64_t offset = 0, std::uint64_t length = 0) {
        std::uint64_t moved = 0;
        const int err = lite_move(live("move"), m_lh, offset, length, node, &moved);
        if (err)
            throw error(err, "move", moved);
    }

  private:
    friend class manage_calls;  // <lite/async/manage.hpp>
    static constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

    // The context. @throws error: EBADF, if this owns nothing
    lite_ctx* live(const char* doing) const {
        if (!m_ctx)
            throw error(EBADF, doing);
        return m_ctx;
    }

    static void check(int err, const char* doing) {
        if (err)
            throw error(err, doing);
    }

    void transfer(lite_opcode opcode, std::uint64_t offset, const void* buf, std::size_t length,
                  const char* doing) const {
        ::lite_op op{};
        op.opcode = opcode;
        op.lh = m_lh;
        op.offset = offset;
        op.buf = static_cast<__u64>(reinterpret_cast<std::uintptr_t>(buf));
        op.length = length;
        op.priority = m_priority;
        const int err = lite_op_submit(live(doing), &op);
        if (err)
            throw error(err, doing, op.result);
    }

    std::uint64_t operate(lite_opcode opcode, std::uint64_t offset, std::uint64_t length,
                          std::uint64_t operand, std::uint64_t swap, const char* doing) const {
        ::lite_op op{};
        op.opcode = opcode;
        op.lh = m_lh;
        op.offset = offset;
        op.length = length;
        op.operand = operand;
        op.swap = swap;
        op.priority = m_priority;
        const int err = lite_op_submit(live(doing), &op);
        if (err)
            throw error(err, doing, op.result);
        return op.result;
    }

    lite_ctx* m_ctx = nullptr;
    lite_lh_t m_lh = 0;
    std::uint64_t m_length = 0;
    detail::maker m_maker;
    std::uint8_t m_priority = LITE_PRIORITY_DEFAULT;
};

inline void swap(region& a, region& b) noexcept { a.swap(b); }

// Memory of the process that is an LMR as long as this object lives; made by
// context::register_memory(). The memory must outlive it, or the LMR is left with pages that the
// process no longer has. Destroying a copy in a child does not affect the LMR.
class registration {
  public:
    // Takes ownership of a region; the destructor frees its LMR.
    explicit registration(region lmr) noexcept : m_region(std::move(lmr)) {}
    registration(registration&&) noexcept = default;

    registration& operator=(registration&& other) noexcept {
        registration taken(std::move(other));
        m_region.swap(taken.m_region);
        return *this;
    }

    // Waits until no node can reach the memory. If the LMR cannot be freed, closing the context
    // frees it.
    ~registration() {
        if (m_region && !m_region.inherited()) {
            try {
                m_region.free();
            } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
            }
        }
    }

    region& operator*() noexcept { return m_region; }
    const region& operator*() const noexcept { return m_region; }
    region* operator->() noexcept { return &m_region; }
    const region* operator->() const noexcept { return &m_region; }

    // Gives up the region without freeing its LMR. The LMR then lives until it is freed or the
    // context is closed; without a name, no longer than the region.
    region release() noexcept { return std::move(m_region); }

  private:
    region m_region;
};

struct alloc_options {
    std::string_view name = {};             // empty: anonymous
    std::uint64_t length = 0;               // bytes
    std::vector<std::uint32_t> nodes = {};  // empty: this node; the first is the home
    std::uint32_t mode = 0600;              // 0666 at most, no umask
    bool unpinned = false;                  // LITE_ALLOC_UNPINNED
    bool leased = false;                    // LITE_ALLOC_LEASED, with unpinned
};

// An opened LITE node of this machine; closed by the destructor.
class context {
  public:
    // Opens /dev/lite@index; -1: the value of LITE_INDEX in the environment, or 0.
    // @throws error as lite_open()
    explicit context(int index = -1) {
        lite_ctx* ctx = nullptr;
        const int err = lite_open(index, &ctx);
        if (err)
            throw error(
                err, index < 0 ? "open the LITE node" : "open /dev/lite" + std::to_string(index));
        m_ctx.reset(ctx);
    }

    // Takes ownership of a context of the C API.
    static context adopt(lite_ctx* ctx) noexcept { return context(ctx, adopted{}); }

    // For the C API; still owned by this object.
    lite_ctx* get() const noexcept { return m_ctx.get(); }

    // The descriptor; still owned by this object.
    int fd() const noexcept { return lite_fd(m_ctx.get()); }

    // @throws error as lite_query()
    node_info query() const {
        node_info info{};
        check(lite_query(m_ctx.get(), &info), "query", {});
        return info;
    }

    // Makes an LMR and opens it with all rights that its mode gives.
    // @throws error as lite_alloc()
    region alloc(const alloc_options& options) {
        lite_lh_t lh = 0;
        allocate(options, 0, &lh);
        // An unpinned LMR has whole pages.
        const std::uint64_t page = options.unpinned ? 4096 : 1;
        return {m_ctx.get(), lh, (options.length + page - 1) / page * page};
    }

    // Makes a named LMR without opening it; it cannot be unpinned.
    // @throws error as lite_alloc()
    void create(const alloc_options& options) { allocate(options, LITE_ALLOC_NO_HANDLE, nullptr); }

    // Opens an LMR. @throws error as lite_map()
    region map(std::string_view name, rights wanted = rights::read | rights::write) {
        lite_lh_t lh = 0;
        std::uint64_t length = 0;
        check(lite_map(m_ctx.get(), detail::c_name(name).get(), static_cast<std::uint32_t>(wanted),
                       &lh, &length),
              "map", name);
        return {m_ctx.get(), lh, length};
    }

    // Makes an LMR of memory of the process, whole pages, without a copy; anonymous if @name is
    // empty. @flags: LITE_REGISTER_*
    // @throws error as lite_register_with()
    registration register_memory(std::span<std::byte> memory, std::string_view name = {},
                                 std::uint32_t mode = 0600, std::uint32_t flags = 0) {
        lite_lh_t lh = 0;
        check(lite_register_with(m_ctx.get(), detail::c_name(name).get(), memory.data(),
                                 memory.size(), mode, flags, &lh),
              "register", name);
        return registration(region(m_ctx.get(), lh, memory.size()));
    }

    // Frees an LMR everywhere. @throws error as lite_free_name()
    void free(std::string_view name) {
        check(lite_free_name(m_ctx.get(), detail::c_name(name).get()), "free", name);
    }

    // @throws error as lite_stat_name()
    lmr_status stat(std::string_view name) const {
        lmr_status status{{}, std::vector<std::uint32_t>(LITE_SPREAD_MAX)};
        std::uint32_t n = LITE_SPREAD_MAX;
        check(lite_stat_name(m_ctx.get(), detail::c_name(name).get(), &status.info,
                             status.nodes.data(), &n),
              "stat", name);
        status.nodes.resize(std::min<std::size_t>(n, LITE_SPREAD_MAX));
        return status;
    }

    // Sets the rights granted to a user; rights::none removes the grant, also from open handles.
    // @throws error as lite_grant_set_name()
    void grant(std::string_view name, const lite::grant& to) {
        check(lite_grant_set_name(m_ctx.get(), detail::c_name(name).get(), to.uid, to.node,
                                  static_cast<std::uint32_t>(to.allowed)),
              "grant", name);
    }

    // @throws error as lite_grants_name()
    std::vector<lite::grant> grants(std::string_view name) const {
        return detail::grants([&](::lite_grant* list, std::uint32_t* n) {
            check(lite_grants_name(m_ctx.get(), detail::c_name(name).get(), list, n), "grants",
                  name);
        });
    }

    // @throws error as lite_setattr_name()
    void chmod(std::string_view name, std::uint32_t mode) {
        check(lite_chmod_name(m_ctx.get(), detail::c_name(name).get(), mode), "chmod", name);
    }

    // Either may be lite::keep. @throws error as lite_setattr_name()
    void chown(std::string_view name, std::uint32_t uid, std::uint32_t gid) {
        check(lite_chown_name(m_ctx.get(), detail::c_name(name).get(), uid, gid), "chown", name);
    }

    // @throws error as lite_rename_name()
    void rename(std::string_view name, std::string_view to) {
        check(lite_rename_name(m_ctx.get(), detail::c_name(name).get(), detail::c_name(to).get()),
              "rename", name);
    }

    // Existing regions keep the old length().
    // @throws error as lite_resize_name()
    void resize(std::string_view name, std::uint64_t length) {
        check(lite_resize_name(m_ctx.get(), detail::c_name(name).get(), length), "resize", name);
    }

    // As region::move(). @throws error as lite_move_name(), with transferred()
    void move(std::string_view name, std::uint32_t node, std::uint64_t offset = 0,
              std::uint64_t length = 0) {
        std::uint64_t moved = 0;
        const int err =
            lite_move_name(m_ctx.get(), detail::c_name(name).get(), offset, length, node, &moved);
        if (err)
            throw error(err, detail::describe("move", name), moved);
    }

  private:
    struct adopted {};
    struct closer {
        void operator()(lite_ctx* ctx) const noexcept { lite_close(ctx); }
    };

    context(lite_ctx* ctx, adopted) noexcept : m_ctx(ctx) {}

    static void check(int err, std::string_view verb, std::string_view name) {
        if (err)
            throw error(err, detail::describe(verb, name));
    }

    void allocate(const alloc_options& options, std::uint32_t flags, lite_lh_t* lh) {
        const detail::c_name name(options.name);
        ::lite_alloc_params params{};
        params.size = sizeof(params);
        params.flags = flags | (options.unpinned ? LITE_ALLOC_UNPINNED : 0) |
                       (options.leased ? LITE_ALLOC_LEASED : 0);
        params.name = name.get();
        params.length = options.length;
        params.nodes = options.nodes.data();
        params.n_nodes = static_cast<std::uint32_t>(options.nodes.size());
        params.mode = options.mode;
        check(lite_alloc(m_ctx.get(), &params, lh), "alloc", options.name);
    }

    std::unique_ptr<lite_ctx, closer> m_ctx;
};

// The LMRs of the cluster as an input range, fetched in batches during iteration:
//
//	for (const lite::lmr_info &lmr : lite::lmrs(node))
//		...
//
// Single pass. begin() and incrementing throw error as lite_list().
class lmr_range : public std::ranges::view_base {
  public:
    class iterator {
      public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = lmr_info;
        using difference_type = std::ptrdiff_t;

        explicit iterator(lmr_range& range) noexcept : m_range(&range) {}
        iterator(iterator&&) noexcept = default;
        iterator& operator=(iterator&&) noexcept = default;

        const lmr_info& operator*() const noexcept { return m_range->m_infos[m_range->m_next]; }

        iterator& operator++() {
            m_range->advance();
            return *this;
        }

        void operator++(int) { ++*this; }

        bool operator==(std::default_sentinel_t) const noexcept {
            return m_range->m_next == m_range->m_count;
        }

      private:
        lmr_range* m_range;
    };

    // The context must outlive the range.
    explicit lmr_range(const context& ctx) : m_ctx(ctx.get()), m_infos(batch) {}
    lmr_range(lmr_range&&) noexcept = default;
    lmr_range& operator=(lmr_range&&) noexcept = default;

    iterator begin() {
        if (!m_begun)
            fetch();
        m_begun = true;
        return iterator(*this);
    }

    static std::default_sentinel_t end() noexcept { return {}; }

  private:
    static constexpr std::uint32_t batch = 64;

    void advance() {
        if (++m_next == m_count && m_cursor)
            fetch();
    }

    void fetch() {
        m_next = m_count = 0;
        // A batch may be empty before the end.
        do {
            const int n = lite_list(m_ctx, &m_cursor, m_infos.data(), batch);
            if (n < 0)
                throw error(n, "list");
            m_count = static_cast<std::size_t>(n);
        } while (!m_count && m_cursor);
    }

    lite_ctx* m_ctx;
    std::vector<lmr_info> m_infos;
    std::size_t m_next = 0;
    std::size_t m_count = 0;
    std::uint64_t m_cursor = 0;
    bool m_begun = false;
};

inline lmr_range lmrs(const context& ctx) { return lmr_range(ctx); }

// All LMRs of the cluster at once. @throws error as lite_list()
inline std::vector<lmr_info> list(const context& ctx) {
    std::vector<lmr_info> all;
    for (const lmr_info& info : lmrs(ctx))
        all.push_back(info);
    return all;
}

}  // namespace lite
