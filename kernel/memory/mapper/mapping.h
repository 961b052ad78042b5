/* SPDX-License-Identifier: GPL-2.0 */
/* The mapper's role. */
#ifndef _LITE_MAPPING_H
#define _LITE_MAPPING_H

#include "cluster/cluster.h"
#include "core/bounds.h"
#include "core/extent.h"
#include "core/handle.h"
#include "wire/wire.h"

struct lite_conn;
struct lite_cred;
struct lite_memory;
struct lite_payer;
struct lite_peer;

enum lite_mapping_state {
	LITE_MAPPING_ACTIVE,
	LITE_MAPPING_RETIRED, /* recalled, or its session is over: map again */
	LITE_MAPPING_REVOKED, /* the LMR is gone */
};

/* A node that stores part of an LMR, or is its home. */
struct lite_map_share {
	u32 node;
	struct lite_peer *peer; /* NULL: it is this node, or one that this node did not know */
	u64 session;            /* the only one to use; 0: none, the node was down */
	u64 up_before;          /* its lite_conn.up_before */
	bool local;             /* this node in its present incarnation */
	bool lost;              /* a new incarnation of the node has lost the memory: -ESTALE */
};

/* What this node knows of an LMR, shared by all its handles. */
struct lite_mapping {
	struct lite_memory *mem;
	refcount_t ref;            /* handles and others that use it */
	struct rcu_work rcu;       /* operations look it up under RCU */
	atomic_t ops;              /* operations in flight; negative when it has left ACTIVE */
	struct completion drained; /* the gate is closed, and no operation is in flight */
	atomic_t watchers;         /* threads that wait for @drained, and 1 until it is released */
	struct work_struct zap_work; /* removes its pages from page tables */
	struct list_head views;    /* user mappings with pages of it; under views_lock */
	bool tail;                 /* the last page may have been written beyond the LMR's end */
	enum lite_mapping_state state; /* leaves ACTIVE once, under map_lock */
	u32 home;
	u64 home_incarnation;
	u64 id;                    /* at the home */
	u64 generation;            /* of the LMR when it was mapped */
	u64 length;
	/* 0: no chunk. Else its LMR, and its first byte there; @extents have offsets in the LMR. */
	u64 of;
	u64 base;
	bool read_only;            /* of a chunk: it may not be written to */
	bool chunked;              /* unpinned: no extents, but @chunks */
	struct xarray chunks;      /* struct lite_mapping by first page, with references; chunk.c */
	bool anonymous;            /* the LMR has no name */
	bool early;                /* this node did not know some of its nodes when it was made */
	/* Record of the anonymous LMR, if a handle of its maker has or had this; under map_lock. */
	struct lite_made *made;
	bool unclean;              /* an operation failed, and a store may still carry it out */
	/* In mem->unclean: since it left mem->mappings, until the home is told or it is clean. */
	struct lite_line_place left;
	unsigned long careful;     /* jiffies of a small piece, tried after large ones failed */
	u64 grants;                /* MAPs of this node that the home counts; under map_lock */
	bool for_peers;            /* mem->peer_mappings has a reference; under map_lock */
	struct list_head peer_list;
	unsigned long peer_used;   /* jiffies: a memory operation of a peer last used it */
	struct lite_conn *conn;    /* session of the MAP; holds a reference; NULL: at home here */
	u32 n_shares;
	struct lite_map_share *share; /* the nodes that hold its memory; the first is the home */
	u32 n_extents;
	struct lite_extent *extents;
	/* Kernel addresses of local extents; NULL if not contiguous. There may be no table. */
	void **local;
};

/*
 * If packets overtake each other, a go-back-N transport may never get a large piece through. After
 * two have failed (transfer.c), pieces stay small for LITE_CAREFUL_TIME.
 */
#define LITE_CAREFUL_BYTES 1024
#define LITE_CAREFUL_TIME (60 * HZ)

static inline bool lite_mapping_is_careful(const struct lite_mapping *m)
{
	return time_before(jiffies, READ_ONCE(m->careful) + LITE_CAREFUL_TIME);
}

static inline const struct lite_extent *lite_extent_at(const struct lite_mapping *m, u64 offset)
{
	/* Usually the first extent has it. (In later chunks most offsets are beyond it.) */
	if (likely(offset < m->extents->length))
		return m->extents;
	return &m->extents[lite_extent_find(m->extents, m->n_extents, offset)];
}

/*
 * The store may still carry out a failed operation when a late packet comes. The mark makes the
 * home fence this node there before the memory is freed.
 */
static inline int lite_io_result(struct lite_mapping *m, int err)
{
	if (err)
		WRITE_ONCE(m->unclean, true);
	return err;
}

/*
 * The gate of a mapping counts operations in flight, and its sign closes it for good, as in kernfs.
 * (It is no percpu_ref because there are many mappings, most of them used by few CPUs.)
 */
#define LITE_OPS_CLOSED INT_MIN

/* Begin an operation. Called under RCU, or with a reference. Return: false: the gate is closed. */
static inline bool lite_ops_tryget(struct lite_mapping *m)
{
	return atomic_inc_unless_negative(&m->ops);
}

static inline void lite_ops_put(struct lite_mapping *m)
{
	/* Fully ordered: what the operation did comes before. */
	if (unlikely(atomic_dec_return(&m->ops) == LITE_OPS_CLOSED))
		complete_all(&m->drained);
}

static inline bool lite_ops_closed(const struct lite_mapping *m)
{
	return atomic_read(&m->ops) < 0;
}

/* Let no more operations begin. Called once. Any context. */
static inline void lite_ops_close(struct lite_mapping *m)
{
	int ops = atomic_add_return(LITE_OPS_CLOSED, &m->ops);

	/* The count was negative: an operation ended twice, and a REVOKE would wait for ever. */
	WARN_ON_ONCE(ops >= 0);
	if (ops == LITE_OPS_CLOSED)
		complete_all(&m->drained);
}

/* Most bytes of a chunk, which does not cross a multiple of this. */
#define LITE_CHUNK_BYTES ((u64)LITE_CHUNK_PAGES << PAGE_SHIFT)

/* The id of the LMR that a handle names: for a chunk, its LMR's. */
static inline u64 lite_mapping_lmr(const struct lite_mapping *m)
{
	return m->of ?: m->id;
}

/* Are the bytes in it? Offsets in a chunk are those in its LMR. Return: 0, -EINVAL or -ERANGE. */
static inline int lite_mapping_bounds(const struct lite_mapping *m, u64 offset, u64 length)
{
	return lite_bounds_check(offset - m->base, length, m->length);
}

/* Is the session with the home alive? */
static inline bool lite_mapping_current(const struct lite_mapping *m)
{
	return !m->conn || !lite_conn_is_dead(m->conn);
}

static inline bool lite_mapping_is_remote(const struct lite_mapping *m)
{
	return m->n_shares > 1 || !m->share[0].local;
}

/* State of this node before a MAP was sent. */
struct lite_map_begun {
	u64 revoked;  /* number of the last REVOKE or RECALL */
	u64 sessions; /* higher than lite_conn.up_before of all sessions so far */
	unsigned long life; /* of this node: lite_cluster_life() */
};

/* map.c */
int lite_home_error(struct lite_memory *mem, u32 home, int err);
int lite_mapping_await(struct lite_memory *mem, u32 home, u64 id);
struct lite_mapping *lite_mapping_by_id(struct lite_memory *mem, u32 home, u64 id, const char *name,
					const struct lite_cred *cred, u32 rights, u32 *granted);
struct lite_mapping *lite_mapping_open(struct lite_memory *mem, const char *name,
				       const struct lite_cred *cred, u32 rights, u32 *home,
				       u64 *id);
struct lite_mapping *lite_mapping_create(struct lite_memory *mem, u32 home,
					 struct lite_wire_create *req, struct lite_payer *payer,
					 u64 *id, u32 *granted);

int lite_home_call(struct lite_memory *mem, struct lite_conn *conn, struct lite_call_desc *d);
void lite_map_late(void *ctx, struct lite_conn *conn, const void *reply);
struct lite_map_begun lite_map_begin(struct lite_memory *mem);
struct lite_mapping *lite_mapping_finish(struct lite_memory *mem, struct lite_conn *conn, u32 home,
					 const struct lite_map_begun *begun,
					 const struct lite_wire_map_reply *r, bool created);

/* chunk.c */
struct lite_mapping *lite_chunk_enter(struct lite_mapping *m, u64 at, bool write);
int lite_chunk_reach(struct lite_mapping *m, u64 at, bool write, const struct lite_mapping *stale,
		     unsigned long pause);
void lite_chunks_retire(struct lite_mapping *m);
void lite_chunks_put(struct lite_mapping *m);

/* mapping.c */
void lite_mapping_put(struct lite_mapping *m);
void lite_mapping_end(struct lite_mapping *m, enum lite_mapping_state state);
bool lite_mapping_watch(struct lite_mapping *m);
void lite_mapping_retire(struct lite_mapping *m);
void lite_mapping_retire_home(struct lite_memory *mem, u32 home);
void lite_mappings_retire_work(struct work_struct *work);
bool lite_revoked_since(const struct lite_memory *mem, u32 home, u64 id, u64 count);
void lite_mapping_end_chunks(struct lite_memory *mem, u32 home, const struct lite_wire_ends *ends);
int lite_mapping_revoke(struct lite_memory *mem, u32 home, u64 id, bool gone);
bool lite_mapping_give_back(struct lite_memory *mem, struct lite_conn *conn, u64 id, u64 count,
			    u32 flags);
void *lite_mapping_address(const struct lite_mapping *m, const struct lite_extent *e, u64 in,
			   size_t *n);

/* made.c */
struct lite_made *lite_made_new(u32 home, const struct lite_wire_map_reply *r);
void lite_made_use(struct lite_mapping *m, struct lite_made **made);
struct lite_made *lite_made_detach(struct lite_mapping *m);
void lite_made_over(struct lite_memory *mem, struct lite_made *made, bool told);
void lite_made_work(struct work_struct *work);
void lite_made_drop(struct lite_memory *mem);

/* A user mapping (mmap) of part of an LMR. */
struct lite_view {
	struct lite_memory *mem;
	struct list_head list;  /* in @m->views */
	struct lite_mapping *m; /* page tables have pages of it; or NULL; under views_lock */
	atomic_t zapping;       /* threads that are removing its pages from page tables */
	struct inode *inode;    /* of the file that the VMAs map; of no other view */
	u64 offset;             /* of its first byte in the LMR */
	u64 length;
};

/* view.c */
void lite_view_exit(struct lite_view *v);
int lite_view_attach(struct lite_view *v, struct lite_mapping *m, bool write);
struct page *lite_view_page(const struct lite_mapping *m, u64 offset, size_t *n);
void lite_mapping_zap_work(struct work_struct *work);
void lite_mapping_drain(struct lite_mapping *m);

/* peer_mapping.c */
struct lite_mapping *lite_mapping_enter(struct lite_memory *mem,
					const struct lite_wire_range *range);
void lite_peer_mapping_init(struct lite_memory *mem);
struct lite_mapping *lite_peer_mapping_enter(struct lite_memory *mem,
					     const struct lite_wire_range *range, u64 offset,
					     u64 length);
int lite_peer_mapping_prepare(struct lite_memory *mem, const struct lite_wire_range *range);
void lite_peer_mapping_kick(struct lite_mapping *m);
void lite_peer_mapping_drop(struct lite_memory *mem);
void lite_peer_mapping_close(struct lite_memory *mem);

#endif /* _LITE_MAPPING_H */
