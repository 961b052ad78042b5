// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of names. A node has two: of the names that its own LMRs have or are
 * about to have (mem->local, used by claim.c), and of those that it is the
 * directory for (mem->directory, used by directory.c).
 *
 * An entry belongs to its table; what is in it changes under the table's lock.
 */
#include <linux/slab.h>

#include "../core/name.h"
#include "memory.h"

/**
 * lite_names_init - an empty table
 * @names: to fill
 *
 * Context: any.
 */
void lite_names_init(struct lite_names *names)
{
	mutex_init(&names->lock);
	xa_init(&names->table);
	init_waitqueue_head(&names->wait);
	atomic_set(&names->events, 0);
	names->publishing = NULL;
}

/**
 * lite_names_exit - forget all names
 * @mem: node's
 * @names: table
 *
 * Context: may sleep.
 */
void lite_names_exit(struct lite_memory *mem, struct lite_names *names)
{
	struct lite_name_entry *entry, *next;
	unsigned long hash;

	mutex_lock(&names->lock);
	xa_for_each(&names->table, hash, entry) {
		for (; entry; entry = next) {
			next = entry->next;
			lite_stat_dec(mem->stats, LITE_STAT_NAMES);
			kfree(entry);
		}
	}
	xa_destroy(&names->table);
	mutex_unlock(&names->lock);
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
	struct lite_name_entry *entry;

	lockdep_assert_held(&names->lock);
	entry = xa_load(&names->table, lite_name_hash(name, strlen(name)));
	while (entry && strcmp(entry->name, name))
		entry = entry->next;
	return entry;
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
	u64 hash = lite_name_hash(new->name, strlen(new->name));
	int err;

	lockdep_assert_held(&names->lock);
	new->next = xa_load(&names->table, hash);
	err = xa_err(xa_store(&names->table, hash, new, GFP_KERNEL));
	if (!err)
		lite_stat_inc(mem->stats, LITE_STAT_NAMES);
	return err;
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
	u64 hash = lite_name_hash(entry->name, strlen(entry->name));
	struct lite_name_entry *head = xa_load(&names->table, hash);
	struct lite_name_entry **at = &head;

	lockdep_assert_held(&names->lock);
	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	/* Replaces what is there already, or erases: needs no memory. */
	if (head)
		xa_store(&names->table, hash, head, GFP_KERNEL);
	else
		xa_erase(&names->table, hash);
	lite_stat_dec(mem->stats, LITE_STAT_NAMES);
	kfree(entry);
}

/**
 * lite_name_entry_new - an entry that is in no table yet
 * @name: name
 * @home: of the LMR
 * @id: of the LMR at its home
 *
 * Context: may sleep.
 * Return: the entry, to be freed or given to a table, or NULL.
 */
struct lite_name_entry *lite_name_entry_new(const char *name, u32 home, u64 id)
{
	struct lite_name_entry *entry = kzalloc(sizeof(*entry), GFP_KERNEL);

	if (!entry)
		return NULL;
	entry->home = home;
	entry->id = id;
	strscpy(entry->name, name, sizeof(entry->name));
	return entry;
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
