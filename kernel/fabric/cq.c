// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: making them, events, and their end. io.c takes completions.
 *
 * Normal operation: a waiter that sleeps (lite_cq_sleep()) has armed the send CQ of its QP; the
 * completion interrupt wakes it, and it polls. If a send CQ has no such sleeper, or several, the
 * interrupt puts the CQ on the poller's list, and the poller runs the handlers. It does so for all
 * receive CQs, too. These are always armed, and one thread at a time handles the completions of
 * each, so messages are handled in order.
 *
 * LITE arms plain CQs itself, because those of ib_alloc_cq() are either polled or interrupt-driven.
 */
#include <linux/rcupdate.h>

#include "fabric.h"

static void lite_cq_event(struct ib_cq *ib, void *context)
{
	struct lite_cq *cq = context;

	/*
	 * A single sleeper takes its completions itself, so that no other thread has to be woken.
	 * Several must not depend on one of them, which may get no processor for long. Sleepers
	 * that come after this look at @sleepers arm the CQ themselves.
	 */
	if (cq->always || atomic_read(&cq->poller->attending) ||
	    !lite_poller_hand(&cq->wait, &cq->sleepers))
		lite_cq_wake(cq);
}

static void lite_cq_error(struct ib_event *event, void *context)
{
	pr_warn_ratelimited("lite: CQ error %s\n", ib_event_msg(event->event));
}

/* Request an event for the next completion. Process context. Return: may some have come before? */
bool lite_cq_notify(struct lite_cq *cq)
{
	const enum ib_cq_notify_flags flags = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;
	bool missed;

	/* The device's CQ exists until @closed is set. */
	spin_lock(&cq->lock);
	missed = !cq->closed && ib_req_notify_cq(cq->ib, flags) > 0;
	spin_unlock(&cq->lock);
	return missed;
}

/*
 * Arm a CQ, and have the poller take completions that came before. The poller arms it again while
 * @always, @sleepers or lite_poller.attending is set. Process context.
 */
void lite_cq_arm(struct lite_cq *cq)
{
	if (lite_cq_notify(cq))
		lite_cq_wake(cq);
}

/*
 * Have the poller handle completions that have no waiter: call this before posting, and
 * lite_cq_disarm_sleeper() when they have come. It arms the CQ even if other sleepers have, because
 * these may get no processor. Process context.
 */
void lite_cq_arm_sleeper(struct lite_cq *cq)
{
	atomic_inc(&cq->sleepers);
	lite_cq_arm(cq);
}

/*
 * Have the poller take completions until lite_fabric_attend_end(), for a caller that waits for
 * operations of threads that may have no processor. The caller then calls lite_conn_attend() for
 * each connection in question. Any context.
 */
void lite_fabric_attend(struct lite_fabric *fab)
{
	atomic_inc(&fab->poller.attending);
	smp_mb__after_atomic(); /* attending is set before CQs are armed */
}

void lite_fabric_attend_end(struct lite_fabric *fab)
{
	atomic_dec(&fab->poller.attending);
}

/* See lite_fabric_attend(). The caller holds a reference to @conn. Process context. */
void lite_conn_attend(struct lite_conn *conn)
{
	int i;

	for (i = 0; i < conn->nqps; i++) {
		if (conn->qp[i].scq)
			lite_cq_arm(conn->qp[i].scq);
	}
}

/* Create a CQ of @depth entries; @always: keep it armed. May sleep. Return: the CQ or ERR_PTR. */
struct lite_cq *lite_cq_create(struct lite_fabric *fab, int depth, bool always)
{
	struct ib_device *dev = fab->dev;
	struct ib_cq_init_attr attr = { .cqe = depth };
	struct lite_cq *cq;
	int err;

	cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->poller = &fab->poller;
	cq->always = always;
	spin_lock_init(&cq->lock);
	init_waitqueue_head(&cq->wait);
	INIT_LIST_HEAD(&cq->ready);
	/* Spread interrupts over the device's vectors. */
	if (dev->num_comp_vectors > 1)
		attr.comp_vector = raw_smp_processor_id() % dev->num_comp_vectors;
	cq->ib = ib_create_cq(dev, lite_cq_event, lite_cq_error, cq, &attr);
	if (IS_ERR(cq->ib)) {
		err = PTR_ERR(cq->ib);
		kfree(cq);
		return ERR_PTR(err);
	}
	if (always)
		lite_cq_arm(cq);
	return cq;
}

/* Take no more completions. Handlers may run until lite_cq_quiesce() returns. Process context. */
void lite_cq_close(struct lite_cq *cq)
{
	spin_lock(&cq->lock);
	WRITE_ONCE(cq->closed, true);
	spin_unlock(&cq->lock);
	/* From here on events do not list the CQ. */
	spin_lock_irq(&cq->poller->lock);
	list_del_init(&cq->ready);
	spin_unlock_irq(&cq->poller->lock);
}

/*
 * Wait for handlers of closed CQs, and for threads that have taken such a CQ from the ready list.
 * Both run with preemption off, so a grace period is enough. May sleep.
 */
void lite_cq_quiesce(void)
{
	synchronize_rcu_expedited();
}

static void lite_cq_nothing(struct ib_cq *ib, void *context)
{
}

/*
 * Destroy the device's CQ, after closing it if needed. @stuck: a QP that the device has kept still
 * uses it; then it leaks. @cq itself is freed with its connection, because threads may still be
 * leaving its wait queue. May sleep.
 */
void lite_cq_destroy(struct lite_cq *cq, bool stuck)
{
	if (!cq->closed) {
		lite_cq_close(cq);
		lite_cq_quiesce();
	}
	if (stuck) {
		WRITE_ONCE(cq->ib->comp_handler, lite_cq_nothing);
		/* Wait for calls of the old handler. */
		synchronize_rcu();
		return;
	}
	ib_destroy_cq(cq->ib);
}
