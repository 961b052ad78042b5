// SPDX-License-Identifier: GPL-2.0
/*
 * Connecting through the kernel's RDMA CM: the handshake of auth.c in private data.
 *
 * Initiator (lite_conn_connect(), in the caller's thread): a first request, for a queue pair that
 * is never connected, carries the HELLO and is rejected with a CHALLENGE; a second one carries the
 * proof, and connects the first queue pair.
 *
 * Responder: the CM's handler, which all connections of the machine share, only computes and checks
 * MACs. A work item of the connection accepts, as that makes queue pairs and asks the layer above.
 *
 * What cannot run concurrently: the CM runs one handler at a time per identifier, and none after
 * rdma_destroy_id(). An identifier is destroyed under conn->lock, never in a handler. If a request
 * is rejected at once, the handler returns an error, so that the CM destroys the identifier.
 */
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <net/ipv6.h>
#include <rdma/ib_cm.h>

#include "fabric.h"

/*
 * A packet is resent 7 times, which some devices take as for ever: Documentation/decisions.rst.
 * Times between: lite_fabric.ack_timeout. Receives are always posted, so RNR is an error.
 */
#define LITE_RETRY_COUNT 7
#define LITE_RNR_RETRY_COUNT 6

/*
 * The core can miss an ARP reply that comes while it queues the request, and looks again only when
 * the request times out: use several short time-outs.
 */
#define LITE_RESOLVE_TIMEOUT_MS 500
#define LITE_RESOLVE_TRIES 5

/*
 * Status of a step, not an errno, so that no other error is mistaken for it: the peer's CM has
 * taken the QP number of the request for that of an older connection, which it now ends.
 */
#define LITE_CM_STALE 1
/* How long to wait for the end of that connection. */
#define LITE_STALE_PAUSE (HZ / 10)

static void lite_cm_hdr_fill(struct lite_fabric *fab, struct lite_cm_hdr *hdr,
			     enum lite_cm_kind kind)
{
	*hdr = (struct lite_cm_hdr){
		.magic = cpu_to_le32(LITE_WIRE_MAGIC),
		.version = LITE_WIRE_VERSION,
		.kind = kind,
		.nqps = fab->nqps,
		.quirks = fab->quirks & LITE_CM_QUIRKS,
	};
}

static void lite_cm_ident_fill(struct lite_fabric *fab, struct lite_cm_ident *ident)
{
	ident->node = cpu_to_le16(fab->self.node);
	ident->port = cpu_to_le16(fab->self.port);
	ident->incarnation = cpu_to_le64(fab->self.incarnation);
}

static void lite_cm_ident_get(struct lite_ident *to, const struct lite_cm_ident *from)
{
	to->node = le16_to_cpu(from->node);
	to->port = le16_to_cpu(from->port);
	to->incarnation = le64_to_cpu(from->incarnation);
}

static void lite_cm_param_fill(const struct lite_conn *conn, struct rdma_conn_param *param,
			       const void *data, u8 len)
{
	*param = (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = len,
		.responder_resources = conn->rd_atom,
		.initiator_depth = conn->rd_atom,
		.retry_count = LITE_RETRY_COUNT,
		.rnr_retry_count = LITE_RNR_RETRY_COUNT,
		.flow_control = 1,
	};
}

/* Limit outstanding reads and atomics to what the peer and its queue pair allow. */
static void lite_cm_take_depth(struct lite_conn *conn, const struct rdma_conn_param *param)
{
	conn->rd_atom = clamp_t(u8, min(param->initiator_depth, param->responder_resources),
				1, conn->fab->rd_atom);
}

static int lite_cm_conn_event(struct rdma_cm_id *id, struct rdma_cm_event *event);

static void lite_cm_refuse(struct lite_fabric *fab, struct rdma_cm_id *id, int err)
{
	struct lite_cm_refuse refuse = { .error = cpu_to_le32(-err) };

	lite_cm_hdr_fill(fab, &refuse.hdr, LITE_CM_REFUSE);
	lite_stat_inc(fab->stats, LITE_STAT_REFUSED);
	rdma_reject(id, &refuse, sizeof(refuse), IB_CM_REJ_CONSUMER_DEFINED);
}

static int lite_cm_on_hello(struct lite_fabric *fab, struct rdma_cm_id *id,
			    const struct lite_cm_hello *hello)
{
	struct lite_cm_challenge challenge;
	int err;

	lite_cm_hdr_fill(fab, &challenge.hdr, LITE_CM_CHALLENGE);
	err = lite_auth_challenge(&fab->auth, &fab->addr, hello, &challenge);
	if (err)
		lite_cm_refuse(fab, id, err);
	else
		rdma_reject(id, &challenge, sizeof(challenge), IB_CM_REJ_CONSUMER_DEFINED);
	/* Make the CM destroy the identifier, which is rejected in either case. */
	return -ECONNREFUSED;
}

static int lite_conn_accept(struct lite_conn *conn)
{
	struct lite_fabric *fab = conn->fab;
	struct lite_cm_accept accept = { .rkey = cpu_to_le32(fab->rkey) };
	struct rdma_conn_param param;
	int err;

	lockdep_assert_held(&conn->lock);
	err = lite_conn_setup(conn);
	if (err)
		return err;

	lite_cm_hdr_fill(fab, &accept.hdr, LITE_CM_ACCEPT);
	lite_cm_ident_fill(fab, &accept.from);
	accept.requests = cpu_to_le64(conn->slots_in.requests);
	accept.replies = cpu_to_le64(conn->slots_in.replies);
	err = lite_auth_accept_mac(&fab->auth, &fab->addr, conn->nonce, &accept, accept.mac);
	if (err)
		return err;
	lite_cm_param_fill(conn, &param, &accept, sizeof(accept));
	rdma_set_ack_timeout(conn->id, fab->ack_timeout);
	rdma_lock_handler(conn->id);
	err = rdma_accept(conn->id, &param);
	rdma_unlock_handler(conn->id);
	return err;
}

static void lite_conn_accept_work(struct work_struct *work)
{
	struct lite_conn *conn = container_of(work, struct lite_conn, accept_work);
	struct lite_fabric *fab = conn->fab;
	int err;

	/* Without conn->lock, because it may wait for the end of other connections. */
	err = fab->ops->admit(fab->priv, conn);
	mutex_lock(&conn->lock);
	if (!err)
		err = lite_conn_accept(conn);
	if (err && conn->id) {
		rdma_lock_handler(conn->id);
		lite_cm_refuse(fab, conn->id, err);
		rdma_unlock_handler(conn->id);
	}
	mutex_unlock(&conn->lock);
	if (err)
		lite_conn_kill(conn, err);
	lite_conn_put(conn);
}

static int lite_cm_on_connect(struct lite_fabric *fab, struct rdma_cm_id *id,
			      const struct rdma_conn_param *param,
			      const struct lite_cm_connect *connect)
{
	struct lite_conn *conn;
	int err;

	err = lite_auth_check_connect(&fab->auth, &fab->addr, connect);
	if (err)
		return err;
	conn = lite_conn_alloc(fab);
	if (IS_ERR(conn))
		return PTR_ERR(conn);
	lite_cm_take_depth(conn, param);
	conn->passive = true;
	conn->nqps = min(conn->nqps, connect->hdr.nqps);
	lite_quirks_agree(conn, connect->hdr.quirks);
	conn->id = id;
	id->context = conn;
	id->event_handler = lite_cm_conn_event;
	lite_cm_ident_get(&conn->from, &connect->from);
	memcpy(conn->nonce, connect->nonce, LITE_NONCE_SIZE);
	/* Set before @conn can be found: else it may be fenced as another node's. */
	conn->self = conn->from.node == fab->self.node &&
		     conn->from.incarnation == fab->self.incarnation &&
		     lite_conn_is_own(conn);
	INIT_WORK(&conn->accept_work, lite_conn_accept_work);
	/* Last, because from here on the connection can be killed. */
	err = lite_conn_register(conn);
	if (err)
		return err;
	queue_work(fab->accept_wq, &conn->accept_work);
	return 0;
}

static void lite_cm_step(struct lite_conn *conn, int status)
{
	conn->cm_status = status;
	complete(&conn->cm_done);
}

/* Copy an event's private data; without any, hdr.kind is 0. */
static void lite_cm_take_reply(struct lite_conn *conn, const void *data, size_t len)
{
	memset(&conn->cm_reply, 0, sizeof(conn->cm_reply));
	if (data)
		memcpy(&conn->cm_reply, data, min(len, sizeof(conn->cm_reply)));
}

static int lite_cm_conn_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct lite_conn *conn = id->context;
	const void *data;
	u8 len = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		lite_cm_step(conn, 0);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (conn->passive)
			break;
		lite_cm_take_reply(conn, event->param.conn.private_data,
				   event->param.conn.private_data_len);
		lite_cm_take_depth(conn, &event->param.conn);
		lite_cm_step(conn, 0);
		break;
	case RDMA_CM_EVENT_REJECTED:
		if (conn->passive) {
			lite_conn_kill(conn, -ECONNREFUSED);
			break;
		}
		data = rdma_consumer_reject_data(id, event, &len);
		lite_cm_take_reply(conn, data, len);
		lite_cm_step(conn, event->status == IB_CM_REJ_STALE_CONN ?
					   LITE_CM_STALE : -ECONNREFUSED);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		if (conn->passive)
			lite_conn_kill(conn, -EHOSTUNREACH);
		else
			lite_cm_step(conn, -EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		lite_conn_end(conn, LITE_END_PEER, event->event, -EHOSTDOWN);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		lite_conn_end(conn, LITE_END_DEVICE, ENODEV, -EHOSTDOWN);
		break;
	default:
		break;
	}
	return 0;
}

static int lite_cm_listen_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;
	/* A new identifier inherits the listener's context. */
	struct lite_fabric *fab = id->context;
	enum lite_cm_kind kind;
	int err;

	/* Ignore the listener's own events: the ib_client stops the node before device removal. */
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	err = lite_cm_check(param->private_data, param->private_data_len, &kind);
	if (!err && kind == LITE_CM_HELLO)
		return lite_cm_on_hello(fab, id, param->private_data);
	if (!err)
		err = kind == LITE_CM_CONNECT ?
		      lite_cm_on_connect(fab, id, param, param->private_data) : -EPROTO;
	if (err)
		lite_cm_refuse(fab, id, err);
	/* An error makes the CM destroy the identifier. */
	return err;
}

/* Convert a node's address, with another @port; 0: any. */
static void lite_cm_addr(struct sockaddr_storage *to, const struct lite_wire_addr *from, u16 port)
{
	struct sockaddr_in6 *sin6 = (void *)to;
	struct sockaddr_in *sin = (void *)to;
	struct in6_addr ip;

	memcpy(&ip, from->ip, sizeof(ip));
	memset(to, 0, sizeof(*to));
	/* Both families have the port in the same place. */
	sin->sin_port = htons(port);
	if (ipv6_addr_v4mapped(&ip)) {
		sin->sin_family = AF_INET;
		sin->sin_addr.s_addr = ip.s6_addr32[3];
	} else {
		sin6->sin6_family = AF_INET6;
		sin6->sin6_addr = ip;
	}
}

/* Bind to the node's address; find device and port. May sleep. Return: 0 or a negative errno. */
int lite_cm_bind(struct lite_fabric *fab)
{
	struct sockaddr_storage addr;
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(&init_net, lite_cm_listen_event, fab, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	/* One address family only, even where IPv6 accepts IPv4. */
	rdma_set_afonly(id, 1);
	lite_cm_addr(&addr, &fab->addr, le16_to_cpu(fab->addr.port));
	err = rdma_bind_addr(id, (struct sockaddr *)&addr);
	if (!err && !id->device)
		err = -ENODEV;
	if (err) {
		rdma_destroy_id(id);
		return err;
	}
	fab->listener = id;
	fab->dev = id->device;
	fab->port_num = id->port_num;
	return 0;
}

/* Let peers connect; @fab->self is set. May sleep. Return: 0 or a negative errno. */
int lite_fabric_listen(struct lite_fabric *fab)
{
	return rdma_listen(fab->listener, 64);
}

/* Stop accepting requests; waits for the handler. May be called twice. */
void lite_cm_unlisten(struct lite_fabric *fab)
{
	if (fab->listener)
		rdma_destroy_id(fab->listener);
	fab->listener = NULL;
}

/* Wait for the next CM event. Return: 0, LITE_CM_STALE, or a negative errno. */
static int lite_cm_wait(struct lite_conn *conn, unsigned long deadline)
{
	long left = (long)(deadline - jiffies);
	long ret;

	if (left <= 0)
		return -ETIMEDOUT;
	ret = wait_for_completion_killable_timeout(&conn->cm_done, left);
	if (ret < 0)
		return -EINTR;
	if (!ret)
		return -ETIMEDOUT;
	/* Once the connection is dead, cm_done stays complete, so later steps do not wait. */
	return lite_conn_is_dead(conn) ? -ECONNABORTED : conn->cm_status;
}

/* Make an identifier with a route to the peer, over the node's device. */
static int lite_cm_resolve(struct lite_conn *conn, const struct lite_wire_addr *dst,
			   unsigned long deadline)
{
	struct lite_fabric *fab = conn->fab;
	struct sockaddr_storage src, to;
	struct rdma_cm_id *id;
	int tries = 0;
	int err;

	/* From the node's address, but any port. */
	lite_cm_addr(&src, &fab->addr, 0);
	lite_cm_addr(&to, dst, le16_to_cpu(dst->port));
	id = rdma_create_id(&init_net, lite_cm_conn_event, conn, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	conn->id = id;
	do {
		err = rdma_resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)&to,
					LITE_RESOLVE_TIMEOUT_MS) ?:
		      lite_cm_wait(conn, deadline);
	} while (err == -EHOSTUNREACH && ++tries < LITE_RESOLVE_TRIES);
	if (!err && id->device != fab->dev)
		err = -EHOSTUNREACH;
	return err ?: rdma_set_ack_timeout(id, fab->ack_timeout) ?:
	       rdma_resolve_route(id, LITE_RESOLVE_TIMEOUT_MS) ?:
	       lite_cm_wait(conn, deadline);
}

/* Decode the peer's rejection. Return: 0: a challenge; else a negative errno. */
static int lite_cm_rejection(struct lite_conn *conn)
{
	enum lite_cm_kind kind;
	int err;

	err = lite_cm_check(&conn->cm_reply, sizeof(conn->cm_reply), &kind);
	if (err == -EPROTONOSUPPORT)
		return err;
	if (err)
		return -ECONNREFUSED; /* rejected by the CM: no listener */
	if (kind == LITE_CM_REFUSE)
		return lite_wire_refusal(le32_to_cpu(conn->cm_reply.refuse.error));
	return kind == LITE_CM_CHALLENGE ? 0 : -EPROTO;
}

static int lite_cm_hello(struct lite_conn *conn, const struct lite_wire_addr *dst, u32 number,
			 const struct lite_cm_hello *hello, struct lite_cm_challenge *challenge,
			 unsigned long deadline)
{
	struct rdma_conn_param param;
	u8 mac[LITE_MAC_SIZE];
	int err;

	err = lite_cm_resolve(conn, dst, deadline);
	if (!err) {
		lite_cm_param_fill(conn, &param, hello, sizeof(*hello));
		param.qp_num = number;
		/* A peer that accepts a HELLO violates the protocol. */
		err = rdma_connect(conn->id, &param) ?: lite_cm_wait(conn, deadline) ?: -EPROTO;
	}
	if (err == -ECONNREFUSED)
		err = lite_cm_rejection(conn);
	if (!err) {
		*challenge = conn->cm_reply.challenge;
		err = lite_auth_challenge_mac(&conn->fab->auth, dst, hello, challenge, mac) ?:
		      lite_auth_compare(mac, challenge->mac, sizeof(mac));
	}
	if (conn->id)
		rdma_destroy_id(conn->id);
	conn->id = NULL;
	return err;
}

static int lite_cm_take_accept(struct lite_conn *conn, const struct lite_wire_addr *dst)
{
	const struct lite_cm_accept *accept = &conn->cm_reply.accept;
	enum lite_cm_kind kind;
	u8 mac[LITE_MAC_SIZE];
	int err;

	err = lite_cm_check(accept, sizeof(*accept), &kind);
	if (!err && kind != LITE_CM_ACCEPT)
		err = -EPROTO;
	err = err ?: lite_auth_accept_mac(&conn->fab->auth, dst, conn->nonce, accept, mac) ?:
	      lite_auth_compare(mac, accept->mac, sizeof(mac));
	if (err)
		return err;
	lite_cm_ident_get(&conn->from, &accept->from);
	conn->rkey = le32_to_cpu(accept->rkey);
	conn->requests = le64_to_cpu(accept->requests);
	conn->replies = le64_to_cpu(accept->replies);
	return 0;
}

static int lite_cm_handshake(struct lite_conn *conn, const struct lite_wire_addr *dst,
			     u32 number, unsigned long deadline)
{
	struct lite_fabric *fab = conn->fab;
	struct lite_cm_challenge challenge;
	struct lite_cm_connect connect;
	struct rdma_conn_param param;
	struct lite_cm_hello hello;
	u8 mac[LITE_MAC_SIZE];
	int err;

	get_random_bytes(conn->nonce, LITE_NONCE_SIZE);
	lite_cm_hdr_fill(fab, &hello.hdr, LITE_CM_HELLO);
	lite_cm_ident_fill(fab, &hello.from);
	memcpy(hello.nonce, conn->nonce, LITE_NONCE_SIZE);
	err = lite_cm_hello(conn, dst, number, &hello, &challenge, deadline);
	if (err)
		return err;
	lite_quirks_agree(conn, challenge.hdr.quirks);

	connect.hdr = hello.hdr;
	connect.hdr.kind = LITE_CM_CONNECT;
	connect.from = hello.from;
	memcpy(connect.nonce, conn->nonce, LITE_NONCE_SIZE);
	err = lite_auth_proof(&fab->auth, dst, challenge.nonce, &connect, mac);
	memcpy(connect.proof, mac, LITE_PROOF_SIZE);
	err = err ?: lite_cm_resolve(conn, dst, deadline) ?: lite_conn_setup(conn);
	if (err)
		return err;
	lite_cm_param_fill(conn, &param, &connect, sizeof(connect));
	err = rdma_connect(conn->id, &param) ?: lite_cm_wait(conn, deadline);
	if (err == -ECONNREFUSED)
		return lite_cm_rejection(conn) ?: -EPROTO;
	return err ?: lite_cm_take_accept(conn, dst);
}

/*
 * Connect. A HELLO needs a QP number that is unique on this device: if the peer's CM knew it
 * already, it would end the connection of that number as stale. So a queue pair is made that is
 * never connected. Nothing completes on its CQ, which needs no handlers.
 */
static int lite_cm_connect(struct lite_conn *conn, const struct lite_wire_addr *dst,
			   unsigned long deadline)
{
	const struct ib_cq_init_attr cq_attr = { .cqe = 1 };
	struct ib_cq *cq = ib_create_cq(conn->fab->dev, NULL, NULL, NULL, &cq_attr);
	struct ib_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap.max_send_wr = 1,
		.cap.max_recv_wr = 1,
		.cap.max_send_sge = 1,
		.cap.max_recv_sge = 1,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = conn->fab->port_num,
	};
	struct ib_qp *number;
	int err;

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	number = ib_create_qp(conn->fab->pd, &attr);
	if (!IS_ERR(number)) {
		err = lite_cm_handshake(conn, dst, number->qp_num, deadline);
		/* Not earlier, because the second request must not reuse this number. */
		ib_destroy_qp(number);
	} else {
		err = PTR_ERR(number);
	}
	ib_destroy_cq(cq);
	return err;
}

/* Try once, from the beginning. Return: 0, LITE_CM_STALE, or a negative errno. */
static int lite_conn_try(struct lite_fabric *fab, const struct lite_wire_addr *dst,
			 unsigned long deadline, struct lite_conn **out)
{
	struct lite_conn *conn = lite_conn_alloc(fab);
	int err;

	if (IS_ERR(conn))
		return PTR_ERR(conn);
	conn->self = lite_addr_equal(dst, &fab->addr);
	err = lite_conn_register(conn);
	if (err)
		return err;
	mutex_lock(&conn->lock);
	err = lite_cm_connect(conn, dst, deadline);
	mutex_unlock(&conn->lock);
	if (err) {
		lite_conn_kill(conn, err < 0 ? err : -ECONNREFUSED);
		lite_conn_put(conn);
		return err;
	}
	*out = conn;
	return 0;
}

/*
 * Connect to another node within @timeout jiffies. Sets @out to the connection, which is NEW: its
 * first queue pair works. The caller gets a reference, and ends the connection with
 * lite_conn_kill(). May sleep; killable. Return: 0; -EKEYREJECTED: another cluster secret;
 * -ECONNREFUSED: no listener; -EHOSTUNREACH; -ETIMEDOUT; -EPROTONOSUPPORT; -EINTR; the errno of the
 * peer's admission; other negative errnos.
 */
int lite_conn_connect(struct lite_fabric *fab, const struct lite_wire_addr *dst,
		      unsigned long timeout, struct lite_conn **out)
{
	unsigned long deadline = jiffies + timeout;
	int err;

	while ((err = lite_conn_try(fab, dst, deadline, out)) == LITE_CM_STALE) {
		/* Retry with another QP number, once the peer has ended the stale connection. */
		schedule_timeout_killable(LITE_STALE_PAUSE);
		if (fatal_signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, deadline))
			return -ETIMEDOUT;
	}
	if (!err)
		lite_stat_inc(fab->stats, LITE_STAT_CONNECTS);
	return err;
}
