// SPDX-License-Identifier: GPL-2.0
/*
 * Receive requests and answer them.
 *
 * Normal operation: a server answers one request and waits for the next in one call. While it waits
 * it does the poller's work; when it sleeps, the event of a request wakes it.
 *
 * A request is BUSY while a thread copies it or its reply. Before the thread waits for user memory,
 * it returns the request to where it came from: the head of the function's queue, or the file.
 */
#include <linux/nospec.h>
#include <linux/slab.h>

#include "function/service.h"

/*
 * Stop using a BUSY request: return it to @file or, if that is NULL, to its queue. Return: false:
 * it is over, as its caller has given up, its ring is gone, or @file is shut.
 */
static bool lite_request_return(struct lite_request *req, struct lite_rpc_file *file)
{
	struct lite_ring *ring = req->ring;
	struct lite_service *svc = ring->rp->svc;
	bool gone, over;

	spin_lock(&svc->lock);
	gone = ring->gone;
	over = gone || req->cancelled || (file && file->shut);
	if (!over && file) {
		req->state = LITE_REQ_TAKEN;
		list_add_tail(&req->list, &file->taken);
	} else if (!over && !ring->func->dead) {
		lite_func_queue(ring->func, req, true);
	} else if (!gone) {
		/* If the call was cancelled, CANCEL has told the caller to expect an answer. */
		lite_request_answer(req, over ? LITE_RPC_RESET : LITE_RPC_REFUSED, 0, 0);
	}
	spin_unlock(&svc->lock);
	if (gone)
		lite_request_free(req);
	return !over;
}

/* Take a queued request. Return: ERR_PTR: -EAGAIN: none; -ENOENT: no such function; -ENODEV. */
static struct lite_request *lite_file_pick(struct lite_rpc_file *file, u32 function)
{
	struct lite_request *req;
	struct lite_server *s;
	bool any = false;

	lockdep_assert_held(&file->svc->lock);
	if (file->svc->stopping || file->shut)
		return ERR_PTR(-ENODEV);
	list_for_each_entry(s, &file->servers, of_file) {
		if (function && s->func->number != function)
			continue;
		any = true;
		req = list_first_entry_or_null(&s->func->queue, struct lite_request, list);
		if (!req)
			continue;
		list_del(&req->list);
		req->state = LITE_REQ_BUSY;
		/* Serve the file's functions in turn. */
		list_move_tail(&s->of_file, &file->servers);
		return req;
	}
	return ERR_PTR(any ? -EAGAIN : -ENOENT);
}

/* As wait_for_completion_interruptible_timeout(). */
static long lite_recv_await(struct lite_rpc_file *file, struct lite_recv_waiter *w, long timeout)
{
	struct lite_pace_wait wait;
	long ret;

	/* One thread of the file does the poller's work; it also gets the next request. */
	if (test_and_set_bit_lock(0, &file->watching))
		return wait_for_completion_interruptible_timeout(&w->done, timeout);
	lite_pace_begin(&file->pace, &wait, false);
	ret = lite_poller_await(&file->svc->fab->poller, &w->done, wait.awake_ns,
				TASK_INTERRUPTIBLE, timeout);
	lite_pace_end(&file->pace, &wait);
	clear_bit_unlock(0, &file->watching);
	return ret;
}

/* Wait for a request, with @w in line. A signal ends the wait. */
static struct lite_request *lite_recv_wait(struct lite_rpc_file *file, struct lite_recv_waiter *w,
					   unsigned long deadline)
{
	struct lite_service *svc = file->svc;
	long ret = lite_recv_await(file, w, lite_jiffies_left(deadline));

	spin_lock(&svc->lock);
	/* A request may have arrived after the wait ended. */
	if (!w->req && !w->err) {
		list_del(&w->list);
		w->err = ret < 0 ? -EINTR : -ETIMEDOUT;
	}
	spin_unlock(&svc->lock);
	return w->req ?: ERR_PTR(w->err);
}

static struct lite_request *lite_recv_get(struct lite_rpc_file *file, u32 function, bool nowait,
					  unsigned long deadline)
{
	struct lite_recv_waiter w = { .done = COMPLETION_INITIALIZER_ONSTACK(w.done) };
	struct list_head *line = &file->waiters;
	struct lite_request *req;

	spin_lock(&file->svc->lock);
	req = lite_file_pick(file, function);
	/* The latest waiter is served first, unless another one is awake. */
	if (req == ERR_PTR(-EAGAIN) && !nowait) {
		if (function)
			line = &lite_server_find(file, function)->waiters;
		if (test_bit(0, &file->watching))
			list_add_tail(&w.list, line);
		else
			list_add(&w.list, line);
	}
	spin_unlock(&file->svc->lock);
	if (req == ERR_PTR(-EAGAIN) && !nowait)
		req = lite_recv_wait(file, &w, deadline);
	return req;
}

static void lite_recv_tell(struct lite_ioc_rpc_recv *r, const struct lite_request *req)
{
	r->function = req->ring->number;
	r->length = req->length;
	r->node = lite_rpc_peer_node(req->ring->rp);
	r->uid = req->uid;
	r->gid = req->gid;
	r->req_flags = req->flags & LITE_RPC_F_ONEWAY ? LITE_RPC_REQ_ONEWAY : 0;
	r->reply_room = req->room;
}

static size_t lite_recv_copy(const struct lite_request *req, const struct lite_buf *buf)
{
	if (unlikely(req->data))
		return lite_bulk_copy_nofault(req->data, buf, 0, req->length, false);
	return lite_buf_copy_nofault(buf, 0,
				     lite_area_body(req->ring->area, req->unit) + req->list_bytes,
				     req->length, false);
}

/*
 * Return: 0 or a negative errno; -ERESTART, which nothing that it calls returns: call it again, as
 * the request is over, or the user's buffer was not present.
 */
static int lite_recv_one(struct lite_rpc_file *file, struct lite_ioc_rpc_recv *r,
			 struct lite_gate *gate, u32 function, unsigned long deadline, u8 prio)
{
	struct lite_buf buf = { .gate = gate, .user = true, .u = r->buf };
	struct lite_request *req;
	size_t done;
	u32 length;
	int err;

	req = lite_recv_get(file, function, lite_serve_nowait(r->flags, r->timeout_ms), deadline);
	if (IS_ERR(req))
		return PTR_ERR(req);
	lite_recv_tell(r, req);
	length = req->length;
	if (length > r->buf_len) {
		lite_request_return(req, NULL);
		return -EMSGSIZE;
	}
	/* A long request keeps this thread, so a caller of lower priority must not slow it down. */
	if (req->list_bytes &&
	    lite_sched_class_of(prio % LITE_PRIOS) <
		    lite_sched_class_of(req->prio % LITE_PRIOS))
		req->prio = prio;
	/* Another thread has just registered a function with long requests. */
	if (unlikely(gate->nowait && req->n_request && !req->data))
		err = -LITE_EPUTOFF;
	else
		err = lite_request_fetch(req, req->ring->area->uid, true);
	if (unlikely(err)) {
		if (err == -EHOSTDOWN)
			lite_request_free(req);
		else
			lite_request_return(req, NULL);
		return err == -EHOSTDOWN || err == -ECANCELED ? -ERESTART : err;
	}
	done = lite_recv_copy(req, &buf);
	if (unlikely(done < length)) {
		lite_request_return(req, NULL);
		return lite_user_fault_in(&buf, done, length, false) ?: -ERESTART;
	}
	lite_area_put(req->data);
	req->data = NULL;
	if (req->flags & LITE_RPC_F_ONEWAY) {
		lite_request_post(req, LITE_RPC_OK, 0, 0);
		return 0;
	}
	req->file = file;
	req->owner = current->files;
	/* Set the token now: once TAKEN, the request may be cancelled and its slot reused. */
	r->token = (u64)req->gen << 32 | req->ring->id << 8 | lite_request_slot(req);
	return lite_request_return(req, file) ? 0 : -ERESTART;
}

/* Make the file's TAKEN request BUSY, for a reply of @length. Return: ERR_PTR: -ENOENT, -E2BIG. */
static struct lite_request *lite_reply_take(struct lite_rpc_file *file, u64 token, u32 length)
{
	struct lite_service *svc = file->svc;
	struct lite_request *req = ERR_PTR(-ENOENT);
	struct lite_request *found;
	struct lite_ring *ring;
	u32 slot = token & 0xff;

	spin_lock(&svc->lock);
	ring = xa_load(&svc->rings, (u32)token >> 8);
	if (!ring || slot >= LITE_RPC_DEPTH)
		goto out;
	found = &ring->req[array_index_nospec(slot, LITE_RPC_DEPTH)];
	if (found->state != LITE_REQ_TAKEN || found->file != file || found->gen != token >> 32)
		goto out;
	req = ERR_PTR(-E2BIG);
	if (length <= ring->func->max_reply) {
		req = found;
		list_del(&req->list);
		req->state = LITE_REQ_BUSY;
		/* From here on the request ends with the process that answers it. */
		req->owner = current->files;
	}
out:
	spin_unlock(&svc->lock);
	return req;
}

/* Copy a long reply first, as that can take a while; only then make the request BUSY. */
static int lite_reply_long(struct lite_rpc_file *file, const struct lite_ioc_rpc_recv *r,
			   const struct lite_buf *buf, u32 uid)
{
	struct lite_area *bulk = lite_bulk_make(file->svc, uid, r->reply_len);
	struct lite_request *req;
	int err;

	if (IS_ERR(bulk))
		return PTR_ERR(bulk);
	err = lite_bulk_copy(bulk, buf, r->reply_len, true);
	if (err)
		goto out;
	req = lite_reply_take(file, r->token, r->reply_len);
	err = PTR_ERR_OR_ZERO(req);
	if (err)
		goto out;
	err = lite_request_give(req, bulk, r->reply_len, true);
	if (!err)
		lite_request_post(req, LITE_RPC_OK, r->reply_len, r->status);
	else if (err == -EHOSTDOWN)
		lite_request_free(req);
	else if (lite_request_return(req, file))
		goto out;
	/* A vanished caller is not the server's error. */
	err = 0;
out:
	lite_area_put(bulk);
	return err;
}

/*
 * Copy a reply into its record; @done is set to the bytes that were present. Only a whole reply may
 * replace the chunk list in a record: after part of one, the next reply could be written to
 * addresses that user space controls.
 */
static int lite_reply_copy(struct lite_request *req, const struct lite_buf *buf, u32 n,
			   size_t *done)
{
	void *to = lite_area_body(req->ring->area, req->unit);
	void *copy;

	if (likely(!req->list_bytes || !n)) {
		*done = lite_buf_copy_nofault(buf, 0, to, n, true);
		return 0;
	}
	copy = kvmalloc(n, GFP_KERNEL_ACCOUNT);
	if (!copy)
		return -ENOMEM;
	*done = lite_buf_copy_nofault(buf, 0, copy, n, true);
	if (*done == n)
		memcpy(to, copy, n);
	kvfree(copy);
	return 0;
}

static int lite_reply(struct lite_rpc_file *file, const struct lite_ioc_rpc_recv *r,
		      struct lite_gate *gate)
{
	struct lite_buf buf = { .gate = gate, .user = true, .u = r->reply };
	struct lite_request *req;
	size_t done = 0;
	int err = 0;
	bool is_long;
	u32 uid;

	if (r->flags & LITE_RPC_DROP) {
		req = lite_reply_take(file, r->token, 0);
		if (IS_ERR(req))
			return PTR_ERR(req);
		lite_request_post(req, LITE_RPC_RESET, 0, 0);
		return 0;
	}
	for (;;) {
		req = lite_reply_take(file, r->token, r->reply_len);
		if (IS_ERR(req))
			return PTR_ERR(req);
		if (r->reply_len > req->room) {
			lite_request_post(req, LITE_RPC_TOO_LONG, r->reply_len, r->status);
			return 0;
		}
		is_long = r->reply_len > lite_request_inline(req);
		/* The function's owner, as in lite_recv_one(). */
		uid = req->ring->area->uid;
		if (!is_long) {
			err = lite_reply_copy(req, &buf, r->reply_len, &done);
			if (likely(!err && done == r->reply_len))
				break;
		}
		if (!lite_request_return(req, file))
			return 0;
		if (is_long)
			return gate->nowait ? -LITE_EPUTOFF : lite_reply_long(file, r, &buf, uid);
		err = err ?: lite_user_fault_in(&buf, done, r->reply_len, true);
		if (err)
			return err;
	}
	lite_request_post(req, LITE_RPC_OK, r->reply_len, r->status);
	return 0;
}

/* Give back a request that could not be reported to the user. Another thread can receive it. */
void lite_file_untake(struct lite_rpc_file *file, u64 token)
{
	struct lite_request *req = lite_reply_take(file, token, 0);

	if (!IS_ERR(req))
		lite_request_return(req, NULL);
}

/*
 * Answer a request, receive one, or both, for a file of priority @prio. Active on the node. May
 * sleep; a signal ends the wait for a request. Return: 0 or a negative errno, see
 * LITE_IOC_RPC_RECV, and results in @r; with @gate->nowait also -LITE_EPUTOFF.
 */
int lite_file_recv(struct lite_rpc_file *file, struct lite_ioc_rpc_recv *r, struct lite_gate *gate,
		   u8 prio)
{
	bool reply = r->flags & (LITE_RPC_REPLY | LITE_RPC_REPLY_ONLY);
	u32 function = r->function;
	unsigned long deadline;
	int err;

	if (r->flags & ~(LITE_RPC_NOWAIT | LITE_RPC_REPLY | LITE_RPC_REPLY_ONLY | LITE_RPC_DROP))
		return -EOPNOTSUPP;
	if (!lite_timeout_ok(r->timeout_ms) || r->function > LITE_FUNCTION_MAX ||
	    (r->flags & LITE_RPC_DROP && (!reply || r->reply_len)))
		return -EINVAL;
	/* Long requests and replies need RDMA, and so may wait. */
	if (gate->nowait && READ_ONCE(file->n_long))
		return -LITE_EPUTOFF;
	r->answered = 0;
	if (reply) {
		err = lite_reply(file, r, gate);
		/* A caller that has given up must not stop a server's loop. */
		if (err && (err != -ENOENT || r->flags & LITE_RPC_REPLY_ONLY))
			return err;
		r->answered = !err;
	}
	r->token = 0;
	if (r->flags & LITE_RPC_REPLY_ONLY)
		return 0;
	deadline = lite_serve_deadline(r->timeout_ms);
	do {
		r->token = 0;
		err = lite_recv_one(file, r, gate, function, deadline, prio);
	} while (err == -ERESTART);
	/* A request that was taken meanwhile has been given back. */
	if (err && err != -EMSGSIZE)
		r->function = function;
	/* Do not put it off: the reply would be posted again. LITE_RPC_NOWAIT is set. */
	return err == -LITE_EPUTOFF && r->answered ? -EAGAIN : err;
}
