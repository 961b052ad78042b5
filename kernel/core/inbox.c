// SPDX-License-Identifier: GPL-2.0
#include "inbox.h"

#ifdef __KERNEL__
#include <linux/atomic.h>
#else
/* What they are there; each use says why. */
#define smp_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define xchg(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#define READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#endif

u64 lite_inbox_put(struct lite_inbox_queue *q,
		   const struct lite_inbox_entry *entry)
{
	struct lite_inbox_entry *at = (void *)(q->control + 1);
	u64 number = q->tail++;

	at[number & (q->entries - 1)] = *entry;
	/* With the process's acquire: the entry, and the request itself. */
	smp_store_release(&q->control->tail, q->tail);
	return number;
}

bool lite_inbox_is_empty(const struct lite_inbox_queue *q)
{
	return READ_ONCE(q->control->head) == q->tail;
}

u32 lite_inbox_close(struct lite_inbox_queue *q)
{
	/* Either the process takes an entry before this, or it fails to. */
	u64 head = xchg(&q->control->head, LITE_INBOX_CLOSED);
	u64 left = q->tail - head;

	return left < q->entries ? left : q->entries;
}
