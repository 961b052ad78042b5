/* SPDX-License-Identifier: GPL-2.0 */
/* Names of LMRs homed here, and the directory. claim.c, directory.c, names.c */
#ifndef _LITE_NAMES_H
#define _LITE_NAMES_H

#include <linux/list.h>
#include <linux/rhashtable-types.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "line.h"

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

static inline bool lite_name_is_at(const struct lite_name_at *at, u32 home, u64 id)
{
	return at->home == home && at->id == id;
}

/* Does the error of a call say that the node is down, or no member? */
static inline bool lite_name_is_down(int err)
{
	return err == -EHOSTDOWN || err == -EHOSTUNREACH;
}

struct lite_name_entry {
	struct rhash_head hash;
	struct list_head list; /* in lite_names.all */
	struct lite_name_at at;
	u32 uid;               /* owner of the LMR, charged for the entry */
	u32 published;         /* local table: directory that has the name; 0: none */
	u64 session;           /* with @published; directory: that of ENTER, 0: this node */
	u32 tried;             /* local table: last run of the publisher that looked at it */
	enum lite_name_state state : 8; /* local table */
	bool awaited;          /* local table: another node was told BUSY and awaits a change */
	char name[];
};

/* Entries looked at in one hold of a table's lock: a user may have any number. */
#define LITE_NAMES_LOOK 64

struct lite_names {
	spinlock_t lock;          /* protects the table, its entries, @claims and @publishing */
	struct rhashtable table;  /* by name; the hash is seeded, as users choose the names */
	struct lite_limit *limit; /* entries are charged here */
	struct list_head all;     /* local table: first those the publisher has not looked at */

	/* Local table only: */
	struct lite_line claims;  /* claims in progress, by name: claim.c */
	siphash_key_t key;        /* keys the hash of names there, as users choose them */
	struct lite_name_entry *publishing; /* must stay, as the publisher works on it */
	wait_queue_head_t published; /* woken when @publishing changes */
	u32 runs;                 /* of the publisher, the only user */
};

/* Is an entry of @home stale? @number: a session or incarnation of @home. Does not sleep. */
typedef bool (*lite_name_is)(struct lite_memory *mem, const struct lite_name_entry *entry,
			     u32 home, u64 number);

int lite_names_init(struct lite_names *names, struct lite_limit *limit);
void lite_names_drop(struct lite_memory *mem, struct lite_names *names, lite_name_is stale,
		     u32 home, u64 number);
void lite_names_exit(struct lite_names *names);
struct lite_name_entry *lite_names_lookup_locked(struct lite_names *names, const char *name);
int lite_names_insert_locked(struct lite_memory *mem, struct lite_names *names,
			     struct lite_name_entry *new);
void lite_names_remove_locked(struct lite_memory *mem, struct lite_names *names,
			      struct lite_name_entry *entry);
struct lite_name_entry *lite_name_entry_new(struct lite_names *names, const char *name, u32 home,
					    u64 id, u32 uid);
void lite_name_entry_free(struct lite_names *names, struct lite_name_entry *entry);
int lite_name_call(struct lite_memory *mem, u32 node, u16 call, const char *name, u64 id,
		   void *reply, u32 reply_max, bool wait);
int lite_name_call_all(struct lite_memory *mem, u16 call, const char *name, u64 id, u32 reply_max,
		       lite_call_done done, void *ctx);

void lite_name_wake_locked(struct lite_names *local, const char *name);
void lite_name_wake(struct lite_memory *mem, const char *name);
int lite_name_reserve(struct lite_memory *mem, const char *name, u64 id, u32 uid);
void lite_name_show(struct lite_memory *mem, const char *name, u64 id);
void lite_name_confirm(struct lite_memory *mem, const char *name, u64 id);
void lite_name_drop(struct lite_memory *mem, const char *name, u64 id);
bool lite_local_find(struct lite_memory *mem, const char *name, struct lite_name_at *at);

int lite_name_lookup(struct lite_memory *mem, const char *name, bool ask_all, u32 *home, u64 *id);
bool lite_name_known(struct lite_memory *mem, const char *name, struct lite_name_at *at);
u32 lite_name_directory(struct lite_memory *mem, const char *name);
int lite_directory_enter(struct lite_memory *mem, u32 node, const char *name, u64 id, u32 uid,
			 struct lite_name_at *at);
void lite_names_publish_work(struct work_struct *work);
void lite_names_publish(struct lite_memory *mem, const char *name);
void lite_names_lost(struct lite_memory *mem, u32 home, u64 incarnation);

#endif /* _LITE_NAMES_H */
