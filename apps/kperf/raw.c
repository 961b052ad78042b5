// SPDX-License-Identifier: GPL-2.0
/*
 * The arms RAW and EVENTS: plain verbs over one reliable connection to "lite-perf serve".
 *
 * RAW makes one request after another and polls the completion queue itself. EVENTS keeps a window
 * in flight, in two batches of chained requests. Only the last request of a batch is signalled: its
 * completion handler, in softirq context, posts the batch again.
 *
 * No request is in flight outside of KPERF_RUN: it waits for all that it has posted, bounded by the
 * connection's retries. So no drain is needed. If the connection breaks, requests fail, as do all
 * later ones, until the file is closed. Removal of a device waits for the close.
 *
 * What cannot run concurrently: two runs (the session's lock), two handlers of a completion queue.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "session.h"

#define RAW_RESOLVE_MS 500
#define RAW_RESOLVE_TRIES 10
#define RAW_CONNECT_MS 10000
/* As in LITE by default: 67 ms until the first of six retransmissions. */
#define RAW_ACK_TIMEOUT 14
#define RAW_RETRIES 6
#define RAW_RD_ATOM 32
#define RAW_BATCHES 2

struct raw;

/**
 * struct raw_batch - requests that are posted together
 * @cqe: of the last request, the only signalled one
 * @raw: connection
 * @wr: @n requests, chained
 * @sge: one per request
 * @n: number of requests
 */
struct raw_batch {
	struct ib_cqe cqe;
	struct raw *raw;
	struct ib_rdma_wr wr[KPERF_WINDOW_MAX];
	struct ib_sge sge[KPERF_WINDOW_MAX];
	u32 n;
};

/**
 * struct raw - a connection
 * @session: of the device file
 * @id: of the CM
 * @pd: protection domain
 * @cq: for sends; there are no receives
 * @dma: DMA addresses of the session's chunks
 * @n_dma: chunks mapped
 * @grant: answer of the server
 * @event: completed by the CM's next event
 * @cm_status: its result
 * @cqe: of single requests
 * @pending: a single request is in flight
 * @word: receives a fetch-add's old value
 * @word_dma: DMA address of @word
 * @other_cqe: of unsignalled requests, which complete only on failure
 * @batch: requests of a window
 * @inflight: batches in flight, and one for raw_stream()
 * @idle: completed when @inflight drops to 0
 * @status: first error; the connection stays unusable
 * @first: time of the first batch's completion in a run
 * @last: time of the last counted completion
 * @deadline: time after which no batch is posted again
 * @calls: maximum of requests wanted
 * @posted: requests posted
 * @done: requests counted
 */
struct raw {
	struct kperf_session *session;
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	u64 *dma;
	u32 n_dma;
	struct kperf_grant grant;
	struct completion event;
	int cm_status;
	struct ib_cqe cqe;
	bool pending;
	u64 *word;
	u64 word_dma;
	struct ib_cqe other_cqe;
	struct raw_batch batch[RAW_BATCHES];
	atomic_t inflight;
	struct completion idle;
	int status;
	u64 first;
	u64 last;
	u64 deadline;
	u64 calls;
	atomic64_t posted;
	u64 done;
};

static void raw_failed(struct raw *raw, int err)
{
	cmpxchg(&raw->status, 0, err);
}

/* Unsignalled requests complete only if they fail, and before the signalled one of their batch. */
static void raw_other_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct raw *raw = cq->cq_context;

	if (wc->status != IB_WC_SUCCESS)
		raw_failed(raw, -EIO);
}

static int raw_post(struct raw *raw, const struct ib_send_wr *wr)
{
	int err;

	/* Soft-RoCE may leave the request to ksoftirqd; local_bh_enable() then runs it here. */
	local_bh_disable();
	err = ib_post_send(raw->id->qp, wr, NULL);
	local_bh_enable();
	return err;
}

static void raw_single_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct raw *raw = container_of(wc->wr_cqe, struct raw, cqe);

	if (wc->status != IB_WC_SUCCESS)
		raw_failed(raw, -EIO);
	raw->pending = false;
}

static int raw_call(struct kperf_session *s, u32 op, u32 length, u64 *old)
{
	struct raw *raw = s->arm;
	struct ib_sge sge = {
		.addr = op == KPERF_FETCH_ADD ? raw->word_dma : raw->dma[0],
		.length = length,
		.lkey = raw->pd->local_dma_lkey,
	};
	struct ib_rdma_wr rdma = {
		.wr = {
			.wr_cqe = &raw->cqe,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = op == KPERF_READ ? IB_WR_RDMA_READ :
						     IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = raw->grant.address,
		.rkey = raw->grant.rkey,
	};
	struct ib_atomic_wr atomic = {
		.wr = rdma.wr,
		.remote_addr = raw->grant.address,
		.rkey = raw->grant.rkey,
		.compare_add = 1,
	};
	int err;

	if (raw->status)
		return raw->status;
	atomic.wr.opcode = IB_WR_ATOMIC_FETCH_AND_ADD;
	raw->pending = true;
	err = raw_post(raw, op == KPERF_FETCH_ADD ? &atomic.wr : &rdma.wr);
	if (err) {
		raw_failed(raw, err);
		return err;
	}
	/* The completion may depend on another thread of this CPU. */
	while (raw->pending) {
		if (!ib_process_cq_direct(raw->cq, -1))
			cond_resched();
	}
	*old = *raw->word;
	return raw->status;
}

static void raw_batch_put(struct raw *raw)
{
	if (atomic_dec_and_test(&raw->inflight))
		complete(&raw->idle);
}

/* The caller has counted the batch in @inflight; on failure that count is dropped. */
static void raw_batch_post(struct raw_batch *batch)
{
	struct raw *raw = batch->raw;
	int err;

	atomic64_add(batch->n, &raw->posted);
	err = raw_post(raw, &batch->wr[0].wr);
	if (err) {
		raw_failed(raw, err);
		raw_batch_put(raw);
	}
}

static void raw_batch_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct raw_batch *batch = container_of(wc->wr_cqe, struct raw_batch,
					       cqe);
	struct raw *raw = batch->raw;
	u64 now = ktime_get_ns();

	if (wc->status != IB_WC_SUCCESS)
		raw_failed(raw, -EIO);
	/* The first batch only fills the window: counting begins with its completion. */
	if (!raw->first) {
		raw->first = now;
	} else {
		raw->done += batch->n;
		raw->last = now;
	}
	if (READ_ONCE(raw->status) || now >= raw->deadline ||
	    atomic64_read(&raw->posted) >= raw->calls)
		raw_batch_put(raw);
	else
		raw_batch_post(batch);
}

/* Request @slot of a window: with its own place in remote memory, and local memory if that fits. */
static void raw_prepare(struct raw *raw, struct raw_batch *batch, u32 i,
			u32 slot, const struct kperf_run *run)
{
	const struct kperf_session *s = raw->session;
	u32 per_chunk = s->chunk_size / run->length;
	u32 local = slot % (per_chunk * s->n_chunks);
	struct ib_rdma_wr *wr = &batch->wr[i];
	bool last = i + 1 == batch->n;

	batch->sge[i] = (struct ib_sge){
		.addr = raw->dma[local / per_chunk] +
			local % per_chunk * run->length,
		.length = run->length,
		.lkey = raw->pd->local_dma_lkey,
	};
	*wr = (struct ib_rdma_wr){
		.wr = {
			.next = last ? NULL : &batch->wr[i + 1].wr,
			.wr_cqe = last ? &batch->cqe : &raw->other_cqe,
			.sg_list = &batch->sge[i],
			.num_sge = 1,
			.opcode = run->op == KPERF_READ ? IB_WR_RDMA_READ :
							  IB_WR_RDMA_WRITE,
			.send_flags = last ? IB_SEND_SIGNALED : 0,
		},
		.remote_addr = raw->grant.address + (u64)slot * run->length,
		.rkey = raw->grant.rkey,
	};
}

static int raw_stream(struct kperf_session *s, struct kperf_run *run)
{
	struct raw *raw = s->arm;
	u32 slot = 0, b, i;

	if (run->op == KPERF_FETCH_ADD)
		return -EOPNOTSUPP;
	if (raw->status)
		return raw->status;
	raw->first = 0;
	raw->last = 0;
	raw->done = 0;
	raw->calls = run->calls;
	raw->deadline = ktime_get_ns() + min_t(u64, run->ns, S64_MAX / 2);
	atomic64_set(&raw->posted, 0);
	atomic_set(&raw->inflight, 1);
	reinit_completion(&raw->idle);
	for (b = 0; b < RAW_BATCHES; b++) {
		struct raw_batch *batch = &raw->batch[b];

		batch->n = b ? run->window - slot : (run->window + 1) / 2;
		for (i = 0; i < batch->n; i++)
			raw_prepare(raw, batch, i, slot++, run);
		atomic_inc(&raw->inflight);
		raw_batch_post(batch);
	}
	raw_batch_put(raw);
	wait_for_completion(&raw->idle);
	if (raw->status)
		return raw->status;
	/* At least two batches have completed; the first one is not counted. */
	run->done = raw->done;
	run->elapsed = max_t(u64, raw->last - raw->first, 1);
	return 0;
}

static int raw_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct raw *raw = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		if (event->param.conn.private_data &&
		    event->param.conn.private_data_len >= sizeof(raw->grant))
			memcpy(&raw->grant, event->param.conn.private_data,
			       sizeof(raw->grant));
		fallthrough;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		raw->cm_status = 0;
		complete(&raw->event);
		return 0;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		raw->cm_status = -EHOSTUNREACH;
		complete(&raw->event);
		return 0;
	case RDMA_CM_EVENT_REJECTED:
		raw->cm_status = -ECONNREFUSED;
		complete(&raw->event);
		return 0;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		/* rdma_disconnect() flushes requests in flight. */
		raw_failed(raw, -ENOTCONN);
		rdma_disconnect(id);
		return 0;
	default:
		return 0;
	}
}

static int raw_await(struct raw *raw)
{
	if (!wait_for_completion_timeout(&raw->event,
					 msecs_to_jiffies(RAW_CONNECT_MS)))
		return -ETIMEDOUT;
	reinit_completion(&raw->event);
	return raw->cm_status;
}

static int raw_resolve(struct raw *raw, const struct kperf_connect *c)
{
	struct sockaddr_storage to = {};
	int err, i;

	BUILD_BUG_ON(sizeof(c->server) > sizeof(to));
	memcpy(&to, c->server, sizeof(c->server));
	if (to.ss_family != AF_INET && to.ss_family != AF_INET6)
		return -EAFNOSUPPORT;
	/* An ARP reply can be missed, so make several short attempts. */
	for (i = 0; i < RAW_RESOLVE_TRIES; i++) {
		err = rdma_resolve_addr(raw->id, NULL, (struct sockaddr *)&to,
					RAW_RESOLVE_MS);
		if (err)
			return err;
		err = raw_await(raw);
		if (err != -EHOSTUNREACH)
			break;
	}
	if (err)
		return err;
	rdma_set_ack_timeout(raw->id, RAW_ACK_TIMEOUT);
	err = rdma_resolve_route(raw->id, RAW_CONNECT_MS);
	return err ?: raw_await(raw);
}

static int raw_make_qp(struct raw *raw, enum ib_poll_context poll)
{
	struct ib_device *dev = raw->id->device;
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = KPERF_WINDOW_MAX,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	int err;

	raw->pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(raw->pd)) {
		err = PTR_ERR(raw->pd);
		raw->pd = NULL;
		return err;
	}
	/* Room for all requests: failed ones complete even if they are not signalled. */
	raw->cq = ib_alloc_cq(dev, raw, KPERF_WINDOW_MAX + 1, 0, poll);
	if (IS_ERR(raw->cq)) {
		err = PTR_ERR(raw->cq);
		raw->cq = NULL;
		return err;
	}
	attr.send_cq = raw->cq;
	attr.recv_cq = raw->cq;
	return rdma_create_qp(raw->id, raw->pd, &attr);
}

static int raw_map(struct raw *raw)
{
	const struct kperf_session *s = raw->session;
	struct ib_device *dev = raw->id->device;
	u64 dma;

	raw->dma = kcalloc(s->n_chunks, sizeof(*raw->dma), GFP_KERNEL);
	raw->word = kzalloc(sizeof(*raw->word), GFP_KERNEL);
	if (!raw->dma || !raw->word)
		return -ENOMEM;
	for (; raw->n_dma < s->n_chunks; raw->n_dma++) {
		dma = ib_dma_map_single(dev, s->chunk[raw->n_dma],
					s->chunk_size, DMA_BIDIRECTIONAL);
		if (ib_dma_mapping_error(dev, dma))
			return -ENOMEM;
		raw->dma[raw->n_dma] = dma;
	}
	dma = ib_dma_map_single(dev, raw->word, sizeof(*raw->word),
				DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(dev, dma))
		return -ENOMEM;
	raw->word_dma = dma;
	return 0;
}

static int raw_handshake(struct raw *raw)
{
	const struct ib_device_attr *attrs = &raw->id->device->attrs;
	struct kperf_hello hello = {
		.magic = KPERF_MAGIC,
		.version = KPERF_PROTOCOL,
		.bytes = raw->session->bytes,
		.regions = 1,
	};
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.initiator_depth = min(attrs->max_qp_init_rd_atom, RAW_RD_ATOM),
		.responder_resources = 1,
		.retry_count = RAW_RETRIES,
		.rnr_retry_count = RAW_RETRIES,
	};
	int err;

	err = rdma_connect(raw->id, &param);
	err = err ?: raw_await(raw);
	if (err)
		return err;
	if (raw->grant.hello.magic != KPERF_MAGIC ||
	    raw->grant.hello.version != KPERF_PROTOCOL ||
	    raw->grant.hello.bytes != hello.bytes)
		return -EPROTO;
	return 0;
}

/* Also undoes a partial raw_connect(). */
static void raw_disconnect(struct kperf_session *s)
{
	struct raw *raw = s->arm;
	struct ib_device *dev;
	u32 i;

	if (!IS_ERR_OR_NULL(raw->id)) {
		dev = raw->id->device;
		rdma_disconnect(raw->id);
		/* No request is in flight, so the device no longer uses the memory. */
		if (raw->id->qp)
			rdma_destroy_qp(raw->id);
		for (i = 0; i < raw->n_dma; i++)
			ib_dma_unmap_single(dev, raw->dma[i], s->chunk_size,
					    DMA_BIDIRECTIONAL);
		if (raw->word_dma)
			ib_dma_unmap_single(dev, raw->word_dma,
					    sizeof(*raw->word),
					    DMA_BIDIRECTIONAL);
		if (raw->cq)
			ib_free_cq(raw->cq);
		if (raw->pd)
			ib_dealloc_pd(raw->pd);
		rdma_destroy_id(raw->id);
	}
	kfree(raw->word);
	kfree(raw->dma);
	kvfree(raw);
	s->arm = NULL;
}

static int raw_connect(struct kperf_session *s, const struct kperf_connect *c,
		       enum ib_poll_context poll)
{
	struct raw *raw = kvzalloc(sizeof(*raw), GFP_KERNEL);
	u32 b;
	int err;

	if (!raw)
		return -ENOMEM;
	s->arm = raw;
	raw->session = s;
	raw->cqe.done = raw_single_done;
	raw->other_cqe.done = raw_other_done;
	for (b = 0; b < RAW_BATCHES; b++) {
		raw->batch[b].raw = raw;
		raw->batch[b].cqe.done = raw_batch_done;
	}
	init_completion(&raw->event);
	init_completion(&raw->idle);
	raw->id = rdma_create_id(&init_net, raw_cm_event, raw, RDMA_PS_TCP,
				 IB_QPT_RC);
	err = PTR_ERR_OR_ZERO(raw->id);
	err = err ?: raw_resolve(raw, c);
	err = err ?: raw_make_qp(raw, poll);
	err = err ?: raw_map(raw);
	err = err ?: raw_handshake(raw);
	if (err)
		raw_disconnect(s);
	return err;
}

static int raw_connect_direct(struct kperf_session *s,
			      const struct kperf_connect *c)
{
	return raw_connect(s, c, IB_POLL_DIRECT);
}

static int raw_connect_events(struct kperf_session *s,
			      const struct kperf_connect *c)
{
	return raw_connect(s, c, IB_POLL_SOFTIRQ);
}

const struct kperf_arm_ops kperf_raw_ops = {
	.connect = raw_connect_direct,
	.call = raw_call,
	.disconnect = raw_disconnect,
};

/* Not needed: the arm RAW makes single requests. */
static int raw_no_call(struct kperf_session *s, u32 op, u32 length, u64 *old)
{
	return -EOPNOTSUPP;
}

const struct kperf_arm_ops kperf_events_ops = {
	.connect = raw_connect_events,
	.call = raw_no_call,
	.stream = raw_stream,
	.disconnect = raw_disconnect,
};
