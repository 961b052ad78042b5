// SPDX-License-Identifier: GPL-2.0
/*
 * Moving a range of an LMR to another node (`lite move`), from the caller's side: requests to the
 * home, each for one step. home/move.c has what the home does in a step, and what runs concurrently
 * with it.
 */
#include <linux/ktime.h>
#include <linux/sched.h>

#include "memory/home/home.h"
#include "memory/memory.h"
#include "home_request.h"
#include "wait.h"

/* The longest pause between two steps. */
#define LITE_MOVE_PAUSE_NS (1 * (s64)NSEC_PER_SEC)
/* Attempts at a step, which starts over if a session breaks. */
#define LITE_MOVE_TRIES 3

/* A step blocks the LMR's users: give them as long as it took, or the longest pause. */
static int lite_move_pause(ktime_t begun)
{
	ktime_t took = min(ktime_sub(ktime_get(), begun), ns_to_ktime(LITE_MOVE_PAUSE_NS));

	__set_current_state(lite_wait_state());
	schedule_hrtimeout(&took, HRTIMER_MODE_REL);
	return lite_given_up() ? -EINTR : 0;
}

/* Check a move. @node: set to the destination. */
static int lite_move_check(struct lite_memory *mem, const struct lite_ioc_move *move, u32 *node)
{
	u64 end = move->offset + move->length;
	struct lite_share to;
	int err;

	if (move->node > LITE_NODE_ID_MAX)
		return -EINVAL;
	if (move->offset >= LITE_LMR_SIZE_MAX || end < move->offset || end > LITE_LMR_SIZE_MAX)
		return -ERANGE;
	err = lite_cluster_ready(mem->cl);
	if (err)
		return err;
	/* Look for the node here: the home's -EHOSTUNREACH would seem to be about the home. */
	*node = move->node ?: lite_cluster_id(mem->cl);
	return lite_share_find(mem, *node, &to) == -EHOSTUNREACH ? -EHOSTUNREACH : 0;
}

/* Have the home take a step. @begun: set to its beginning. */
static int lite_move_ask(struct lite_home_request *q, ktime_t *begun)
{
	int tries = 0;
	int err;

	do {
		*begun = ktime_get();
		err = lite_home_ask(q);
		if (err != -EHOSTDOWN || ++tries == LITE_MOVE_TRIES)
			return err;
		err = lite_move_pause(*begun) ?: lite_cluster_ready(q->ctx->mem->cl);
	} while (!err);
	return err;
}

/*
 * Move a range of an LMR; @arg and the errnos are those of LITE_IOC_MOVE. Sets how much was moved,
 * also on failure. May sleep; killable between the steps.
 */
int lite_ctx_move(struct lite_ctx *ctx, const struct lite_target *target, void *arg)
{
	struct lite_ioc_move *move = arg;
	u64 at = move->offset;
	u64 end = move->length ? at + move->length : LITE_LMR_SIZE_MAX;
	struct lite_wire_move_reply reply;
	struct lite_wire_move req = {};
	struct lite_home_request q = {
		.ctx = ctx,
		.target = target,
		.d = {
			LITE_REQUEST(LITE_CALL_LMR_MOVE, req),
			LITE_REPLY(reply),
		},
	};
	ktime_t begun;
	u32 node = 0;
	u64 size;
	int err;

	move->moved = 0;
	err = lite_move_check(ctx->mem, move, &node);
	req.node = cpu_to_le32(node);
	while (!err && at < end) {
		req.offset = cpu_to_le64(at);
		req.length = cpu_to_le64(move->length ? end - at : 0);
		err = lite_move_ask(&q, &begun);
		if (err)
			return err;
		req.later = cpu_to_le32(1);
		/* The LMR may have been cut since the first step. */
		size = le64_to_cpu(reply.length);
		if (size <= move->offset)
			return -ERANGE;
		end = min(end, size);
		/* Each step makes progress, or the home is broken. */
		if (at < end && le64_to_cpu(reply.next) <= at)
			return -EPROTO;
		at = max(at, le64_to_cpu(reply.next));
		move->moved = min(at, end) - move->offset;
		if (at < end)
			err = lite_move_pause(begun);
	}
	return err;
}
