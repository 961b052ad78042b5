// SPDX-License-Identifier: GPL-2.0
#include "lockword.h"
#include "wire.h"

/* Larger errnos mean nothing to anybody. */
#define LITE_WIRE_ERRNO_MAX 4095U

static int lite_sync_zero(bool zero)
{
	return zero ? 0 : -EPROTO;
}

size_t lite_wire_sync_request_size(u16 call)
{
	switch (call) {
	case LITE_CALL_LOCK_WAIT:
	case LITE_CALL_LOCK_GRANT:
	case LITE_CALL_LOCK_RELEASE:
	case LITE_CALL_LOCK_PROBE:
	case LITE_CALL_BARRIER_ARRIVE:
		return sizeof(struct lite_wire_lock);
	default:
		return 0;
	}
}

size_t lite_wire_sync_reply_size(u16 call)
{
	switch (call) {
	case LITE_CALL_LOCK_PROBE:
		return sizeof(struct lite_wire_lock_probe_reply);
	default:
		return 0;
	}
}

static int lite_lock_check(u16 call, const struct lite_wire_lock *l)
{
	u32 ticket = le32_to_cpu(l->ticket);
	u32 arg = le32_to_cpu(l->arg);

	if (!l->id || !ticket || ticket > LITE_TICKET_MAX ||
	    le64_to_cpu(l->offset) % sizeof(u64))
		return -EPROTO;
	if (l->reserved || (call != LITE_CALL_LOCK_WAIT && l->value))
		return -EPROTO;
	if ((call == LITE_CALL_LOCK_GRANT || call == LITE_CALL_LOCK_PROBE) &&
	    l->uid)
		return -EPROTO;
	switch (call) {
	case LITE_CALL_LOCK_WAIT:
		return lite_sync_zero(!(arg & ~(LITE_WIRE_LOCK_SHARED |
						LITE_WIRE_LOCK_TRY)));
	case LITE_CALL_LOCK_GRANT:
		return lite_sync_zero(arg <= LITE_WIRE_ERRNO_MAX);
	case LITE_CALL_LOCK_RELEASE:
		return lite_sync_zero(arg <= LITE_LOCK_UNUSED);
	case LITE_CALL_BARRIER_ARRIVE:
		arg &= ~LITE_WIRE_BARRIER_AGAIN;
		return lite_sync_zero(arg && arg <= LITE_BARRIER_MAX);
	default:
		return lite_sync_zero(!arg);
	}
}

int lite_wire_sync_request_check(u16 call, const void *payload)
{
	switch (call) {
	case LITE_CALL_LOCK_WAIT:
	case LITE_CALL_LOCK_GRANT:
	case LITE_CALL_LOCK_RELEASE:
	case LITE_CALL_LOCK_PROBE:
	case LITE_CALL_BARRIER_ARRIVE:
		return lite_lock_check(call, payload);
	default:
		return 0;
	}
}

static int lite_lock_probe_reply_check(const struct lite_wire_lock_probe_reply *r)
{
	return lite_sync_zero(!r->reserved &&
			      le32_to_cpu(r->state) <= LITE_WIRE_LOCK_BROKEN);
}

int lite_wire_sync_reply_check(u16 call, const void *payload)
{
	switch (call) {
	case LITE_CALL_LOCK_PROBE:
		return lite_lock_probe_reply_check(payload);
	default:
		return 0;
	}
}
