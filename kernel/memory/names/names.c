// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of names. A node has two: names that its own LMRs have or are about to have (mem->local,
 * see claim.c), and names that it is the directory for (mem->directory, see directory.c). A table
 * owns its entries; they change only under its lock.
 */
#include <linux/jhash.h>
#include <linux/random.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>

#include "memory/memory.h"

static u32 lite_name_key_hash(const void *name, u32 len, u32 seed)
{
	return jhash(name, strlen(name), seed);
}

static u32 lite_name_entry_hash(const void *entry, u32 len, u32 seed)
{
	const struct lite_name_entry *e = entry;

	return lite_name_key_hash(e->name, 0, seed);
}

static int lite_name_entry_cmp(struct rhashtable_compare_arg *arg, const void *entry)
{
	const struct lite_name_entry *e = entry;

	return strcmp(arg->key, e->name);
}

static const struct rhashtable_params lite_names_params = {
	.head_offset = offsetof(struct lite_name_entry, hash),
	.hashfn = lite_name_key_hash,
	.obj_hashfn = lite_name_entry_hash,
	.obj_cmpfn = lite_name_entry_cmp,
	.automatic_shrinking = true,
};

/* Initialise a table, which is zeroed. May sleep. Return: 0 or -ENOMEM. */
int lite_names_init(struct lite_names *names, struct lite_limit *limit)
{
	names->limit = limit;
	spin_lock_init(&names->lock);
	INIT_LIST_HEAD(&names->all);
	lite_line_init(&names->claims);
	get_random_bytes(&names->key, sizeof(names->key));
	init_waitqueue_head(&names->published);
	return rhashtable_init(&names->table, &lite_names_params);
}

/*
 * Remove and free the entries for which @stale, called with the table locked, returns true; NULL:
 * all entries. Those that are inserted meanwhile stay. May sleep.
 */
void lite_names_drop(struct lite_memory *mem, struct lite_names *names, lite_name_is stale,
		     u32 home, u64 number)
{
	/* In the list behind the entries looked at so far. Only such cursors have home 0. */
	struct lite_name_entry cursor = {}, *entry, *tmp;
	int looked = LITE_NAMES_LOOK;
	LIST_HEAD(gone);

	spin_lock(&names->lock);
	list_add(&cursor.list, &names->all);
	spin_unlock(&names->lock);
	while (looked == LITE_NAMES_LOOK) {
		looked = 0;
		spin_lock(&names->lock);
		while (looked < LITE_NAMES_LOOK && !list_is_last(&cursor.list, &names->all)) {
			entry = list_next_entry(&cursor, list);
			list_move(&cursor.list, &entry->list);
			looked++;
			if (!entry->at.home || (stale && !stale(mem, entry, home, number)))
				continue;
			lite_names_remove_locked(mem, names, entry);
			list_add(&entry->list, &gone);
		}
		if (looked < LITE_NAMES_LOOK)
			list_del(&cursor.list);
		spin_unlock(&names->lock);
		list_for_each_entry_safe(entry, tmp, &gone, list)
			lite_name_entry_free(names, entry);
		INIT_LIST_HEAD(&gone);
		cond_resched();
	}
}

/* Undo lite_names_init(). The table must be empty. */
void lite_names_exit(struct lite_names *names)
{
	WARN_ON_ONCE(!list_empty(&names->all));
	rhashtable_destroy(&names->table);
}

/* The entry of a name, valid while the table is locked; or NULL. */
struct lite_name_entry *lite_names_lookup_locked(struct lite_names *names, const char *name)
{
	lockdep_assert_held(&names->lock);
	return rhashtable_lookup_fast(&names->table, name, lite_names_params);
}

/* Insert a new name. The table owns @new on success. Return: 0 or -ENOMEM. */
int lite_names_insert_locked(struct lite_memory *mem, struct lite_names *names,
			     struct lite_name_entry *new)
{
	lockdep_assert_held(&names->lock);
	if (rhashtable_insert_fast(&names->table, &new->hash, lite_names_params))
		return -ENOMEM;
	list_add(&new->list, &names->all);
	lite_stat_inc(mem->stats, LITE_STAT_NAMES);
	return 0;
}

/* Remove an entry from its locked table, for lite_name_entry_free() without the lock. */
void lite_names_remove_locked(struct lite_memory *mem, struct lite_names *names,
			      struct lite_name_entry *entry)
{
	lockdep_assert_held(&names->lock);
	rhashtable_remove_fast(&names->table, &entry->hash, lite_names_params);
	list_del(&entry->list);
	lite_stat_dec(mem->stats, LITE_STAT_NAMES);
}

static size_t lite_name_entry_cost(const char *name)
{
	return kmalloc_size_roundup(sizeof(struct lite_name_entry) + strlen(name) + 1) +
	       LITE_INDEX_COST;
}

/*
 * Allocate an entry for a table, and charge @uid for it. May sleep. Return: the entry, for
 * lite_names_insert_locked() or lite_name_entry_free(); ERR_PTR: -EDQUOT, -ENOSPC, -ENOMEM.
 */
struct lite_name_entry *lite_name_entry_new(struct lite_names *names, const char *name, u32 home,
					    u64 id, u32 uid)
{
	size_t size = strlen(name) + 1;
	struct lite_name_entry *entry;

	entry = lite_limit_alloc(names->limit, uid, struct_size(entry, name, size),
				 lite_name_entry_cost(name));
	if (IS_ERR(entry))
		return entry;
	entry->at = (struct lite_name_at){ .home = home, .id = id };
	entry->uid = uid;
	memcpy(entry->name, name, size);
	return entry;
}

/* Uncharge and free an entry that is in no table; or NULL. May sleep. */
void lite_name_entry_free(struct lite_names *names, struct lite_name_entry *entry)
{
	if (entry)
		lite_limit_free(names->limit, entry->uid, entry, lite_name_entry_cost(entry->name));
}

static struct lite_call_desc lite_name_desc(struct lite_memory *mem, struct lite_wire_name *req,
					    u16 call, const char *name, u64 id, u32 reply_max)
{
	*req = (struct lite_wire_name){
		.home = cpu_to_le32(lite_cluster_id(mem->cl)),
		.id = cpu_to_le64(id),
	};
	strscpy(req->name, name, sizeof(req->name));
	return (struct lite_call_desc){
		LITE_REQUEST(call, *req),
		.reply_max = reply_max,
		/* A call with a reply is a query: it has no effect, and may be abandoned. */
		.killable = reply_max,
	};
}

/*
 * Make a call about a name, LITE_CALL_NAME_* with a struct lite_wire_name, to a node; for this node
 * the handler runs in this thread. @id: of the LMR here that the call is about, or 0. @wait: wait
 * for a suspect, which still has its names. May sleep; killable if there is a @reply. Return: 0 or
 * a negative errno of lite_cluster_call().
 */
int lite_name_call(struct lite_memory *mem, u32 node, u16 call, const char *name, u64 id,
		   void *reply, u32 reply_max, bool wait)
{
	struct lite_wire_name req;
	struct lite_call_desc d = lite_name_desc(mem, &req, call, name, id, reply_max);

	d.reply = reply;
	return wait ? lite_cluster_call_patiently(mem->cl, node, &d) :
		      lite_cluster_call(mem->cl, node, &d);
}

/*
 * As lite_name_call(), but to all other live members, without waiting for suspects. @done and the
 * return value: see lite_cluster_call_all(). Killable if there are replies.
 */
int lite_name_call_all(struct lite_memory *mem, u16 call, const char *name, u64 id, u32 reply_max,
		       lite_call_done done, void *ctx)
{
	struct lite_wire_name req;
	struct lite_call_desc d = lite_name_desc(mem, &req, call, name, id, reply_max);

	return lite_cluster_call_all(mem->cl, 0, false, &d, done, ctx);
}
