/* SPDX-License-Identifier: GPL-2.0 */
/* Names: those of LMRs homed here, and the directory. claim.c, directory.c, names.c */
#ifndef _LITE_NAMES_H
#define _LITE_NAMES_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rhashtable-types.h>
#include <linux/wait.h>

#include <lite/kapi.h>

struct lite_limit;
struct lite_memory;

/* A name at its home; claim.c says what the states mean. */
enum lite_name_state {
	LITE_NAME_YIELDING,
	LITE_NAME_CLAIMING,
	LITE_NAME_CONFIRMED,
};

/* Which LMR a name is said to be of. */
struct lite_name_at {
	u32 home;
	u64 id;
};

/**
 * struct lite_name_entry - a name in a table
 * @hash: of its table
 * @list: of all entries of its table
 * @id: of the LMR at its home
 * @home: of the LMR
 * @uid: charged to, the LMR's owner
 * @published: names of our own LMRs: directory that knows it, 0: none
 * @session: in the directory: in which its home entered it; 0: ourselves; of our
 *	own LMRs: in which session with @published
 * @tried: of our own LMRs: the last run of the publisher that looked at it
 * @state: of our own LMRs
 * @awaited: of our own LMRs: another node was told BUSY, and wants to know of
 *	changes
 * @name: name
 */
struct lite_name_entry {
	struct rhash_head hash;
	struct list_head list;
	u64 id;
	u32 home;
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
 * @lock: protects the table, what is in it, and @publishing
 * @table: entries by name; its hash is salted, for names are chosen by users
 * @limit: that its entries are counted in
 * @all: its entries; of our own LMRs: those first that the publisher has not
 *	looked at
 * @wait: the rest is for names of our own LMRs: who waits for an event
 * @events: how many there were
 * @publishing: entry that the publisher is at, and that must stay
 * @runs: of the publisher; only its own
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

void lite_names_event(struct lite_memory *mem);
int lite_name_reserve(struct lite_memory *mem, const char *name, u64 id,
		      u32 uid);
void lite_name_confirm(struct lite_memory *mem, const char *name, u64 id);
void lite_name_drop(struct lite_memory *mem, const char *name, u64 id);
bool lite_local_find(struct lite_memory *mem, const char *name,
		     struct lite_name_at *at);
void lite_claim_handlers(struct lite_memory *mem);

int lite_name_lookup(struct lite_memory *mem, const char *name, bool ask_all,
		     u32 *home, u64 *id);
u64 lite_directory_session(struct lite_memory *mem, u32 node);
int lite_directory_enter(struct lite_memory *mem, u32 node, const char *name,
			 u64 id, u32 uid, const struct lite_name_at *was,
			 struct lite_name_at *is);
void lite_names_publish_work(struct work_struct *work);
void lite_names_publish(struct lite_memory *mem, const char *name);
void lite_names_drop_home(struct lite_memory *mem, u32 home, u64 but_session);
void lite_directory_handlers(struct lite_memory *mem);

#endif /* _LITE_NAMES_H */
