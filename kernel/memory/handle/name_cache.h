/* SPDX-License-Identifier: GPL-2.0 */
/* Cache of mappings by name and user. name_cache.c */
#ifndef _LITE_NAME_CACHE_H
#define _LITE_NAME_CACHE_H

#include <linux/hashtable.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

struct lite_mapping;
struct lite_memory;
struct lite_user;

/* Entries, at most. */
#define LITE_NAME_CACHE_MAX 1024

/**
 * struct lite_name_cache - cache of mappings by name and user
 * @lock: protects what follows
 * @names: struct lite_cached_name by hash of its name
 * @salt: of the hash, as users choose the names
 * @n: entries
 * @work: drops entries that were not used lately
 */
struct lite_name_cache {
	spinlock_t lock;
	DECLARE_HASHTABLE(names, 8);
	u32 salt;
	u32 n;
	struct delayed_work work;
};

void lite_name_cache_init(struct lite_memory *mem);
struct lite_mapping *lite_name_cache_find(struct lite_memory *mem,
					  const char *name,
					  const struct lite_user *user,
					  u32 rights);
void lite_name_cache_add(struct lite_memory *mem, const char *name,
			 struct lite_user *user, u32 rights,
			 struct lite_mapping *m);
void lite_name_cache_forget(struct lite_memory *mem);

#endif /* _LITE_NAME_CACHE_H */
