/* SPDX-License-Identifier: GPL-2.0 */
/* Commands: from processes by ioctl(2) or io_uring (ioctl.c), from kernel modules by kapi.c. */
#ifndef _LITE_COMMAND_H
#define _LITE_COMMAND_H

#include "node.h"

struct lite_command {
	struct lite_node *node; /* active */
	struct lite_ctx *ctx;   /* of the handles that the command names */
	struct lite_file *lf;   /* NULL: a kernel module's command, pointers are to kernel memory */
	struct lite_gate gate;  /* to leave the node; only with @lf */
	struct lite_target target; /* the LMR that the command is about, if its row has @name */
	struct lite_cred cred;     /* see lite_cmd_user() */
};

/* All structures of commands begin with @size and @flags, and in most @lh follows. */
struct lite_ioc_head {
	u32 size;
	u32 flags;
	u64 lh;
};

/* The row of a command. */
struct lite_ioc {
	u16 size;     /* of its whole structure */
	u16 min_size; /* of its first published version */
	u32 flags;    /* allowed ones; LITE_IOC_FLAGS: the handler checks them */
	u32 quick;    /* with any of these flags the command does not wait */
	u16 zero;     /* offset of a u32 that must be 0; 0: there is none */
	u16 name;     /* offset of its LMR's name, used if the handle is 0; 0: it has no target */
	bool out;     /* copied out, if the handler succeeds */
	bool always;  /* copied out in any case */
	bool looks;   /* allowed in a file opened read-only */
	int (*fn)(struct lite_command *cmd, void *arg);
	/* Instead of @fn, for a command that a home carries out. */
	int (*change)(struct lite_ctx *ctx, const struct lite_target *target, void *arg);
	/* Undoes what could not be copied out; the node is active. */
	void (*undo)(struct lite_command *cmd, void *arg);
	/* As @undo, but not active on the node, because this may wait for user space. */
	void (*unwind)(void *arg);
};

#define LITE_IOC_FLAGS (~0U)
#define LITE_IOC_BYTES 536 /* of the largest structure */
#define LITE_IOC_GROUP 16 /* commands in a table */

#define LITE_IOC_ZERO(type) .zero = offsetof(struct type, reserved)
#define LITE_IOC_ENTRY(cmd, type, last, ...)                                                       \
	[_IOC_NR(cmd) % LITE_IOC_GROUP] = {                                                        \
		.size = sizeof(struct type) +                                                      \
			BUILD_BUG_ON_ZERO(sizeof(struct type) > LITE_IOC_BYTES),                   \
		.min_size = offsetofend(struct type, last),                                        \
		__VA_ARGS__ }

extern const struct lite_ioc lite_iocs_lmr[LITE_IOC_GROUP];
extern const struct lite_ioc lite_iocs_rpc[LITE_IOC_GROUP];
extern const struct lite_ioc lite_iocs_sync[LITE_IOC_GROUP];

const struct lite_ioc *lite_ioc_find(unsigned int cmd);
int lite_cmd_run(struct lite_command *cmd, const struct lite_ioc *ioc, void *arg);
const struct lite_cred *lite_cmd_user(struct lite_command *cmd);
int lite_cmd_target(struct lite_command *cmd, u64 lh, const char *name);
int lite_cmd_mmap(struct lite_command *cmd, struct file *file, u64 length, unsigned long prot,
		  unsigned long flags, u64 *to);
int lite_ioc_mmap(struct lite_command *cmd, void *arg);
void lite_ioc_unwind_mmap(void *arg);
int lite_ioc_arena(struct lite_command *cmd, void *arg);
void lite_ioc_unwind_arena(void *arg);
int lite_ioc_vector(struct lite_command *cmd, void *arg);
int lite_ioc_sendfile(struct lite_command *cmd, void *arg);
int lite_ioc_recvfile(struct lite_command *cmd, void *arg);

#endif /* _LITE_COMMAND_H */
