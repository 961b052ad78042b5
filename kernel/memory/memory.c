// SPDX-License-Identifier: GPL-2.0
/* The memory layer of a node: set-up, tear-down, its calls, news from the cluster and its rooms. */
#include <linux/ktime.h>
#include <linux/random.h>

#include "memory/batch/issue.h"
#include "memory/batch/pack.h"
#include "memory/file/sendfile.h"
#include "memory/handle/ctx.h"
#include "memory/home/home.h"
#include "memory/memop/memop.h"
#include "memory/store/store.h"
#include "memory/unpinned/unpinned.h"
#include "memory.h"

/* Directory entries get this fraction (1/8) of the limits. */
#define LITE_NAMES_SHARE 8

/* Rooms call only lower rooms. store/ and home/ reach higher ones through this table. */
static const struct lite_room_ops lite_room_ops = {
	.retire_home = lite_mapping_retire_home,
	.revoke = lite_mapping_revoke,
	.end_chunks = lite_mapping_end_chunks,
	.unpinned_begin = lite_unpinned_begin,
	.unpinned_recall = lite_unpinned_recall,
	.unpinned_end = lite_unpinned_end,
	.unpinned_free = lite_unpinned_free,
	.chunk_unused = lite_chunk_unused,
};

/* The handler of a call: one of @serve, @lmr and @step. */
static const struct lite_memory_call {
	lite_mem_handler *serve;
	lite_lmr_handler *lmr;
	lite_memop_exec_step *step;
	bool chunks; /* with @lmr: it may be a chunk */
} lite_memory_calls[] = {
	[LITE_CALL_NAME_DROP] = { .serve = lite_serve_name_drop },
	[LITE_CALL_NAME_FIND] = { .serve = lite_serve_name_find },
	[LITE_CALL_NAME_SYNC] = { .serve = lite_serve_name_sync },
	[LITE_CALL_NAME_PROBE] = { .serve = lite_serve_name_probe },
	[LITE_CALL_NAME_ENTER] = { .serve = lite_serve_name_enter },
	[LITE_CALL_NAME_OPEN] = { .serve = lite_serve_open },
	[LITE_CALL_LMR_CREATE] = { .serve = lite_serve_create },
	[LITE_CALL_LMR_MAP] = { .lmr = lite_serve_map, .chunks = true },
	[LITE_CALL_LMR_EXTENTS] = { .lmr = lite_serve_extents, .chunks = true },
	[LITE_CALL_LMR_UNMAP] = { .serve = lite_serve_unmap },
	[LITE_CALL_LMR_FREE] = { .lmr = lite_serve_free },
	[LITE_CALL_LMR_REVOKE] = { .serve = lite_serve_revoke },
	[LITE_CALL_LMR_STAT] = { .lmr = lite_serve_stat },
	[LITE_CALL_LMR_LIST] = { .serve = lite_serve_list },
	[LITE_CALL_LMR_GRANT] = { .lmr = lite_serve_grant },
	[LITE_CALL_LMR_GRANTS] = { .lmr = lite_serve_grants },
	[LITE_CALL_LMR_SETATTR] = { .lmr = lite_serve_setattr },
	[LITE_CALL_LMR_RENAME] = { .lmr = lite_serve_rename },
	[LITE_CALL_LMR_RESIZE] = { .lmr = lite_serve_resize },
	[LITE_CALL_LMR_MOVE] = { .lmr = lite_serve_move },
	[LITE_CALL_LMR_RECALL] = { .serve = lite_serve_recall },
	[LITE_CALL_LMR_AWAIT] = { .lmr = lite_serve_await },
	[LITE_CALL_MEM_ALLOC] = { .serve = lite_serve_mem_alloc },
	[LITE_CALL_MEM_EXTENTS] = { .serve = lite_serve_mem_extents },
	[LITE_CALL_MEM_FREE] = { .serve = lite_serve_mem_free },
	[LITE_CALL_MEM_COPY] = { .serve = lite_serve_mem_copy },
	[LITE_CALL_MEM_SESSION] = { .serve = lite_serve_mem_session },
	[LITE_CALL_LMR_CHUNK] = { .serve = lite_serve_chunk },
	[LITE_CALL_LMR_ENDS] = { .serve = lite_serve_ends },
	[LITE_CALL_OP_SET] = { .step = lite_memop_exec_set },
	[LITE_CALL_OP_COPY] = { .step = lite_memop_exec_copy },
	[LITE_CALL_OP_COMPARE] = { .step = lite_memop_exec_compare },
	[LITE_CALL_OP_CHECKSUM] = { .step = lite_memop_exec_checksum },
	[LITE_CALL_OP_ATOMIC] = { .step = lite_memop_exec_atomic },
	[LITE_CALL_OP_PREPARE] = { .serve = lite_serve_prepare },
	[LITE_CALL_OP_PACK] = { .serve = lite_serve_pack },
};

/* A lite_handler, for all of these calls. */
static int lite_memory_serve(void *mem, struct lite_conn *conn, u16 call, const void *req,
			     void *reply)
{
	const struct lite_memory_call *c = &lite_memory_calls[call];
	const struct lite_wire_id *i = req;
	struct lite_lmr *lmr;
	int ret = -ENOENT;

	if (c->serve)
		return c->serve(mem, conn, req, reply);
	if (c->step)
		return lite_serve_memop(mem, conn, c->step, req, reply);
	lmr = lite_lmr_get(mem, le64_to_cpu(i->id));
	if (!lmr)
		return -ENOENT;
	/* Chunks belong to their LMR: they can only be mapped. */
	if (!lmr->of || c->chunks)
		ret = c->lmr(lmr, conn, req, reply);
	lite_lmr_put(lmr);
	return ret;
}

/*
 * Set up the memory layer, @mem, which is zeroed; the cluster is not started yet. @ops: callbacks
 * into the layer above, which get @priv. May sleep. Return: 0 or -ENOMEM.
 */
int lite_memory_init(struct lite_memory *mem, struct lite_cluster *cl,
		     struct lite_stats __percpu *stats, const struct lite_memory_params *params,
		     const struct lite_memory_ops *ops, struct lite_node *priv)
{
	struct workqueue_struct **const wqs[] = { &mem->views_wq, &mem->file_wq, &mem->takes_wq,
						  &mem->ends_wq, &mem->wq };
	const struct lite_memory_call *c;
	int i;

	mem->cl = cl;
	mem->fab = cl->fab;
	mem->stats = stats;
	mem->ops = ops;
	mem->priv = priv;
	mem->rooms = &lite_room_ops;
	mem->handle_limit = params->handle_limit;
	mem->root_squash = params->root_squash;
	mem->may_unpin = params->unpinned;
	mem->orphan = params->orphan;
	lite_limit_init(&mem->limit, params->mem_limit, params->uid_limit, stats);
	/*
	 * Separate limits, so that a node without room for LMRs still serves as a directory. Even a
	 * user with only one-page LMRs, each with a name, and LMRs and names spread over equally
	 * many nodes, hits the limit for LMRs first.
	 */
	lite_limit_init(&mem->names_limit, params->mem_limit / LITE_NAMES_SHARE,
			params->uid_limit / LITE_NAMES_SHARE, stats);
	/*
	 * Ids of an earlier incarnation must not name LMRs of this one. So ids start at the present
	 * time, in units of 16,384 ns. Those of an earlier incarnation are lower unless it used
	 * 61,000 a second. Ids stay below 2^48, as cursors need, until 2116.
	 */
	atomic64_set(&mem->ids, ktime_get_real_ns() >> 14);
	xa_init(&mem->allocs);
	spin_lock_init(&mem->split_lock);
	rwlock_init(&mem->runs_lock);
	mem->pieces = RB_ROOT;
	mem->runs = RB_ROOT_CACHED;
	mem->unpinned = RB_ROOT;
	xa_init(&mem->lmrs);
	INIT_DELAYED_WORK(&mem->publish_work, lite_names_publish_work);
	spin_lock_init(&mem->map_lock);
	xa_init(&mem->mappings);
	lite_line_init(&mem->unclean);
	mem->revoked.salt = get_random_u64();
	lite_name_cache_init(mem);
	INIT_WORK(&mem->retire_work, lite_mappings_retire_work);
	spin_lock_init(&mem->views_lock);
	lite_peer_mapping_init(mem);
	lite_issues_init(mem);
	lite_packs_init(mem);
	lite_handle_pool_init(mem);
	lite_file_pool_init(mem);
	spin_lock_init(&mem->work_lock);
	INIT_LIST_HEAD(&mem->work);
	init_waitqueue_head(&mem->work_wait);
	mutex_init(&mem->words_lock);
	spin_lock_init(&mem->payers_lock);
	lite_line_init(&mem->payers);
	spin_lock_init(&mem->zombies_lock);
	INIT_LIST_HEAD(&mem->zombies);
	INIT_DELAYED_WORK(&mem->zombie_work, lite_zombies_work);
	INIT_LIST_HEAD(&mem->made);
	INIT_WORK(&mem->made_work, lite_made_work);
	INIT_DELAYED_WORK(&mem->orphans, lite_orphans_work);
	spin_lock_init(&mem->ctxs_lock);
	INIT_LIST_HEAD(&mem->ctxs);

	if (lite_names_init(&mem->local, &mem->limit))
		return -ENOMEM;
	if (lite_names_init(&mem->directory, &mem->names_limit))
		goto err_local;
	mem->wq = alloc_workqueue("lite-memory", WQ_UNBOUND, 0);
	mem->ends_wq = alloc_workqueue("lite-chunks", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	mem->file_wq = alloc_workqueue("lite-file", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	/* One user may have any number of items in these. */
	mem->takes_wq =
		alloc_workqueue("lite-takes", WQ_UNBOUND | WQ_MEM_RECLAIM, WQ_MAX_ACTIVE);
	mem->views_wq =
		alloc_workqueue("lite-views", WQ_UNBOUND | WQ_MEM_RECLAIM, WQ_MAX_ACTIVE);
	if (!mem->wq || !mem->ends_wq || !mem->file_wq || !mem->takes_wq || !mem->views_wq ||
	    lite_crew_init(&mem->reaps, "lite-reaps"))
		goto err_wqs;
	if (lite_crew_init(&mem->revokes, "lite-revoke"))
		goto err_reaps;
	if (lite_arenas_init(mem))
		goto err_revokes;
	if (lite_leases_init(mem))
		goto err_arenas;
	for (i = 0; i < ARRAY_SIZE(lite_memory_calls); i++) {
		c = &lite_memory_calls[i];
		if (c->serve || c->lmr || c->step)
			lite_kcall_handle(cl->kcalls, i, lite_memory_serve, mem);
	}
	return 0;

err_arenas:
	lite_arenas_exit(mem);
err_revokes:
	lite_crew_exit(&mem->revokes);
err_reaps:
	lite_crew_exit(&mem->reaps);
err_wqs:
	for (i = 0; i < ARRAY_SIZE(wqs); i++) {
		if (*wqs[i])
			destroy_workqueue(*wqs[i]);
	}
	lite_names_exit(&mem->directory);
err_local:
	lite_names_exit(&mem->local);
	return -ENOMEM;
}

/* Has the node no LMR, memory, mapping or name? May sleep; calls homes. */
bool lite_memory_idle(struct lite_memory *mem)
{
	lite_name_cache_forget(mem);
	return xa_empty(&mem->lmrs) && xa_empty(&mem->allocs) && xa_empty(&mem->mappings) &&
	       list_empty(&mem->local.all);
}

/* Bytes given to LMRs, including quarantined ones, which are lost. */
u64 lite_memory_used(struct lite_memory *mem)
{
	/* The sum can be negative while other CPUs are counting. */
	return max_t(s64, lite_stat_sum(mem->stats, LITE_STAT_LMR_BYTES), 0) +
	       READ_ONCE(mem->limit.lost);
}

/* The node is LEAVING: free all LMRs homed here. May sleep; makes calls. */
void lite_memory_give_up(struct lite_memory *mem)
{
	flush_delayed_work(&mem->publish_work);
	lite_peer_mapping_drop(mem);
	lite_home_free_all(mem);
	lite_crew_flush(&mem->reaps);
	flush_workqueue(mem->wq);
}

/* The node has left, and has no sessions: drop all state. May sleep. */
void lite_memory_forget(struct lite_memory *mem)
{
	cancel_delayed_work_sync(&mem->zombie_work);
	cancel_work_sync(&mem->made_work);
	cancel_delayed_work_sync(&mem->orphans);
	lite_made_drop(mem);
	lite_peer_mapping_drop(mem);
	lite_mapping_retire_home(mem, 0);
	lite_name_cache_forget(mem);
	lite_store_exit(mem);
	lite_zombies_lost(mem, NULL);
	lite_names_drop(mem, &mem->directory, NULL, 0, 0);
}

/* Close all handles; no operation is in flight. May sleep; calls homes. */
void lite_memory_shut(struct lite_memory *mem)
{
	struct lite_ctx *ctx;

	lite_peer_mapping_close(mem);
	/* The owner of a context may be closing it at the same time, or be gone already. */
	for (;;) {
		spin_lock(&mem->ctxs_lock);
		ctx = list_first_entry_or_null(&mem->ctxs, struct lite_ctx, list);
		/* While on the list, a context holds a reference for it. */
		if (ctx)
			refcount_inc(&ctx->ref);
		spin_unlock(&mem->ctxs_lock);
		if (!ctx)
			break;
		lite_ctx_shut(ctx);
		lite_ctx_put(ctx);
	}
	lite_name_cache_forget(mem);
	lite_crew_flush(&mem->reaps);
	flush_workqueue(mem->wq);
}

/* Free everything; no session and no handler is left. May sleep. */
void lite_memory_exit(struct lite_memory *mem)
{
	cancel_delayed_work_sync(&mem->publish_work);
	cancel_work_sync(&mem->retire_work);
	cancel_delayed_work_sync(&mem->zombie_work);
	cancel_work_sync(&mem->made_work);
	cancel_delayed_work_sync(&mem->orphans);
	lite_issues_exit(mem);
	lite_packs_exit(mem);
	lite_peer_mapping_close(mem);
	lite_home_free_all(mem);
	lite_crew_flush(&mem->reaps);
	flush_workqueue(mem->wq);
	lite_memory_forget(mem);
	lite_arenas_exit(mem);
	lite_leases_exit(mem);
	lite_names_drop(mem, &mem->local, NULL, 0, 0);
	lite_names_exit(&mem->local);
	lite_names_exit(&mem->directory);
	/* What their items drop, RCU callbacks then queue on lite-memory to be freed. */
	lite_crew_flush(&mem->revokes);
	destroy_workqueue(mem->takes_wq);
	destroy_workqueue(mem->ends_wq);
	rcu_barrier();
	destroy_workqueue(mem->wq);
	destroy_workqueue(mem->views_wq);
	destroy_workqueue(mem->file_wq);
	lite_crew_exit(&mem->revokes);
	lite_crew_exit(&mem->reaps);
	xa_destroy(&mem->lmrs);
	xa_destroy(&mem->allocs);
	WARN_ON(!RB_EMPTY_ROOT(&mem->pieces));
	xa_destroy(&mem->mappings);
	lite_limit_exit(&mem->names_limit);
	lite_limit_exit(&mem->limit);
}

/* A member came up or went down. Any process context; the work is done in the background. */
void lite_memory_members_changed(struct lite_memory *mem)
{
	/* Ordered after the change: a reader of the new count sees the change. */
	atomic_inc_return(&mem->changes);
	queue_work(mem->wq, &mem->retire_work);
	mod_delayed_work(mem->wq, &mem->publish_work, 0);
	mod_delayed_work(mem->wq, &mem->zombie_work, 0);
	queue_work(mem->wq, &mem->made_work);
	mod_delayed_work(mem->wq, &mem->orphans, 0);
}

/* A session has ended, and its peer is fenced from this node. May sleep. */
void lite_memory_peer_gone(struct lite_memory *mem, const struct lite_conn *conn)
{
	lite_home_session_gone(mem, conn->session);
	lite_store_session_gone(mem, conn->session);
	/*
	 * Requests of the session may have been served after lite_memory_peer_lost(). (But @conn
	 * may also be a superfluous connection of a life that is only about to begin.)
	 */
	if (lite_cluster_life_is_over(mem->cl, conn->from.node, conn->from.incarnation))
		lite_store_lost(mem, conn->from.node, conn->from.incarnation);
}

/*
 * An incarnation of a node is over for good: drop what belongs to it, but nothing of the next
 * incarnation, which may have a session already. May sleep; makes no calls.
 */
void lite_memory_peer_lost(struct lite_memory *mem, u32 id, u64 incarnation)
{
	const struct lite_share at = { .node = id, .incarnation = incarnation };

	lite_store_lost(mem, id, incarnation);
	lite_zombies_lost(mem, &at);
	lite_names_lost(mem, id, incarnation);
	queue_work(mem->wq, &mem->made_work);
	mod_delayed_work(mem->wq, &mem->orphans, 0);
}
