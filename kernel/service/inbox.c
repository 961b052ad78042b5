// SPDX-License-Identifier: GPL-2.0
/*
 * Requests that a process takes without a call.
 *
 * Normal operation: a request that nobody waits for in RECV goes to the inbox that
 * has the fewest, if one has room, or else waits in the function's queue until
 * something is given back. It is TAKEN from then on, by the inbox's process,
 * which is told of it in memory that it shares with us, and reads it in its ring.
 * It is given back by its token (inbox_next.c). Meanwhile its caller may give up:
 * it keeps the record until it is told that it is free (inbox_kept.c). Should its
 * connection die, the ring stays for as long.
 *
 * Whether the process has taken an entry matters when the inbox ends only. The end
 * is an atomic exchange of the word by which entries are taken: an entry either
 * was before it, and the process may be serving it; or not, and nobody has seen
 * the request, and somebody else may get it.
 *
 * The process may write into the shared memory what it likes, and may give back
 * what it has not taken, or keep what it has: it keeps its callers waiting, as
 * any server can, and gets no more than @depth requests.
 */
#include <linux/slab.h>

#include "inbox.h"

static void lite_inbox_release(struct kref *ref)
{
	struct lite_inbox *inbox = container_of(ref, struct lite_inbox, ref);

	free_pages_exact(inbox->queue.control,
			 lite_inbox_control_bytes(inbox->queue.entries));
	xa_destroy(&inbox->views);
	lite_rpc_file_put(inbox->file);
	kfree(inbox);
}

/**
 * lite_inbox_put_ref - give a reference back
 * @inbox: inbox
 *
 * Context: process.
 */
void lite_inbox_put_ref(struct lite_inbox *inbox)
{
	kref_put(&inbox->ref, lite_inbox_release);
}

/* ---- requests go in ------------------------------------------------------ */

static void lite_inbox_tell(struct lite_inbox_view *view,
			    struct lite_request *req)
{
	struct lite_inbox *inbox = view->inbox;
	struct lite_rpc_peer *rp = req->ring->rp;
	const struct lite_inbox_entry entry = {
		.token = lite_request_token(req),
		.offset = lite_inbox_offset(view->slot, inbox->ring_bytes,
					    req->unit, LITE_RPC_HEADER),
		.length = req->length,
		.node = rp->conn ? rp->conn->from.node :
				   lite_cluster_id(rp->svc->cl),
		.uid = req->uid,
		.gid = req->gid,
		.flags = req->flags & LITE_RPC_F_ONEWAY ? LITE_RPC_REQ_ONEWAY :
							  0,
		.reply_room = req->room,
	};

	req->number = lite_inbox_put(&inbox->queue, &entry);
	inbox->req[req->number & (inbox->queue.entries - 1)] = req;
}

static void lite_inbox_wake(struct lite_inbox *inbox)
{
	struct lite_recv_waiter *w;

	w = list_first_entry_or_null(&inbox->waiters, struct lite_recv_waiter,
				     list);
	if (w) {
		list_del(&w->list);
		w->err = LITE_INBOX_CAME;
		/* Looked at under svc->lock: it does not go too soon. */
		complete(&w->done);
	} else if (wq_has_sleeper(&inbox->file->wait)) {
		wake_up_interruptible_poll(&inbox->file->wait,
					   EPOLLIN | EPOLLRDNORM);
	}
}

/* A QUEUED request into an inbox that has room. -ENOMEM: it stays where it is. */
static int lite_inbox_deliver(struct lite_inbox *inbox,
			      struct lite_request *req)
{
	struct lite_inbox_view *view = lite_inbox_view(inbox, req->ring);

	if (!view)
		return -ENOMEM;
	list_del(&req->list);
	req->state = LITE_REQ_TAKEN;
	req->file = inbox->file;
	req->owner = inbox->owner;
	req->gen = ++inbox->file->svc->taken;
	req->view = view;
	view->held++;
	inbox->held++;
	list_add_tail(&req->list, &inbox->file->taken);
	lite_inbox_tell(view, req);
	lite_inbox_wake(inbox);
	return 0;
}

/* The one with the fewest, of those that have room, in turns; or NULL. */
static struct lite_inbox *lite_inbox_pick(struct lite_func *func)
{
	struct lite_inbox *best = NULL;
	struct lite_server *s;

	list_for_each_entry(s, &func->servers, of_func) {
		if (s->inbox && s->inbox->held < s->inbox->depth &&
		    (!best || s->inbox->held < best->held))
			best = s->inbox;
	}
	if (best)
		list_move_tail(&best->server->of_func, &func->servers);
	return best;
}

/**
 * lite_inbox_drain - put what is queued into inboxes
 * @func: not dead; svc->lock is held
 *
 * Context: process; receive handlers.
 */
void lite_inbox_drain(struct lite_func *func)
{
	struct lite_inbox *inbox;

	lockdep_assert_held(&func->svc->lock);
	while (!list_empty(&func->queue)) {
		inbox = lite_inbox_pick(func);
		if (!inbox)
			return;
		if (lite_inbox_deliver(inbox,
				       list_first_entry(&func->queue,
							struct lite_request,
							list))) {
			/* No memory here: a thread that sleeps in NEXT tries. */
			lite_inbox_wake(inbox);
			return;
		}
	}
}

/**
 * lite_inboxes_drain - likewise, of what an open file serves
 * @file: open file's; it has given something back
 *
 * Context: process.
 */
void lite_inboxes_drain(struct lite_rpc_file *file)
{
	struct lite_server *s;

	spin_lock(&file->svc->lock);
	list_for_each_entry(s, &file->servers, of_file) {
		if (s->inbox)
			lite_inbox_drain(s->func);
	}
	spin_unlock(&file->svc->lock);
}

/**
 * lite_inbox_leave - a request is in no inbox any more
 * @req: with a view; svc->lock is held
 *
 * Context: process; receive handlers.
 */
void lite_inbox_leave(struct lite_request *req)
{
	struct lite_inbox_view *view = req->view;
	struct lite_inbox *inbox = view->inbox;
	struct lite_request **at;

	lockdep_assert_held(&inbox->file->svc->lock);
	at = &inbox->req[req->number & (inbox->queue.entries - 1)];
	if (*at == req)
		*at = NULL;
	req->view = NULL;
	inbox->held--;
	lite_inbox_view_leave(view);
}

/**
 * lite_inbox_ready - is there something to be taken?
 * @inbox: inbox; svc->lock is held
 */
bool lite_inbox_ready(struct lite_inbox *inbox)
{
	lockdep_assert_held(&inbox->file->svc->lock);
	/* Queued although there is room: for want of memory. NEXT says so. */
	return !lite_inbox_is_empty(&inbox->queue) ||
	       (inbox->held < inbox->depth &&
		!list_empty(&inbox->server->func->queue));
}

/* ---- the end ------------------------------------------------------------- */

static void lite_inbox_end_waiters(struct lite_inbox *inbox, int err)
{
	struct lite_recv_waiter *w, *tmp;

	list_for_each_entry_safe(w, tmp, &inbox->waiters, list) {
		list_del(&w->list);
		w->err = err;
		complete(&w->done);
	}
}

/* A request that the process has not taken: to somebody else. */
static void lite_inbox_return(struct lite_request *req)
{
	struct lite_ring *ring = req->ring;

	list_del(&req->list);
	req->file = NULL;
	lite_inbox_leave(req);
	if (ring->gone || req->cancelled || req->kept) {
		/* For nobody; or for one who has been told of a reply. */
		lite_request_answer(req, LITE_RPC_RESET);
	} else if (ring->func->dead) {
		lite_request_answer(req, LITE_RPC_REFUSED);
	} else {
		req->state = LITE_REQ_QUEUED;
		list_add(&req->list, &ring->func->queue);
	}
}

/**
 * lite_inbox_shut - no requests come in any more
 * @inbox: inbox; maybe shut; svc->lock is held
 * @err: for those who wait
 *
 * What was not taken goes to others.
 *
 * Context: process.
 */
void lite_inbox_shut(struct lite_inbox *inbox, int err)
{
	struct lite_inbox_queue *q = &inbox->queue;
	struct lite_func *func;
	struct lite_inbox_view *view;
	struct lite_request *req;
	unsigned long i;
	u64 number;
	u32 left;

	lockdep_assert_held(&inbox->file->svc->lock);
	if (!inbox->server)
		return;
	func = inbox->server->func;
	inbox->server->inbox = NULL;
	WRITE_ONCE(inbox->file->n_inboxes, inbox->file->n_inboxes - 1);
	inbox->server = NULL;
	left = lite_inbox_close(q);
	/* From the last to the first: they go to the head of the queue. */
	for (number = q->tail; left; left--) {
		req = inbox->req[--number & (q->entries - 1)];
		/* It may have been given back, or be on its way. */
		if (req && req->number == number &&
		    req->state == LITE_REQ_TAKEN)
			lite_inbox_return(req);
	}
	lite_func_serve(func);
	lite_inbox_end_waiters(inbox, err);
	xa_for_each(&inbox->views, i, view)
		lite_inbox_view_end(view);
}

/**
 * lite_inbox_unsee - nobody reads the requests of an inbox in place any more
 * @inbox: shut; not mapped any more; svc->lock is held
 * @exited: its process has exited, or is another program now
 *
 * What it has taken is reset, whoever has the file open; or else it can be
 * answered yet, but is kept for nobody, as if it had been copied: who has unmapped
 * it may exit without our being told.
 *
 * Context: process.
 */
void lite_inbox_unsee(struct lite_inbox *inbox, bool exited)
{
	struct lite_request *req, *tmp;

	lockdep_assert_held(&inbox->file->svc->lock);
	/* For one that is being answered just now. */
	inbox->unseen = true;
	list_for_each_entry_safe(req, tmp, &inbox->file->taken, list) {
		if (!req->view || req->view->inbox != inbox)
			continue;
		lite_inbox_leave(req);
		if (!exited && !req->kept && !req->ring->gone)
			continue;
		list_del(&req->list);
		req->file = NULL;
		/* Of one that was kept, or whose ring has gone, nobody hears. */
		lite_request_answer(req, LITE_RPC_RESET);
	}
}

/**
 * lite_inboxes_shut - shut those of an open file
 * @file: open file's; svc->lock is held
 * @owner: of this process only, if not NULL
 *
 * Context: process.
 */
void lite_inboxes_shut(struct lite_rpc_file *file, const void *owner)
{
	struct lite_server *s;

	lockdep_assert_held(&file->svc->lock);
	list_for_each_entry(s, &file->servers, of_file) {
		if (s->inbox && (!owner || s->inbox->owner == owner))
			lite_inbox_shut(s->inbox, -ENOENT);
	}
}

/**
 * lite_inboxes_stop - whoever waits comes out
 * @file: open file's, of a node that is stopping; svc->lock is held
 */
void lite_inboxes_stop(struct lite_rpc_file *file)
{
	struct lite_server *s;

	lockdep_assert_held(&file->svc->lock);
	list_for_each_entry(s, &file->servers, of_file) {
		if (s->inbox)
			lite_inbox_end_waiters(s->inbox, -ENODEV);
	}
}

/* ---- the beginning ------------------------------------------------------- */

static struct lite_inbox *lite_inbox_alloc(struct lite_rpc_file *file,
					   u32 depth)
{
	struct lite_inbox *inbox = kzalloc(sizeof(*inbox), GFP_KERNEL_ACCOUNT);
	struct lite_inbox_queue *q;

	if (!inbox)
		return NULL;
	q = &inbox->queue;
	q->entries = lite_inbox_entries(depth);
	q->control = alloc_pages_exact(lite_inbox_control_bytes(q->entries),
				       GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!q->control) {
		kfree(inbox);
		return NULL;
	}
	kref_init(&inbox->ref);
	kref_get(&file->ref);
	inbox->file = file;
	inbox->owner = current->files;
	inbox->depth = depth;
	INIT_LIST_HEAD(&inbox->waiters);
	xa_init_flags(&inbox->views, XA_FLAGS_ALLOC);
	INIT_WORK(&inbox->zap_work, lite_inbox_zap_work);
	mutex_init(&inbox->map);
	return inbox;
}

static int lite_inbox_enter(struct lite_inbox *inbox, u32 function, u32 uid)
{
	struct lite_rpc_file *file = inbox->file;
	struct lite_server *s;
	u32 chunk;

	lockdep_assert_held(&file->svc->lock);
	if (file->shut || file->svc->stopping)
		return -ENODEV;
	s = lite_server_find(file, function);
	if (!s)
		return -ENOENT;
	/* A descriptor may have been given to somebody else. */
	if (s->func->uid != uid)
		return -EACCES;
	/* Its records have addresses of the clients' in them. */
	if (lite_rpc_has_lists(s->func->max_request, s->func->max_reply))
		return -EOPNOTSUPP;
	if (s->inbox)
		return -EBUSY;
	inbox->ring_bytes = lite_func_ring_bytes(s->func, &chunk);
	inbox->slots =
		lite_inbox_slots(file->svc->pools[LITE_POOL_RINGS].rule.limit,
				 inbox->ring_bytes);
	inbox->server = s;
	s->inbox = inbox;
	WRITE_ONCE(file->n_inboxes, file->n_inboxes + 1);
	lite_inbox_drain(s->func);
	return 0;
}

/**
 * lite_inbox_make - an inbox for a function
 * @file: open file's; it has registered the function
 * @function: which
 * @depth: requests; 0: the default
 * @uid: who the process acts as
 *
 * Requests go there at once.
 *
 * Context: may sleep.
 * Return: the inbox, with a reference, for lite_inbox_unmapped(), or ERR_PTR:
 * -EINVAL, -ENOENT, -EACCES, -EOPNOTSUPP (requests or replies of more than
 * LITE_RPC_BYTES_MAX), -EBUSY, -ENODEV, -ENOMEM.
 */
struct lite_inbox *lite_inbox_make(struct lite_rpc_file *file, u32 function,
				   u32 depth, u32 uid)
{
	struct lite_inbox *inbox;
	int err;

	if (depth > LITE_INBOX_DEPTH_MAX)
		return ERR_PTR(-EINVAL);
	inbox = lite_inbox_alloc(file, depth ?: LITE_INBOX_DEPTH_DEFAULT);
	if (!inbox)
		return ERR_PTR(-ENOMEM);
	spin_lock(&file->svc->lock);
	err = lite_inbox_enter(inbox, function, uid);
	spin_unlock(&file->svc->lock);
	if (err) {
		lite_inbox_put_ref(inbox);
		return ERR_PTR(err);
	}
	return inbox;
}
