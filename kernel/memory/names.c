// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of names. A node has two: of the names that its own LMRs have or are
 * about to have (mem->local, used by claim.c), and of those that it is the
 * directory for (mem->directory, used by directory.c).
 *
 * An entry belongs to its table; what is in it changes under the table's lock.
 */
#include <linux/jhash.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>

#include "../core/name.h"
#include "memory.h"

static u32 lite_name_key_hash(const void *name, u32 len, u32 seed)
{
	return jhash(name, strlen(name), seed);
}

static u32 lite_name_entry_hash(const void *entry, u32 len, u32 seed)
{
	const struct lite_name_entry *e = entry;

	return jhash(e->name, strlen(e->name), seed);
}

static int lite_name_entry_cmp(struct rhashtable_compare_arg *arg,
			       const void *entry)
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

/**
 * lite_names_init - an empty table
 * @names: to fill
 * @limit: that its entries are to be counted in
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int lite_names_init(struct lite_names *names, struct lite_limit *limit)
{
	names->limit = limit;
	mutex_init(&names->lock);
	INIT_LIST_HEAD(&names->all);
	init_waitqueue_head(&names->wait);
	atomic_set(&names->events, 0);
	names->publishing = NULL;
	return rhashtable_init(&names->table, &lite_names_params);
}

/**
 * lite_names_clear - forget all names
 * @mem: node's
 * @names: table
 *
 * Context: may sleep.
 */
void lite_names_clear(struct lite_memory *mem, struct lite_names *names)
{
	struct lite_name_entry *entry, *tmp;

	mutex_lock(&names->lock);
	list_for_each_entry_safe(entry, tmp, &names->all, list)
		lite_names_remove_locked(mem, names, entry);
	mutex_unlock(&names->lock);
}

/**
 * lite_names_exit - the counterpart of lite_names_init()
 * @names: table, empty
 *
 * Context: may sleep.
 */
void lite_names_exit(struct lite_names *names)
{
	WARN_ON_ONCE(!list_empty(&names->all));
	rhashtable_destroy(&names->table);
}

/**
 * lite_names_lookup_locked - the entry of a name
 * @names: table, locked
 * @name: name
 *
 * Context: may sleep.
 * Return: the entry, good while the table is locked, or NULL.
 */
struct lite_name_entry *lite_names_lookup_locked(struct lite_names *names,
						 const char *name)
{
	lockdep_assert_held(&names->lock);
	return rhashtable_lookup_fast(&names->table, name, lite_names_params);
}

/**
 * lite_names_insert_locked - enter a name that is not there
 * @mem: node's
 * @names: table, locked
 * @new: filled in; the table's if this succeeds
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int lite_names_insert_locked(struct lite_memory *mem, struct lite_names *names,
			     struct lite_name_entry *new)
{
	lockdep_assert_held(&names->lock);
	if (rhashtable_insert_fast(&names->table, &new->hash,
				   lite_names_params))
		return -ENOMEM;
	list_add(&new->list, &names->all);
	lite_stat_inc(mem->stats, LITE_STAT_NAMES);
	return 0;
}

/**
 * lite_names_remove_locked - take an entry out, and free it
 * @mem: node's
 * @names: table, locked
 * @entry: in the table
 *
 * Context: may sleep.
 */
void lite_names_remove_locked(struct lite_memory *mem, struct lite_names *names,
			      struct lite_name_entry *entry)
{
	lockdep_assert_held(&names->lock);
	rhashtable_remove_fast(&names->table, &entry->hash, lite_names_params);
	list_del(&entry->list);
	lite_stat_dec(mem->stats, LITE_STAT_NAMES);
	lite_name_entry_free(names, entry);
}

static size_t lite_name_entry_cost(const char *name)
{
	return kmalloc_size_roundup(sizeof(struct lite_name_entry) +
				    strlen(name) + 1) +
	       LITE_INDEX_COST;
}

/**
 * lite_name_entry_new - an entry that is in no table yet
 * @names: table that it is for
 * @name: name
 * @home: of the LMR
 * @id: of the LMR at its home
 * @uid: whom to charge
 *
 * Context: may sleep.
 * Return: the entry, for lite_name_entry_free() or lite_names_insert_locked(); or
 * ERR_PTR: -EDQUOT, -ENOSPC, -ENOMEM.
 */
struct lite_name_entry *lite_name_entry_new(struct lite_names *names,
					    const char *name, u32 home, u64 id,
					    u32 uid)
{
	size_t size = strlen(name) + 1;
	struct lite_name_entry *entry;
	int err;

	err = lite_limit_take(names->limit, uid, lite_name_entry_cost(name));
	if (err)
		return ERR_PTR(err);
	entry = kzalloc(struct_size(entry, name, size), GFP_KERNEL_ACCOUNT);
	if (!entry) {
		lite_limit_give(names->limit, uid, lite_name_entry_cost(name));
		return ERR_PTR(-ENOMEM);
	}
	entry->home = home;
	entry->id = id;
	entry->uid = uid;
	memcpy(entry->name, name, size);
	return entry;
}

/**
 * lite_name_entry_free - forget an entry
 * @names: table that it was for
 * @entry: in no table; or NULL
 *
 * Context: may sleep.
 */
void lite_name_entry_free(struct lite_names *names,
			  struct lite_name_entry *entry)
{
	if (!entry)
		return;
	lite_limit_give(names->limit, entry->uid,
			lite_name_entry_cost(entry->name));
	kfree(entry);
}

/**
 * lite_name_call - say something about a name to a node
 * @mem: node's
 * @node: its id; our own: the handler runs here and now
 * @call: LITE_CALL_NAME_*, one whose request is struct lite_wire_name
 * @name: name
 * @id: LMR of ours that it is about, or 0
 * @reply: for the reply, or NULL
 * @reply_max: bytes there
 *
 * Context: may sleep.
 * Return: as lite_cluster_call().
 */
int lite_name_call(struct lite_memory *mem, u32 node, u16 call,
		   const char *name, u64 id, void *reply, u32 reply_max)
{
	struct lite_wire_name req = {
		.home = cpu_to_le32(lite_cluster_id(mem->cl)),
		.id = cpu_to_le64(id),
	};
	struct lite_call_desc d = {
		.call = call,
		.req = &req,
		.len = sizeof(req),
		.reply = reply,
		.reply_max = reply_max,
		/* What is only asked may be given up. */
		.killable = reply,
	};

	strscpy(req.name, name, sizeof(req.name));
	/* A home that is only out of reach for a moment is one all the same. */
	if (call == LITE_CALL_NAME_FIND || call == LITE_CALL_NAME_PROBE)
		return lite_cluster_call_patiently(mem->cl, node, &d);
	return lite_cluster_call(mem->cl, node, &d);
}
