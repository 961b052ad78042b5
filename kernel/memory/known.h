/* SPDX-License-Identifier: GPL-2.0 */
/* Cache of mappings by name and user. known.c */
#ifndef _LITE_KNOWN_H
#define _LITE_KNOWN_H

#include <linux/hashtable.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

struct lite_mapping;
struct lite_memory;
struct lite_user;

/* Entries, at most. */
#define LITE_KNOWN_MAX 1024

/**
 * struct lite_known_table - cache of mappings by name and user
 * @lock: protects what follows
 * @names: struct lite_known by hash of its name
 * @salt: of the hash, as users choose the names
 * @n: entries
 * @work: drops entries that were not used lately
 */
struct lite_known_table {
	spinlock_t lock;
	DECLARE_HASHTABLE(names, 8);
	u32 salt;
	u32 n;
	struct delayed_work work;
};

void lite_known_init(struct lite_memory *mem);
struct lite_mapping *lite_known_find(struct lite_memory *mem, const char *name,
				     const struct lite_user *user, u32 rights);
void lite_known_add(struct lite_memory *mem, const char *name,
		    struct lite_user *user, u32 rights, struct lite_mapping *m);
void lite_known_forget(struct lite_memory *mem);

#endif /* _LITE_KNOWN_H */
