/* SPDX-License-Identifier: GPL-2.0 */
/* Handles, and requests made with them. */
#ifndef _LITE_CTX_H
#define _LITE_CTX_H

#include <linux/idr.h>
#include <linux/nospec.h>
#include <linux/percpu-refcount.h>

#include "core/handle.h"
#include "memory/mapper/mapping.h"

#include <lite/kapi.h>

struct lite_vector;
struct vm_fault;

/* The user that opened a handle; shared by handles opened in a row. */
struct lite_user {
	refcount_t ref;
	struct rcu_head rcu;
	struct lite_cred cred;
};

/* An open LMR; freed after a grace period. */
struct lite_handle {
	u64 lh;     /* its number */
	u32 rights; /* LITE_RIGHT_* of its opening, less those lost since; set before @mapping */
	u32 uid;    /* charged for it */
	struct lite_user *user;
	struct lite_mapping __rcu *mapping; /* replaced, under ctx->lock, when it is retired */
	struct rcu_head rcu;
};

/* Handles by index, or NULL; @n entries. Freed after a grace period. */
struct lite_handle_table {
	struct rcu_head rcu;
	u32 n;
	struct lite_handle __rcu *slot[];
};

/* The handles of an open file or of a kernel client. */
struct lite_ctx {
	struct lite_memory *mem;
	refcount_t ref;          /* held by the owner, and for @list until it is shut */
	struct list_head list;   /* in mem->ctxs */
	struct mutex renewing;   /* held while a handle is renewed; outside of @lock */
	struct mutex lock;       /* serialises changes of handles */
	bool closed;             /* takes no new handles */
	u8 prio;                 /* default priority of operations: see LITE_POST_PRIO */
	struct lite_user *user;  /* of the last handle opened */
	struct ida numbers;      /* indices of handles, reserved ones included */
	struct lite_handle_table __rcu *handles; /* replaced and changed under @lock */
	atomic_t tags;           /* for the numbers of handles */
	struct list_head registered; /* struct lite_registered; under mem->runs_lock */
	struct lite_kept *kept;      /* blocks of its arenas; valid until it is shut */
	struct lite_vector *vector; /* cached for a vector call, while no call uses it; vector.c */
	unsigned long pack_after; /* jiffies until which batch/ packs no operations into messages */
	u64 pack_not;            /* in this session */
	struct rb_root locks;    /* locks held through it, by word and owner; for sync/ */
	u32 n_locks;
};

/* Look up a handle by number. Under RCU, or @ctx locked. */
static inline struct lite_handle *lite_handle_find(const struct lite_ctx *ctx, u64 lh)
{
	const struct lite_handle_table *t =
		rcu_dereference_check(ctx->handles, lockdep_is_held(&ctx->lock));
	u32 index = lite_handle_index(lh);
	struct lite_handle *h;

	if (!t || index >= t->n)
		return NULL;
	index = array_index_nospec(index, t->n);
	h = rcu_dereference_check(t->slot[index], lockdep_is_held(&ctx->lock));
	return h && h->lh == lh ? h : NULL;
}

/* Internal errno: the caller must not block, so another thread has to do the work. */
#define LITE_EPUTOFF (MAX_ERRNO - 1)

/* Lets the node stop while a thread waits for user space: a page fault can take forever. */
struct lite_gate {
	struct percpu_ref *users; /* counts the node's users; left while waiting */
	bool in;                  /* the caller is counted in @users */
	/* In a submission to io_uring: what would block does nothing but return -LITE_EPUTOFF. */
	bool nowait;
};

static inline void lite_gate_leave(struct lite_gate *gate)
{
	if (!gate)
		return;
	percpu_ref_put(gate->users);
	gate->in = false;
}

/* Return: false: the node is stopping; touch nothing of it but counters. */
static inline bool lite_gate_enter(struct lite_gate *gate)
{
	if (!gate)
		return true;
	gate->in = percpu_ref_tryget_live(gate->users);
	return gate->in;
}

/* The handle by which to operate on an LMR, and the right that this needs. */
struct lite_access {
	struct lite_ctx *ctx;
	u64 lh;
	u32 right; /* LITE_RIGHT_* it needs */
	/*
	 * A worker operates for this task, which waits for it. Instead of waiting for a home or a
	 * suspect peer, the worker returns -LITE_EPUTOFF. NULL: the caller operates for itself.
	 */
	struct task_struct *task;
};

/* The LMR that a request is about. */
struct lite_target {
	const struct lite_cred *cred; /* user that asks, if @lh is 0 */
	u64 lh;                       /* handle, or 0 */
	const char *name;             /* checked; used if @lh is 0 */
};

struct lite_name_search {
	const char *name;
	bool ask_all; /* do not ask the directory */
	u32 home;  /* where to ask */
	u64 id;    /* of the LMR there */
	int err;   /* of asking there; after the search, its result */
	int tries; /* how many homes were named */
};

/* ctx.c */
struct lite_ctx *lite_ctx_new(struct lite_memory *mem);
void lite_ctx_put(struct lite_ctx *ctx);
void lite_ctx_shut(struct lite_ctx *ctx);
int lite_ctx_may_prio(const struct lite_ctx *ctx, u32 prio);
int lite_ctx_set_prio(struct lite_ctx *ctx, u32 prio, bool kernel);
void lite_handle_pool_init(struct lite_memory *mem);
struct lite_handle *lite_handle_reserve(struct lite_ctx *ctx, const struct lite_cred *cred);
int lite_handle_publish(struct lite_ctx *ctx, struct lite_handle *h, struct lite_mapping *m,
			u32 rights, u64 *lh);
void lite_user_put(struct lite_user *user);
int lite_ctx_share(struct lite_ctx *ctx, const struct lite_access *from, u64 *lh);
int lite_ctx_unmap(struct lite_ctx *ctx, u64 lh);

/* create.c */
int lite_ctx_map(struct lite_ctx *ctx, const struct lite_cred *cred, const char *name, u32 rights,
		 u64 *lh, u64 *length);
int lite_ctx_create(struct lite_ctx *ctx, const struct lite_cred *cred, struct lite_ioc_alloc *a,
		    const u32 *nodes);
int lite_ctx_register(struct lite_ctx *ctx, const struct lite_cred *cred,
		      struct lite_ioc_register *r, struct lite_gate *gate);
void lite_ctx_unregister(struct lite_ctx *ctx);

/* name_cache.c */
struct lite_mapping *lite_name_cache_find(struct lite_memory *mem, const char *name,
					  const struct lite_user *user, u32 rights);
void lite_name_cache_add(struct lite_memory *mem, const char *name, struct lite_user *user,
			 u32 rights, struct lite_mapping *m);
void lite_name_cache_forget(struct lite_memory *mem);
void lite_name_cache_init(struct lite_memory *mem);

/* home_request.c */
bool lite_name_search(struct lite_memory *mem, struct lite_name_search *at);

/* lmr_change.c */
int lite_ctx_free(struct lite_ctx *ctx, const struct lite_target *target, void *arg);
int lite_ctx_grant(struct lite_ctx *ctx, const struct lite_target *target, void *arg);
int lite_ctx_setattr(struct lite_ctx *ctx, const struct lite_target *target, void *arg);
int lite_ctx_rename(struct lite_ctx *ctx, const struct lite_target *target, void *arg);
int lite_ctx_resize(struct lite_ctx *ctx, const struct lite_target *target, void *arg);

/* move_steps.c */
int lite_ctx_move(struct lite_ctx *ctx, const struct lite_target *target, void *arg);

/* lmr_info.c */
int lite_ctx_grants(struct lite_ctx *ctx, const struct lite_target *target,
		    struct lite_grant *grants, u32 *n);
int lite_ctx_stat(struct lite_ctx *ctx, const struct lite_target *target,
		  struct lite_lmr_info *info, u32 *nodes);
int lite_memory_list(struct lite_memory *mem, u64 *cursor, struct lite_lmr_info *info, u32 max);

/* access.c */
int lite_home_gone(struct lite_memory *mem, u32 home, u64 incarnation);
int lite_access_ask(const struct lite_access *a, const struct lite_mapping *stale, u32 *home,
		    u64 *id);
int lite_access_renew(const struct lite_access *a, const struct lite_mapping *stale);
struct lite_mapping *lite_access_enter(const struct lite_access *a);
struct lite_mapping *lite_access_tryenter(const struct lite_access *a,
					  const struct lite_mapping **stale);
struct lite_mapping *lite_tryenter_at(const struct lite_access *a, u64 offset, u64 length, u64 at,
				      const struct lite_mapping **stale);
int lite_range_renew(const struct lite_access *a, u64 at, const struct lite_mapping *stale,
		     unsigned long *until);
int lite_access_await(const struct lite_access *a, int *backs);
struct lite_mapping *lite_access_enter_patiently(const struct lite_access *a);

/* lite_tryenter_at(), to begin with the first byte. */
static inline struct lite_mapping *lite_tryenter_range(const struct lite_access *a, u64 offset,
						       u64 length,
						       const struct lite_mapping **stale)
{
	return lite_tryenter_at(a, offset, length, offset, stale);
}

static inline void lite_access_exit(struct lite_mapping *m)
{
	lite_ops_put(m);
}

/*
 * The session in which to operate on a share at another node; the caller has entered @m. Context:
 * any. Return: its connection, held live; ERR_PTR: -EHOSTDOWN; -ESTALE: the node has lost the
 * memory; -EAGAIN: renew the handle, there is a newer session.
 */
static inline struct lite_conn *lite_access_conn(const struct lite_mapping *m, u32 share)
{
	const struct lite_map_share *s = &m->share[share];
	struct lite_conn *conn = NULL;

	if (unlikely(s->lost))
		return ERR_PTR(-ESTALE);
	if (likely(s->session))
		conn = lite_peer_conn_tryget(s->peer, s->session);
	if (likely(conn))
		return conn;
	return ERR_PTR(s->peer && rcu_access_pointer(s->peer->conn) ? -EAGAIN : -EHOSTDOWN);
}

/* fault.c */
int lite_view_check(const struct lite_view *v, const struct lite_access *a);
int lite_view_fault(struct lite_view *v, const struct lite_access *a, struct vm_fault *vmf);
int lite_view_ask(const struct lite_access *a);
int lite_view_renew(const struct lite_access *a);

#endif /* _LITE_CTX_H */
