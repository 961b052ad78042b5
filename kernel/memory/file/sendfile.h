/* SPDX-License-Identifier: GPL-2.0 */
/* Files straight into LMRs, and back. */
#ifndef _LITE_SENDFILE_H
#define _LITE_SENDFILE_H

#include "memory/handle/ctx.h"

struct file;

void lite_file_pool_init(struct lite_memory *mem);
int lite_file_move(struct lite_ctx *ctx, struct lite_ioc_file *arg, struct file *file, bool send,
		   u32 uid, struct lite_gate *gate);

#endif /* _LITE_SENDFILE_H */
