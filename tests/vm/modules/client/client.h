/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of this module share. Each defines pr_fmt() first. */
#ifndef _CLIENT_H
#define _CLIENT_H

#include <linux/printk.h>

#include <lite/kapi.h>

static inline bool __fails(int line, const char *what)
{
	pr_err("%d: %s\n", line, what);
	return true;
}

/* Is @what false? Then the log says so. */
#define FAILS(what) (!(what) && __fails(__LINE__, #what))

int client_owns(struct lite_ctx *ctx, u32 node, struct lite_ctx *other);
int client_locks(struct lite_ctx *ctx, u32 node, unsigned int other);

#endif /* _CLIENT_H */
