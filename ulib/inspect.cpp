// SPDX-License-Identifier: MIT
//
// Descriptions of LMRs: stat and list.

#include "cancellation.hpp"
#include "context.hpp"

#include <cerrno>
#include <new>

using lite::internal::as_u64;
using lite::internal::control;
using lite::internal::copy_name;

namespace {

int stat_ioctl(lite_ctx* ctx, struct lite_ioc_stat& arg, struct lite_lmr_info* info,
               uint32_t* nodes, uint32_t* n_nodes) noexcept {
    const uint32_t room = n_nodes ? *n_nodes : 0;
    if ((nodes && !n_nodes) || (room && !nodes))
        return -EINVAL;
    arg.nodes = as_u64(nodes);
    arg.n_nodes = room;

    const int err = control(ctx, LITE_IOC_STAT, arg);
    if (err)
        return err;
    *info = arg.info;
    if (n_nodes)
        *n_nodes = arg.n_nodes;
    return 0;
}

}  // namespace

int lite_stat(struct lite_ctx* ctx, lite_lh_t lh, struct lite_lmr_info* info, uint32_t* nodes,
              uint32_t* n_nodes) noexcept {
    // The kernel takes 0 as "by name".
    if (!lh)
        return -EBADF;

    struct lite_ioc_stat arg = {};
    arg.lh = lh;
    return stat_ioctl(ctx, arg, info, nodes, n_nodes);
}

int lite_stat_name(struct lite_ctx* ctx, const char* name, struct lite_lmr_info* info,
                   uint32_t* nodes, uint32_t* n_nodes) noexcept {
    struct lite_ioc_stat arg = {};
    const int err = copy_name(arg.info.name, name);
    return err ? err : stat_ioctl(ctx, arg, info, nodes, n_nodes);
}

int lite_list(struct lite_ctx* ctx, uint64_t* cursor, struct lite_lmr_info* infos,
              uint32_t n) noexcept {
    // The count comes back as an int.
    if (n == 0 || n > INT32_MAX)
        return -EINVAL;

    struct lite_ioc_list arg = {};
    arg.cursor = *cursor;
    arg.infos = as_u64(infos);
    arg.n_infos = n;
    arg.info_size = sizeof(*infos);

    const int err = control(ctx, LITE_IOC_LIST, arg);
    if (err)
        return err;
    if (arg.n_infos > n)
        return -EPROTO;
    *cursor = arg.cursor;
    return static_cast<int>(arg.n_infos);
}

int lite_list_each(struct lite_ctx* ctx, int (*fn)(const struct lite_lmr_info* info, void* arg),
                   void* arg) noexcept {
    // @fn may call cancellation points.
    const lite::internal::no_cancellation guard;
    constexpr uint32_t batch = 64;
    const std::unique_ptr<struct lite_lmr_info[]> infos(new (std::nothrow) lite_lmr_info[batch]);
    if (!infos)
        return -ENOMEM;

    uint64_t cursor = 0;
    do {
        const int n = lite_list(ctx, &cursor, infos.get(), batch);
        if (n < 0)
            return n;
        for (int i = 0; i < n; i++) {
            const int ret = fn(&infos[static_cast<size_t>(i)], arg);
            if (ret)
                return ret;
        }
    } while (cursor);
    return 0;
}
