/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names of LMRs homed here, and the directory. claim.c, directory.c, names.c
 */
#ifndef _LITE_NAMES_H
#define _LITE_NAMES_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rhashtable-types.h>
#include <linux/wait.h>

#include <lite/kapi.h>

struct lite_limit;
struct lite_memory;

/* State of a name at its home; see claim.c. */
enum lite_name_state {
	LITE_NAME_YIELDING,
	LITE_NAME_CLAIMING,
	LITE_NAME_CONFIRMED,
};

/* The LMR that a name belongs to, as far as a node knows. */
struct lite_name_at {
	u32 home;
	u64 id;
};

static inline bool lite_name_is_at(const struct lite_name_at *at, u32 home,
				   u64 id)
{
	return at->home == home && at->id == id;
}

/* Does an error of a call tell that a node is down? */
static inline bool lite_name_is_down(int err)
{
	return err == -EHOSTDOWN || err == -EHOSTUNREACH;
}

/**
 * struct lite_name_entry - a name in a table
 * @hash: in the table
 * @list: in lite_names.all
 * @at: the LMR
 * @uid: owner of the LMR, charged for the entry
 * @published: local table: directory that has the name; 0: none
 * @session: directory: session in which the home entered it, 0: this node;
 *	local table: session with @published
 * @tried: local table: last run of the publisher that looked at it
 * @state: local table
 * @awaited: local table: another node was told BUSY and waits for a change
 * @name: the name
 */
struct lite_name_entry {
	struct rhash_head hash;
	struct list_head list;
	struct lite_name_at at;
	u32 uid;
	u32 published;
	u64 session;
	u32 tried;
	enum lite_name_state state : 8;
	bool awaited;
	char name[];
};

/**
 * struct lite_names - a table of names
 * @lock: protects the table, its entries, and @publishing
 * @table: entries by name; the hash is seeded, as users choose the names
 * @limit: entries are charged here
 * @all: all entries; local table: those the publisher has not looked at first
 * @wait: local table only, as are the rest: waiters for an event
 * @events: number of events so far
 * @publishing: entry that the publisher works on, which must stay
 * @runs: runs of the publisher, which alone uses it
 */
struct lite_names {
	struct mutex lock;
	struct rhashtable table;
	struct lite_limit *limit;
	struct list_head all;
	wait_queue_head_t wait;
	atomic_t events;
	struct lite_name_entry *publishing;
	u32 runs;
};

int lite_names_init(struct lite_names *names, struct lite_limit *limit);
void lite_names_clear(struct lite_memory *mem, struct lite_names *names);
void lite_names_exit(struct lite_names *names);
struct lite_name_entry *lite_names_lookup_locked(struct lite_names *names,
						 const char *name);
int lite_names_insert_locked(struct lite_memory *mem, struct lite_names *names,
			     struct lite_name_entry *new);
void lite_names_remove_locked(struct lite_memory *mem, struct lite_names *names,
			      struct lite_name_entry *entry);
struct lite_name_entry *lite_name_entry_new(struct lite_names *names,
					    const char *name, u32 home, u64 id,
					    u32 uid);
void lite_name_entry_free(struct lite_names *names,
			  struct lite_name_entry *entry);
int lite_name_call(struct lite_memory *mem, u32 node, u16 call,
		   const char *name, u64 id, void *reply, u32 reply_max);
int lite_name_call_all(struct lite_memory *mem, u16 call, const char *name,
		       u64 id, u32 reply_max, lite_call_done done, void *ctx);

void lite_names_event(struct lite_memory *mem);
int lite_name_reserve(struct lite_memory *mem, const char *name, u64 id,
		      u32 uid);
void lite_name_confirm(struct lite_memory *mem, const char *name, u64 id);
void lite_name_drop(struct lite_memory *mem, const char *name, u64 id);
bool lite_local_find(struct lite_memory *mem, const char *name,
		     struct lite_name_at *at);
void lite_name_claim_handlers(struct lite_memory *mem);

int lite_name_lookup(struct lite_memory *mem, const char *name, bool ask_all,
		     u32 *home, u64 *id);
int lite_directory_enter(struct lite_memory *mem, u32 node, const char *name,
			 u64 id, u32 uid, struct lite_name_at *at);
void lite_names_publish_work(struct work_struct *work);
void lite_names_publish(struct lite_memory *mem, const char *name);
void lite_names_drop_home(struct lite_memory *mem, u32 home, u64 but_session);
void lite_directory_handlers(struct lite_memory *mem);

#endif /* _LITE_NAMES_H */
