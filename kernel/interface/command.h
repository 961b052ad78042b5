/* SPDX-License-Identifier: GPL-2.0 */
/* Commands: from processes by ioctl(2) or io_uring (ioctl.c), from kernel modules by kapi.c. */
#ifndef _LITE_COMMAND_H
#define _LITE_COMMAND_H

#include "memory/handle/ctx.h"
#include "node.h"

/**
 * struct lite_command - a command being carried out
 * @node: active
 * @ctx: has the handles that it names
 * @lf: open file; NULL: a kernel module's command, whose pointers are to kernel memory
 * @gate: to leave the node; only with @lf
 * @target: the LMR that it is about, if its row has a name
 * @cred: see lite_cmd_user()
 */
struct lite_command {
	struct lite_node *node;
	struct lite_ctx *ctx;
	struct lite_file *lf;
	struct lite_gate gate;
	struct lite_target target;
	struct lite_cred cred;
};

/* How all structures of commands begin, and most go on. */
struct lite_ioc_head {
	u32 size;
	u32 flags;
	u64 lh;
};

/**
 * struct lite_ioc - a command
 * @size: of its whole structure
 * @min_size: of its first published version
 * @flags: that it may have; LITE_IOC_FLAGS: the handler checks them
 * @quick: flags with any of which it returns without waiting
 * @zero: offset of a u32 that must be 0; 0: there is none
 * @name: offset of the LMR's name, used if the handle is 0; 0: it has no target
 * @out: copied out, if the handler succeeds
 * @always: copied out in any case
 * @looks: allowed in a file opened read-only
 * @fn: handler
 * @change: handler, for a command that a home carries out
 * @undo: when it succeeded and could not be copied out; the node is active
 * @unwind: as @undo, but needs no node: it may wait for user space
 */
struct lite_ioc {
	u16 size;
	u16 min_size;
	u32 flags;
	u32 quick;
	u16 zero;
	u16 name;
	bool out;
	bool always;
	bool looks;
	int (*fn)(struct lite_command *cmd, void *arg);
	int (*change)(struct lite_ctx *ctx, const struct lite_target *target, void *arg);
	void (*undo)(struct lite_command *cmd, void *arg);
	void (*unwind)(void *arg);
};

#define LITE_IOC_FLAGS (~0U)
#define LITE_IOC_BYTES 536 /* of the largest structure */
#define LITE_IOC_GROUP 16 /* commands in a table */

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
int lite_ioc_mmap(struct lite_command *cmd, void *arg);
void lite_ioc_unwind_mmap(void *arg);
int lite_ioc_vector(struct lite_command *cmd, void *arg);

#endif /* _LITE_COMMAND_H */
