// SPDX-License-Identifier: GPL-2.0
/*
 * Functions that kernel clients serve. A request is BUSY as soon as it comes in. A work item of its
 * own runs the handler on the request in place, and answers. The receive handler runs short
 * handlers itself, after it has dropped svc->lock. A dead function gets no more requests;
 * unregistering it refuses those that no handler has seen yet (kf->ending), and waits for the
 * others (kf->running).
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait_bit.h>

#include "function/service.h"

struct lite_kreply {
	void *mem;		/* zeroed, for the longest reply; NULL: the function has no reply */
	struct lite_area *bulk;	/* has the pages of @mem, if the reply may be too long for a ring */
};

/* A long reply counts for its caller: the function's owner, uid 0, could take the whole pool. */
static int lite_kreply_make(struct lite_kreply *r, const struct lite_request *req, u32 most)
{
	struct lite_area *bulk;

	*r = (struct lite_kreply){};
	if (most <= LITE_RPC_BYTES_MAX) {
		r->mem = most ? kvzalloc(most, GFP_KERNEL) : NULL;
		return r->mem || !most ? 0 : -ENOMEM;
	}
	bulk = lite_bulk_make(req->ring->rp->svc, req->uid, most);
	if (IS_ERR(bulk))
		return PTR_ERR(bulk);
	r->mem = lite_bulk_view(bulk);
	if (!r->mem) {
		lite_area_put(bulk);
		return -ENOMEM;
	}
	r->bulk = bulk;
	memset(r->mem, 0, most);
	return 0;
}

/* Run the handler on @data. Return: bytes in @reply, 0 for a message, or a negative errno. */
static int lite_kfunc_run(struct lite_request *req, const void *data, void *reply, u32 *status)
{
	struct lite_kfunc *kf = req->kfunc;
	struct lite_krequest k = {
		.data = data,
		.length = req->length,
		.room = req->room,
		.node = lite_rpc_peer_node(req->ring->rp),
		.uid = req->uid,
		.gid = req->gid,
		.oneway = req->flags & LITE_RPC_F_ONEWAY,
	};
	int n;

	*status = 0;
	n = kf->handler(kf->priv, &k, reply, status);
	if (WARN_ON_ONCE(n > (int)kf->max_reply))
		n = -EMSGSIZE;
	return k.oneway ? 0 : n;
}

static void *lite_kfunc_data(const struct lite_request *req)
{
	return lite_area_body(req->ring->area, req->unit) + req->list_bytes;
}

/* Fetch a request that is not in the ring, and run the handler on it. */
static int lite_kfunc_run_long(struct lite_request *req, void *reply, u32 *status)
{
	int n = lite_request_fetch(req, req->uid, false);
	void *view;

	if (n)
		return n;
	view = lite_bulk_view(req->data);
	if (!view)
		return -ENOMEM;
	n = lite_kfunc_run(req, view, reply, status);
	vunmap(view);
	lite_area_put(req->data);
	req->data = NULL;
	return n;
}

/* Put a reply of @n bytes in place; @n may be a negative errno. Return: the status. */
static u8 lite_kfunc_reply(struct lite_request *req, const struct lite_kreply *reply, int n)
{
	if (!n)
		return LITE_RPC_OK;
	if (n < 0)
		return LITE_RPC_RESET;
	if (n > req->room)
		return LITE_RPC_TOO_LONG;
	if (n > lite_request_inline(req))
		/* Without a bulk the function's replies are short: the peer is at fault. */
		return !reply->bulk || lite_request_give(req, reply->bulk, n, false) ?
			       LITE_RPC_RESET : LITE_RPC_OK;
	/* Overwrites the chunk list, if any, which is not needed any more. */
	memcpy(lite_area_body(req->ring->area, req->unit), reply->mem, n);
	return LITE_RPC_OK;
}

static void lite_count_down(atomic_t *count)
{
	if (atomic_dec_and_test(count))
		wake_up_var(count);
}

static void lite_kfunc_work(struct work_struct *work)
{
	struct lite_request *req = container_of(work, struct lite_request, work);
	struct lite_service *svc = req->ring->rp->svc;
	struct lite_kfunc *kf = req->kfunc;
	struct lite_kreply reply;
	u32 status = 0;
	int n;

	/* Else many slow requests would keep the client, or the node, from ending. */
	if (READ_ONCE(kf->ending) || READ_ONCE(svc->stopping)) {
		lite_request_post(req, LITE_RPC_REFUSED, 0, 0);
		goto out;
	}
	n = lite_kreply_make(&reply, req, kf->max_reply);
	if (!n)
		n = req->n_request ?
			    lite_kfunc_run_long(req, reply.mem, &status) :
			    lite_kfunc_run(req, lite_kfunc_data(req), reply.mem, &status);
	lite_request_post(req, lite_kfunc_reply(req, &reply, n), max(n, 0), status);
	if (reply.bulk)
		vunmap(reply.mem);
	else
		kvfree(reply.mem);
	lite_area_put(reply.bulk);
out:
	lite_count_down(&kf->running);
	lite_count_down(&svc->handlers);
}

/*
 * Pass a request, in no list and no other thread's, to a kernel client. @func is not dead;
 * svc->lock is held. Process context; receive handlers. Return: true: the handler is short, and the
 * caller can run it (@now): the caller then drops the lock and calls lite_kfunc_now().
 */
bool lite_kfunc_queue(struct lite_func *func, struct lite_request *req, bool now)
{
	struct lite_kfunc *kf = func->handler;

	lockdep_assert_held(&func->svc->lock);
	req->state = LITE_REQ_BUSY;
	req->kfunc = kf;
	atomic_inc(&kf->running);
	/* Fetching a long request waits. */
	if (kf->is_short && now && !req->n_request)
		return true;
	atomic_inc(&func->svc->handlers);
	INIT_WORK(&req->work, lite_kfunc_work);
	queue_work(kf->wq, &req->work);
	return false;
}

/* Run a short handler, and answer. Receive handler, no lock held; does not sleep. */
void lite_kfunc_now(struct lite_request *req)
{
	u8 room[LITE_KFUNC_SHORT_MAX] = {};
	const struct lite_kreply reply = { .mem = room };
	struct lite_kfunc *kf = req->kfunc;
	u32 status;
	int n;

	n = lite_kfunc_run(req, lite_kfunc_data(req), room, &status);
	lite_request_post(req, lite_kfunc_reply(req, &reply, n), max(n, 0), status);
	lite_count_down(&kf->running);
}

/* Serve a function by a handler. May sleep. Return: see lite_kfunc_register(). */
struct lite_kfunc *lite_kfunc_new(struct lite_service *svc, const struct lite_kfunc_params *p)
{
	const struct lite_cred root = {};
	struct lite_ioc_rpc_register r = {
		.function = p->function,
		.mode = p->mode,
		.max_request = p->max_request,
		.max_reply = p->max_reply,
		.ring_size = p->ring_size,
	};
	struct lite_kfunc *kf;
	int err;

	if (!p->handler || (p->is_short && p->max_reply > LITE_KFUNC_SHORT_MAX))
		return ERR_PTR(-EINVAL);
	if (p->name && !*p->name)
		return ERR_PTR(-EINVAL);
	if (p->name && strscpy(r.name, p->name, sizeof(r.name)) < 0)
		return ERR_PTR(-ENAMETOOLONG);
	kf = kzalloc(sizeof(*kf), GFP_KERNEL);
	if (!kf)
		return ERR_PTR(-ENOMEM);
	kf->handler = p->handler;
	kf->priv = p->priv;
	kf->is_short = p->is_short;
	kf->max_reply = p->max_reply;
	atomic_set(&kf->running, 1);
	/* A workqueue of its own: slow handlers of one function do not delay those of others. */
	kf->wq = alloc_workqueue("lite-handlers", WQ_UNBOUND, 0);
	err = kf->wq ? lite_func_register(svc, NULL, kf, &root, &r) : -ENOMEM;
	if (!err)
		return kf;
	if (kf->wq)
		destroy_workqueue(kf->wq);
	kfree(kf);
	return ERR_PTR(err);
}

/* Serve it no longer, wait for its handlers, and free it. The node may have stopped. May sleep. */
void lite_kfunc_end(struct lite_kfunc *kf)
{
	WRITE_ONCE(kf->ending, true);
	lite_func_unregister_kernel(kf->func);
	lite_count_down(&kf->running);
	wait_var_event(&kf->running, !atomic_read(&kf->running));
	destroy_workqueue(kf->wq);
	lite_func_put(kf->func);
	kfree(kf);
}
