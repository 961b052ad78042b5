/* SPDX-License-Identifier: GPL-2.0 */
/* Handles, and requests and operations made with them. */
#ifndef _LITE_CTX_H
#define _LITE_CTX_H

#include <linux/idr.h>
#include <linux/nospec.h>
#include <linux/percpu-refcount.h>

#include "core/handle.h"
#include "memory/mapper/mapping.h"

#include <lite/kapi.h>

struct lite_access;
struct lite_vector;

/* The user that opened a handle; shared by handles opened in a row. */
struct lite_user {
	struct kref ref;
	struct rcu_head rcu;
	struct lite_cred cred;
};

/**
 * struct lite_handle - an open LMR
 * @lh: its number
 * @rights: LITE_RIGHT_* it was opened with, less those lost since; set before
 *	@mapping
 * @user: user that opened it
 * @mapping: under RCU; replaced, under ctx->lock, when it is retired
 * @rcu: freed after a grace period
 */
struct lite_handle {
	u64 lh;
	u32 rights;
	struct lite_user *user;
	struct lite_mapping __rcu *mapping;
	struct rcu_head rcu;
};

/**
 * struct lite_handle_table - handles by index
 * @rcu: freed after a grace period
 * @n: entries in @slot
 * @slot: handles, or NULL
 */
struct lite_handle_table {
	struct rcu_head rcu;
	u32 n;
	struct lite_handle __rcu *slot[];
};

/**
 * struct lite_ctx - the handles of an open file or of a kernel client
 * @mem: node's
 * @ref: held by the owner, and for @list until it is shut
 * @list: in mem->ctxs
 * @lock: serialises changes of handles
 * @closed: takes no new handles
 * @user: user that opened the last handle
 * @numbers: indices of handles, reserved ones included
 * @handles: under RCU; replaced and changed under @lock
 * @tags: for the numbers of handles
 * @pinned: process memory that was registered through it; under
 *	mem->runs_lock
 * @vector: cached memory for a vector call, while no call uses it; vector.c
 * @owner: of the layer above
 * @locks: held through it, by word and owner; of the service layer
 * @n_locks: entries in @locks
 */
struct lite_ctx {
	struct lite_memory *mem;
	struct kref ref;
	struct list_head list;
	struct mutex lock;
	bool closed;
	struct lite_user *user;
	struct ida numbers;
	struct lite_handle_table __rcu *handles;
	atomic_t tags;
	struct list_head pinned;
	struct lite_vector *vector;
	void *owner;
	struct rb_root locks;
	u32 n_locks;
};

/* Look up a handle by number. Under RCU, or @ctx locked. */
static inline struct lite_handle *lite_handle_find(const struct lite_ctx *ctx,
						   u64 lh)
{
	const struct lite_handle_table *t = rcu_dereference_check(
		ctx->handles, lockdep_is_held(&ctx->lock));
	u32 index = lite_handle_index(lh);
	struct lite_handle *h;

	if (!t || index >= t->n)
		return NULL;
	index = array_index_nospec(index, t->n);
	h = rcu_dereference_check(t->slot[index], lockdep_is_held(&ctx->lock));
	return h && h->lh == lh ? h : NULL;
}

/*
 * Not an errno that users or peers see: the caller must not block, so another
 * thread has to do it.
 */
#define LITE_EPUTOFF (MAX_ERRNO - 1)

/**
 * struct lite_gate - lets the node stop while user space is waited for
 * @users: of the node. A page fault can take forever (userfaultfd, FUSE), so it
 *	is left meanwhile
 * @in: the caller is counted in @users
 * @nowait: the thread submits io_uring commands and must not block; what would
 *	block returns -LITE_EPUTOFF and does nothing
 */
struct lite_gate {
	struct percpu_ref *users;
	bool in;
	bool nowait;
};

static inline void lite_gate_leave(struct lite_gate *gate)
{
	if (!gate)
		return;
	percpu_ref_put(gate->users);
	gate->in = false;
}

/* False: the node is stopping; touch nothing of it but counters. */
static inline bool lite_gate_enter(struct lite_gate *gate)
{
	if (!gate)
		return true;
	gate->in = percpu_ref_tryget_live(gate->users);
	return gate->in;
}

/**
 * struct lite_buf - memory of the caller of an operation
 * @gate: for user memory
 * @user: @u is valid, else @k
 * @u: user address
 * @k: kernel address
 */
struct lite_buf {
	struct lite_gate *gate;
	bool user;
	union {
		unsigned long u;
		void *k;
	};
};

struct lite_ctx *lite_ctx_new(struct lite_memory *mem, void *owner);
void lite_ctx_put(struct lite_ctx *ctx);
void lite_ctx_shut(struct lite_ctx *ctx);
struct lite_mapping *lite_map_id(struct lite_memory *mem, u32 home, u64 id,
				 const char *name, const struct lite_cred *cred,
				 u32 rights, u32 *granted);
int lite_ctx_map(struct lite_ctx *ctx, const struct lite_cred *cred,
		 const char *name, u32 rights, u64 *lh, u64 *length);
int lite_ctx_share(struct lite_ctx *ctx, const struct lite_access *from,
		   u64 *lh);
int lite_ctx_unmap(struct lite_ctx *ctx, u64 lh);

/* handles.c */
struct lite_handle *lite_handle_reserve(struct lite_ctx *ctx,
					const struct lite_cred *cred);
void lite_handle_cancel(struct lite_ctx *ctx, struct lite_handle *h);
int lite_handle_publish(struct lite_ctx *ctx, struct lite_handle *h,
			struct lite_mapping *m, u32 rights, u64 *lh);
void lite_handle_remove(struct lite_ctx *ctx, const struct lite_handle *h);
struct lite_handle *lite_handle_next(struct lite_ctx *ctx, u32 *index);
void lite_user_put(struct lite_user *user);

/* create.c */
void lite_create_fill(struct lite_wire_create *req, u32 self,
		      const struct lite_cred *cred, const char *name,
		      u64 length, u32 mode);
int lite_ctx_create(struct lite_ctx *ctx, const struct lite_cred *cred,
		    struct lite_ioc_alloc *a, const u32 *nodes);

/* register.c */
int lite_ctx_register(struct lite_ctx *ctx, const struct lite_cred *cred,
		      struct lite_ioc_register *r, struct lite_gate *gate);
void lite_ctx_unregister(struct lite_ctx *ctx);

/**
 * struct lite_target - the LMR that a request is about
 * @cred: user that asks, if @lh is 0
 * @lh: handle, or 0
 * @name: checked; used if @lh is 0
 */
struct lite_target {
	const struct lite_cred *cred;
	u64 lh;
	const char *name;
};

/**
 * struct lite_name_search - a search for the home of a name
 * @name: name
 * @home: where to ask
 * @id: of the LMR there
 * @err: result of asking there; after the search, its result
 * @tries: how many homes were named
 */
struct lite_name_search {
	const char *name;
	u32 home;
	u64 id;
	int err;
	int tries;
};

/* ask.c */
bool lite_name_search(struct lite_memory *mem, struct lite_name_search *at);
int lite_ctx_free(struct lite_ctx *ctx, const struct lite_target *target,
		  void *arg);
int lite_ctx_grant(struct lite_ctx *ctx, const struct lite_target *target,
		   void *arg);
int lite_ctx_setattr(struct lite_ctx *ctx, const struct lite_target *target,
		     void *arg);
int lite_ctx_rename(struct lite_ctx *ctx, const struct lite_target *target,
		    void *arg);
int lite_ctx_resize(struct lite_ctx *ctx, const struct lite_target *target,
		    void *arg);
int lite_ctx_move(struct lite_ctx *ctx, const struct lite_target *target,
		  void *arg);
int lite_ctx_grants(struct lite_ctx *ctx, const struct lite_target *target,
		    struct lite_grant *grants, u32 *n);
int lite_ctx_stat(struct lite_ctx *ctx, const struct lite_target *target,
		  struct lite_lmr_info *info, u32 *nodes);
int lite_memory_list(struct lite_memory *mem, u64 *cursor,
		     struct lite_lmr_info *info, u32 max);

/**
 * struct lite_access - what an operation may touch
 * @ctx: context of the handle
 * @lh: handle
 * @right: LITE_RIGHT_* it needs
 */
struct lite_access {
	struct lite_ctx *ctx;
	u64 lh;
	u32 right;
};

/* access.c */
int lite_home_gone(struct lite_memory *mem, u32 home, u64 incarnation);
int lite_access_ask(const struct lite_access *a,
		    const struct lite_mapping *stale, u32 *home, u64 *id);
int lite_access_renew(const struct lite_access *a,
		      const struct lite_mapping *stale);
struct lite_mapping *lite_access_enter(const struct lite_access *a);
struct lite_mapping *lite_access_tryenter(const struct lite_access *a,
					  const struct lite_mapping **stale);
int lite_access_await(const struct lite_access *a);
struct lite_conn *lite_access_conn(struct lite_mapping *m, u32 share);

static inline void lite_access_exit(struct lite_mapping *m)
{
	percpu_ref_put(&m->ops);
}

struct lite_mapping *lite_tryenter_range(const struct lite_access *a,
					 u64 offset, u64 length,
					 const struct lite_mapping **stale);
int lite_transfer(const struct lite_access *a, struct lite_op *op,
		  const struct lite_buf *buf);
int lite_atomic(const struct lite_access *a, struct lite_op *op, bool *posted);
int lite_atomic_may(const struct lite_access *a, u64 offset, u64 length);
int lite_memop(struct lite_ctx *ctx, struct lite_op *op);
int lite_fence(struct lite_ctx *ctx, u64 lh);

size_t lite_buf_copy_nofault(const struct lite_buf *buf, u64 at, void *mem,
			     size_t n, bool write);
int lite_buf_fault_in(const struct lite_buf *buf, u64 at, size_t n, bool write);
int lite_buf_pin(const struct lite_buf *buf, u64 at, size_t n, bool write,
		 bool wait, struct page **pages, int max, size_t *skip,
		 size_t *got);
bool lite_buf_tryunpin(const struct lite_buf *buf, struct page **pages, int n,
		       bool dirty);
void lite_buf_unpin(const struct lite_buf *buf, struct page **pages, int n,
		    bool dirty);

#endif /* _LITE_CTX_H */
