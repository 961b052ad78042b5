// SPDX-License-Identifier: MIT
//
// Registers memory. A registration has an entry in a table, and unpinned LMRs if peers may reach
// it. Where that is not possible, the device itself registers the memory, and pins it.

#include "memory/local.hpp"

#include "log.hpp"
#include "real.hpp"
#include "registry.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include <sys/mman.h>

namespace lite::verbs {
namespace {

constexpr uint64_t page_size = 4096;
constexpr unsigned remote_access =
    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

// As in verbs, peers may only write to what the program itself may write to.
bool is_contradictory(unsigned access) {
    return access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
           !(access & IBV_ACCESS_LOCAL_WRITE);
}

uint64_t address_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }

// Is all of it mapped? With MS_ASYNC msync() checks that, and does nothing else.
bool is_mapped(const void* addr, size_t length) {
    // msync() rounds the length up to pages, to 0 if that overflows.
    constexpr uint64_t last = UINT64_MAX - page_size;
    if (address_of(addr) > last || length > last - address_of(addr))
        return false;
    const uint64_t begin = address_of(addr) / page_size * page_size;
    return !::msync(reinterpret_cast<void*>(begin), address_of(addr) + length - begin, MS_ASYNC);
}

// Is an LMR gone after this error of lite_free()? A node that leaves its cluster frees all of them.
bool is_over(int err) {
    return err == -EIDRM || err == -ENODEV || err == -EBADF || err == -ESTALE ||
           (err == -ENOTCONN && node::get()->has_left());
}

}  // namespace

memory_in_use::~memory_in_use() {
    for (const auto& users : m_users) {
        if (--*users == 0)
            users->notify_all();
    }
}

// For a record that is no longer in m_records, and so gets no new users.
void registrations::record::wait_unused() const {
    while (const uint32_t n = *users)
        users->wait(n);
}

registrations& registrations::get() {
    static auto& only = *new registrations;
    return only;
}

uint32_t registrations::mode_for(unsigned access) const {
    uint32_t mode = 0;
    if (access & IBV_ACCESS_REMOTE_READ)
        mode |= 0444;
    if (access & IBV_ACCESS_REMOTE_WRITE)
        mode |= 0222;
    if (access & IBV_ACCESS_REMOTE_ATOMIC)
        mode |= 0666;
    return mode & node::get()->mode();
}

// A node of m_records, so that inserting it allocates nothing.
registrations::records::node_type registrations::make_record(record made) {
    records one;
    one.emplace(0, std::move(made));
    return one.extract(0);
}

int registrations::make_lmr(const piece& part, uint32_t mode, uint32_t& id) try {
    node& here = *node::get();
    id = ++m_last_lmr;
    const std::string name = lmr_name(here.id(), here.process(), id);
    // Allocates everything before the LMR is made: no LMR may be left that is in no list.
    lmr& made = m_lmrs[id];
    m_cover.add(id, part.begin, part.end);
    const int err =
        lite_register_with(here.ctx(), name.c_str(), reinterpret_cast<void*>(part.begin),
                           part.end - part.begin, mode, LITE_REGISTER_UNPINNED, &made.lh);
    made.mode = mode;
    if (err) {
        m_cover.release(id);
        m_lmrs.erase(id);
    }
    return err;
} catch (const std::bad_alloc&) {
    m_lmrs.erase(id);
    return -ENOMEM;
}

// Ends one use of each LMR; the last one frees it. @lmrs keeps those that LITE could not free.
void registrations::forget_lmrs(std::vector<uint32_t>& lmrs) noexcept {
    std::erase_if(lmrs, [this](uint32_t id) {
        if (m_cover.is_last(id)) {
            const int err = lite_free(node::get()->ctx(), m_lmrs.at(id).lh);
            if (err && !is_over(err)) {
                say_once("an LMR is not freed", lite_strerror(err));
                return false;
            }
            m_lmrs.erase(id);
        }
        m_cover.release(id);
        return true;
    });
}

// LITE gives peers whole pages; the library there keeps to the registered bytes. After a failure @r
// has the LMRs that LITE could not free.
int registrations::cover_with_lmrs(record& r, table_entry& entry) try {
    const uint64_t first = address_of(r.addr);
    const uint64_t last = first + r.length;
    const uint64_t begin = first / page_size * page_size;
    const uint64_t end = (last + page_size - 1) / page_size * page_size;
    const uint32_t mode = mode_for(r.access);

    const std::vector<piece> pieces = m_cover.pieces(begin, end);
    if (pieces.size() > parts_max)
        return -E2BIG;
    // After this nothing throws.
    r.lmrs.reserve(parts_max);
    int err = 0;
    for (const piece& part : pieces) {
        uint32_t id = part.id;
        if (id) {
            m_cover.use(id);
            lmr& shared = m_lmrs.at(id);
            r.lmrs.push_back(id);
            if (mode & ~shared.mode) {
                err = lite_chmod(node::get()->ctx(), shared.lh, mode | shared.mode);
                if (!err)
                    shared.mode |= mode;
            }
        } else {
            err = make_lmr(part, mode, id);
            if (!err)
                r.lmrs.push_back(id);
        }
        if (err)
            break;
        const uint64_t from = std::max(part.begin, first);
        entry.parts[entry.n_parts++] = {id, 0, from - part.lmr_begin,
                                        std::min(part.end, last) - from};
    }
    if (err)
        forget_lmrs(r.lmrs);
    return err;
} catch (const std::bad_alloc&) {
    return -ENOMEM;
}

// Lets peers use a registration. 0 or a negative errno; @r as after cover_with_lmrs().
int registrations::publish(record& r, uint32_t key) {
    table_entry entry = {};
    const unsigned access = r.access & remote_access;
    if (const int err = access ? cover_with_lmrs(r, entry) : 0)
        return err;
    entry.key = key;
    entry.access = access;
    entry.iova = r.iova;
    entry.length = r.length;
    node::get()->show(slot_of(key), entry);
    return 0;
}

ibv_mr* registrations::add_own(ibv_pd* pd, void* addr, size_t length, uint64_t iova,
                               unsigned access, int& err) {
    err = node::get()->refusal();
    if (err)
        return nullptr;
    auto made = make_record({std::make_unique<ibv_mr>(),
                             pd,
                             pd->context,
                             static_cast<char*>(addr),
                             iova,
                             length,
                             access,
                             {}});
    record& r = made.mapped();
    const std::lock_guard guard(m_change);
    forget_lmrs(m_stuck);
    m_stuck.reserve(m_stuck.size() + parts_max);
    if (!m_keys)
        m_keys.emplace(node::get()->process());
    const std::optional<uint32_t> key = m_keys->take();
    if (!key) {
        err = -EMFILE;
        return nullptr;
    }
    err = publish(r, *key);
    if (err) {
        m_keys->give(*key);
        m_stuck.insert(m_stuck.end(), r.lmrs.begin(), r.lmrs.end());
        return nullptr;
    }
    ibv_mr* mr = r.own.get();
    *mr = {pd->context, pd, addr, length, 0, *key, *key};
    made.key() = *key;
    const std::unique_lock lock(m_mutex);
    m_records.insert(std::move(made));
    return mr;
}

// Registers with the device, and anew if it gives a key that looks like one of the library's.
ibv_mr* registrations::add_real(ibv_pd* pd, void* addr, size_t length, uint64_t iova,
                                unsigned access) {
    constexpr size_t tries = 16;
    auto made =
        make_record({nullptr, pd, pd->context, static_cast<char*>(addr), iova, length, access, {}});
    std::vector<ibv_mr*> others;
    others.reserve(tries);
    ibv_mr* mr = nullptr;
    while (others.size() < tries) {
        mr = real().reg_mr_iova2(pd, addr, length, iova, access);
        if (!mr || !is_own_key(mr->lkey | mr->rkey))
            break;
        others.push_back(mr);
        mr = nullptr;
    }
    const int saved = errno;
    for (ibv_mr* other : others)
        real().dereg_mr(other);
    if (!mr) {
        errno = others.empty() ? saved : ENOMEM;
        return nullptr;
    }
    const std::unique_lock lock(m_mutex);
    m_records.erase(mr->lkey);
    made.key() = mr->lkey;
    m_records.insert(std::move(made));
    return mr;
}

ibv_mr* registrations::add(ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned access) {
    if (is_contradictory(access)) {
        errno = EINVAL;
        return nullptr;
    }
    if (access & IBV_ACCESS_ZERO_BASED)
        iova = 0;
    int err = 0;
    // Empty or unmapped ranges are left to the device, which refuses them or not.
    ibv_mr* mr =
        length && is_mapped(addr, length) ? add_own(pd, addr, length, iova, access, err) : nullptr;
    if (mr) {
        debug("unpinned: %zu bytes at %p, key %#x", length, addr, mr->lkey);
        return mr;
    }
    mr = add_real(pd, addr, length, iova, access);
    if (mr && err)
        say_once("a registration is pinned", lite_strerror(err));
    return mr;
}

int registrations::remove(ibv_mr* mr) {
    const uint32_t key = mr->lkey;
    if (!is_own_key(key)) {
        // Extracted first: the device may give the key to another registration at once.
        std::unique_lock lock(m_mutex);
        auto taken = m_records.extract(key);
        lock.unlock();
        if (!taken.empty())
            taken.mapped().wait_unused();
        const int err = real().dereg_mr(mr);
        if (err && !taken.empty()) {
            lock.lock();
            m_records.insert(std::move(taken));
        }
        return err;
    }
    std::unique_lock guard(m_change);
    std::unique_lock lock(m_mutex);
    const auto found = m_records.find(key);
    if (found == m_records.end() || found->second.own.get() != mr)
        return EINVAL;
    auto taken = m_records.extract(found);
    lock.unlock();
    node::get()->show(slot_of(key), {});
    forget_lmrs(taken.mapped().lmrs);
    forget_lmrs(m_stuck);
    if (!taken.mapped().lmrs.empty()) {
        // Peers may still reach the memory: the program must keep it, and may try again.
        lock.lock();
        m_records.insert(std::move(taken));
        return EIO;
    }
    m_keys->give(key);
    // Other threads may register while this one waits.
    guard.unlock();
    taken.mapped().wait_unused();
    return 0;
}

int registrations::change(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, size_t length,
                          int access) {
    if (!is_own_key(mr->lkey)) {
        // Extracted first, as in remove().
        std::unique_lock lock(m_mutex);
        auto taken = m_records.extract(mr->lkey);
        lock.unlock();
        if (!taken.empty())
            taken.mapped().wait_unused();
        const int err = real().rereg_mr(mr, flags, pd, addr, length, access);
        const bool changed = !err || err == IBV_REREG_MR_ERR_DO_FORK_OLD;
        if (taken.empty())
            return err;
        record& r = taken.mapped();
        // After other errors the registration is gone.
        if (!changed && err != IBV_REREG_MR_ERR_INPUT && err != IBV_REREG_MR_ERR_DONT_FORK_NEW)
            return err;
        taken.key() = mr->lkey;
        r.pd = mr->pd;
        if (changed && flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
            r.addr = static_cast<char*>(addr);
            r.iova = address_of(addr);
            r.length = length;
        }
        if (changed && flags & IBV_REREG_MR_CHANGE_ACCESS)
            r.access = static_cast<unsigned>(access);
        lock.lock();
        m_records.erase(mr->lkey);
        m_records.insert(std::move(taken));
        return err;
    }
    if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || !flags)
        return IBV_REREG_MR_ERR_INPUT;

    record* old = nullptr;
    {
        const std::shared_lock lock(m_mutex);
        const auto found = m_records.find(mr->lkey);
        if (found == m_records.end())
            return IBV_REREG_MR_ERR_INPUT;
        old = &found->second;
    }
    uint64_t iova = old->iova;
    unsigned rights = old->access;
    if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
        addr = mr->addr;
        length = mr->length;
    } else {
        iova = address_of(addr);
    }
    if (flags & IBV_REREG_MR_CHANGE_ACCESS)
        rights = static_cast<unsigned>(access);
    if (!(flags & IBV_REREG_MR_CHANGE_PD))
        pd = mr->pd;
    if (!length || !is_mapped(addr, length) || is_contradictory(rights))
        return IBV_REREG_MR_ERR_INPUT;

    // A new registration replaces the old one, in the program's ibv_mr. The old one's LMRs are
    // freed first, even those that both could use: so peers learn that the old key has ended.
    auto fresh =
        make_record({nullptr, pd, pd->context, static_cast<char*>(addr), iova, length, rights, {}});
    record& made = fresh.mapped();
    std::unique_lock guard(m_change);
    old->lmrs.reserve(parts_max);
    const uint32_t old_key = mr->lkey;
    const std::optional<uint32_t> key = m_keys->take();
    if (!key)
        return IBV_REREG_MR_ERR_INPUT;
    node::get()->show(slot_of(old_key), {});
    forget_lmrs(old->lmrs);
    if (!old->lmrs.empty() || publish(made, *key)) {
        m_keys->give(*key);
        // Peers may still reach these LMRs: the program keeps them until ibv_dereg_mr() succeeds.
        old->lmrs.insert(old->lmrs.end(), made.lmrs.begin(), made.lmrs.end());
        return !old->lmrs.empty() || publish(*old, old_key) ? IBV_REREG_MR_ERR_CMD
                                                            : IBV_REREG_MR_ERR_INPUT;
    }
    fresh.key() = *key;
    std::unique_lock lock(m_mutex);
    auto gone = m_records.extract(old_key);
    *mr = {pd->context, pd, addr, length, 0, *key, *key};
    made.own = std::move(gone.mapped().own);
    m_records.insert(std::move(fresh));
    lock.unlock();
    m_keys->give(old_key);
    guard.unlock();
    gone.mapped().wait_unused();
    return 0;
}

void registrations::forget(const ibv_context* context) {
    const std::lock_guard guard(m_change);
    records gone;
    {
        const std::unique_lock lock(m_mutex);
        for (auto i = m_records.begin(); i != m_records.end();) {
            const auto one = i++;
            if (one->second.context == context)
                gone.insert(m_records.extract(one));
        }
    }
    // The kernel ends those of the device. What threads still copy from or to is the program's.
    for (auto& [key, one] : gone) {
        if (!one.own)
            continue;
        node::get()->show(slot_of(key), {});
        forget_lmrs(one.lmrs);
        if (one.lmrs.empty())
            m_keys->give(key);
    }
}

bool registrations::has(const ibv_pd* pd) const {
    if (is_child)
        return false;
    const std::shared_lock lock(m_mutex);
    return std::any_of(m_records.begin(), m_records.end(),
                       [pd](const auto& item) { return item.second.own && item.second.pd == pd; });
}

bool registrations::resolve(const ibv_pd* pd, const ibv_sge* list, int n, bool write,
                            std::vector<span>& spans, memory_in_use& used) const {
    spans.clear();
    const std::shared_lock lock(m_mutex);
    for (int i = 0; i < n; i++) {
        const ibv_sge& sge = list[i];
        if (!sge.length)
            continue;
        const auto found = m_records.find(sge.lkey);
        if (found == m_records.end())
            return false;
        const record& r = found->second;
        if (r.pd != pd || (write && !(r.access & IBV_ACCESS_LOCAL_WRITE)) || sge.addr < r.iova ||
            sge.addr - r.iova > r.length || sge.length > r.length - (sge.addr - r.iova))
            return false;
        used.m_users.push_back(r.users);
        ++*r.users;
        spans.push_back({r.addr + (sge.addr - r.iova), sge.length});
    }
    return true;
}

ibv_wc_status registrations::copy_to(const ibv_pd* pd, const std::vector<ibv_sge>& list,
                                     const char* from, uint64_t length) const try {
    std::vector<span> spans;
    memory_in_use used;
    if (!resolve(pd, list.data(), static_cast<int>(list.size()), true, spans, used))
        return IBV_WC_LOC_PROT_ERR;
    for (const span& to : spans) {
        const uint64_t n = std::min(length, to.length);
        std::memcpy(to.at, from, n);
        from += n;
        length -= n;
    }
    return IBV_WC_SUCCESS;
} catch (const std::bad_alloc&) {
    return IBV_WC_LOC_QP_OP_ERR;
}

}  // namespace lite::verbs
