// SPDX-License-Identifier: GPL-2.0
/*
 * Giving back requests that were taken from an inbox, and waiting for the next.
 *
 * The process waits here only when its queue is empty; as in RECV, it does the
 * poller's work for a while, and sleeps then.
 */
#include "inbox.h"

/* Give back without an answer. -ENOENT: the file has no such request. */
static int lite_inbox_done(struct lite_rpc_file *file, u64 token)
{
	struct lite_service *svc = file->svc;
	struct lite_request *req;

	spin_lock(&svc->lock);
	req = lite_request_by_token(file, token);
	if (req) {
		list_del(&req->list);
		req->state = LITE_REQ_BUSY;
	}
	spin_unlock(&svc->lock);
	if (!req)
		return -ENOENT;
	/* That nobody is there any more is not the server's fault. */
	lite_request_post_soon(req,
			       req->flags & LITE_RPC_F_ONEWAY ? LITE_RPC_OK :
								LITE_RPC_RESET,
			       0, 0);
	return 0;
}

static int lite_inbox_answer(struct lite_rpc_file *file,
			     struct lite_ioc_rpc_next *n,
			     struct lite_gate *gate)
{
	struct lite_ioc_rpc_recv r = {
		.flags = LITE_RPC_REPLY_ONLY,
		.token = n->token,
		.reply = n->reply,
		.reply_len = n->reply_len,
		.status = n->status,
	};
	int err = lite_file_recv(file, &r, gate);

	n->answered = !err;
	return err;
}

/* 0: there is more than @n->seen; -EINPROGRESS: wait, in the line; an errno. */
static int lite_inbox_look(struct lite_rpc_file *file,
			   const struct lite_ioc_rpc_next *n,
			   struct lite_recv_waiter *w)
{
	struct lite_server *s;
	struct lite_inbox *inbox;

	lockdep_assert_held(&file->svc->lock);
	if (file->svc->stopping || file->shut)
		return -ENODEV;
	s = lite_server_find(file, n->function);
	if (!s)
		return -ENOENT;
	/* What was given back has made room. */
	lite_inbox_drain(s->func);
	inbox = s->inbox;
	if (lite_serve_nowait(n->flags, n->timeout_ms))
		return 0;
	if (!inbox)
		return -ENOENT;
	if (inbox->queue.tail != n->seen)
		return 0;
	if (inbox->held < inbox->depth && !list_empty(&s->func->queue))
		return -ENOMEM;
	/* The last to come is served first: it is awake, unless another one is. */
	if (test_bit(0, &file->watching))
		list_add_tail(&w->list, &inbox->waiters);
	else
		list_add(&w->list, &inbox->waiters);
	return -EINPROGRESS;
}

static int lite_inbox_await(struct lite_rpc_file *file,
			    const struct lite_ioc_rpc_next *n)
{
	unsigned long deadline = lite_serve_deadline(n->timeout_ms);
	struct lite_recv_waiter w = {
		.done = COMPLETION_INITIALIZER_ONSTACK(w.done),
	};
	int err;

	spin_lock(&file->svc->lock);
	err = lite_inbox_look(file, n, &w);
	spin_unlock(&file->svc->lock);
	if (err != -EINPROGRESS)
		/* Who does not want to wait need not have an inbox. */
		return err == -ENOENT && lite_serve_nowait(n->flags, n->timeout_ms) ?
			       0 : err;
	lite_recv_wait(file, &w, deadline);
	return w.err == LITE_INBOX_CAME ? 0 : w.err;
}

/**
 * lite_file_next - give requests back, and wait for the next one
 * @file: open file's
 * @n: what to do; results are set
 * @gate: the node
 *
 * Context: may sleep; a signal ends waiting.
 * Return: 0 or a negative errno as LITE_IOC_RPC_NEXT.
 */
int lite_file_next(struct lite_rpc_file *file, struct lite_ioc_rpc_next *n,
		   struct lite_gate *gate)
{
	int err = 0, ret = 0;
	u32 i;

	if (n->flags & ~(LITE_RPC_NOWAIT | LITE_RPC_REPLY))
		return -EOPNOTSUPP;
	if (!lite_timeout_ok(n->timeout_ms) ||
	    n->n_done > LITE_INBOX_DONE_MAX || !n->function ||
	    n->function > LITE_FUNCTION_MAX)
		return -EINVAL;
	/* As RECV does, before anything is given back. */
	if (gate->nowait && READ_ONCE(file->n_long))
		return -LITE_EPUTOFF;
	n->answered = 0;
	for (i = 0; i < n->n_done; i++)
		err = lite_inbox_done(file, n->done[i]) ?: err;
	/* Tokens put off may be wrong by somebody else's fault. */
	if (n->flags & LITE_RPC_REPLY)
		ret = lite_inbox_answer(file, n, gate);
	err = err ?: ret;
	return err ?: lite_inbox_await(file, n);
}
