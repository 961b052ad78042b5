/* SPDX-License-Identifier: MIT */
/*
 * The headers in a C11 program: they compile without warnings, the layout is as
 * published, and every declared function can be linked from C.
 */

#include <lite/lite.h>
#include <lite/order.h>
#include <lite/uring.h>
#include <lite/vector.h>
#include <uapi/lite_netlink.h>

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#define CHECK(condition, text) static_assert(condition, text)
#include "uapi_layout.h"
#undef CHECK

int main(void) {
    /* The linker has to find every function of the API. */
    static void (*const api[])(void) = {
        (void (*)(void))lite_open,
        (void (*)(void))lite_close,
        (void (*)(void))lite_fd,
        (void (*)(void))lite_query,
        (void (*)(void))lite_alloc,
        (void (*)(void))lite_map,
        (void (*)(void))lite_unmap,
        (void (*)(void))lite_free,
        (void (*)(void))lite_free_name,
        (void (*)(void))lite_vector,
        (void (*)(void))lite_read,
        (void (*)(void))lite_write,
        (void (*)(void))lite_fetch_add,
        (void (*)(void))lite_cmp_swap,
        (void (*)(void))lite_op_submit,
        (void (*)(void))lite_stat,
        (void (*)(void))lite_stat_name,
        (void (*)(void))lite_list,
        (void (*)(void))lite_list_each,
        (void (*)(void))lite_strerror,
        (void (*)(void))lite_grant_set,
        (void (*)(void))lite_grant_set_name,
        (void (*)(void))lite_grants,
        (void (*)(void))lite_grants_name,
        (void (*)(void))lite_setattr,
        (void (*)(void))lite_setattr_name,
        (void (*)(void))lite_chmod,
        (void (*)(void))lite_chmod_name,
        (void (*)(void))lite_chown,
        (void (*)(void))lite_chown_name,
        (void (*)(void))lite_rename,
        (void (*)(void))lite_rename_name,
        (void (*)(void))lite_resize,
        (void (*)(void))lite_resize_name,
        (void (*)(void))lite_move,
        (void (*)(void))lite_move_name,
        (void (*)(void))lite_swap,
        (void (*)(void))lite_fetch_and,
        (void (*)(void))lite_fetch_or,
        (void (*)(void))lite_set,
        (void (*)(void))lite_copy,
        (void (*)(void))lite_compare,
        (void (*)(void))lite_checksum,
        (void (*)(void))lite_fence,
        (void (*)(void))lite_mmap,
        (void (*)(void))lite_register,
        (void (*)(void))lite_rpc_register,
        (void (*)(void))lite_rpc_unregister,
        (void (*)(void))lite_rpc_recv,
        (void (*)(void))lite_rpc_reply,
        (void (*)(void))lite_rpc_strerror,
        (void (*)(void))lite_rpc_reply_recv,
        (void (*)(void))lite_rpc_find,
        (void (*)(void))lite_rpc_call,
        (void (*)(void))lite_rpc_done,
        (void (*)(void))lite_rpc_send,
        (void (*)(void))lite_rpc_start,
        (void (*)(void))lite_rpc_collect,
        (void (*)(void))lite_lock,
        (void (*)(void))lite_unlock,
        (void (*)(void))lite_lock_consistent,
        (void (*)(void))lite_barrier,
        (void (*)(void))lite_uring_barrier,
        (void (*)(void))lite_uring_call,
        (void (*)(void))lite_uring_cmp_swap,
        (void (*)(void))lite_uring_command,
        (void (*)(void))lite_uring_fetch_add,
        (void (*)(void))lite_uring_freed,
        (void (*)(void))lite_uring_lock,
        (void (*)(void))lite_uring_op,
        (void (*)(void))lite_uring_read,
        (void (*)(void))lite_uring_recv,
        (void (*)(void))lite_uring_reply,
        (void (*)(void))lite_uring_unlock,
        (void (*)(void))lite_uring_unmapped,
        (void (*)(void))lite_uring_unmapping,
        (void (*)(void))lite_uring_write,
    };
    struct lite_ctx* ctx = NULL;
    size_t i;

    for (i = 0; i < sizeof(api) / sizeof(api[0]); i++)
        if (!api[i])
            return 1;
    if (lite_open(-2, &ctx) != -EINVAL || ctx)
        return 2;
    if (strcmp(lite_strerror(-EIDRM), "the LMR was freed") != 0)
        return 3;
    lite_close(ctx);
    return 0;
}
