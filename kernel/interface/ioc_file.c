// SPDX-License-Identifier: GPL-2.0
/* Files straight into LMRs, and back: LITE_IOC_SENDFILE and RECVFILE, and for kernel modules. */
#include <linux/export.h>
#include <linux/file.h>
#include <linux/fs.h>

#include "memory/file/sendfile.h"
#include "command.h"

static int lite_ioc_file(struct lite_command *cmd, struct lite_ioc_file *f, bool send)
{
	bool position = f->flags & LITE_FILE_POSITION;
	struct file *file = fget(f->fd);
	u64 given = f->file_offset;
	int err;

	f->moved = 0;
	if (!file)
		return -EBADF;
	/* Like sendfile(2), this does not take the lock for f_pos that read(2) takes. */
	if (position)
		f->file_offset = file->f_pos;
	err = lite_file_move(cmd->ctx, f, file, send, lite_cmd_user(cmd)->uid, &cmd->gate);
	if (position && f->moved)
		file->f_pos = f->file_offset;
	if (position)
		f->file_offset = given;
	fput(file);
	return err;
}

int lite_ioc_sendfile(struct lite_command *cmd, void *arg)
{
	return lite_ioc_file(cmd, arg, true);
}

int lite_ioc_recvfile(struct lite_command *cmd, void *arg)
{
	return lite_ioc_file(cmd, arg, false);
}

static s64 lite_kapi_file(struct lite_ctx *ctx, u64 lh, u64 offset, struct file *file, loff_t *pos,
			  u64 length, bool send)
{
	struct lite_node *node = lite_kapi_enter(ctx);
	struct lite_gate gate = { .in = true };
	struct lite_ioc_file f = {
		.lh = lh, .offset = offset, .length = length, .file_offset = *pos,
	};
	int err;

	if (!node)
		return -ENODEV;
	gate.users = &node->active;
	err = lite_file_move(ctx, &f, file, send, lite_root.uid, &gate);
	if (gate.in)
		lite_node_exit(node);
	if (err)
		return err;
	*pos = f.file_offset;
	return f.moved;
}

s64 lite_lmr_sendfile(struct lite_ctx *ctx, u64 lh, u64 offset, struct file *file, loff_t *pos,
		      u64 length)
{
	return lite_kapi_file(ctx, lh, offset, file, pos, length, true);
}
EXPORT_SYMBOL_GPL(lite_lmr_sendfile);

s64 lite_lmr_recvfile(struct lite_ctx *ctx, u64 lh, u64 offset, struct file *file, loff_t *pos,
		      u64 length)
{
	return lite_kapi_file(ctx, lh, offset, file, pos, length, false);
}
EXPORT_SYMBOL_GPL(lite_lmr_recvfile);
