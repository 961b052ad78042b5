/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _KPERF_SESSION_H
#define _KPERF_SESSION_H

#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/types.h>

#include "kperf.h"

/* Most of what is physically contiguous on every kernel. */
#define KPERF_CHUNK SZ_4M
#define KPERF_BYTES_MAX SZ_256M
#define KPERF_WINDOW_MAX 64
/* Of one KPERF_RUN that wants to know the time of each. */
#define KPERF_SAMPLES_MAX SZ_1M

struct kperf_session;

/**
 * struct kperf_arm_ops - what an arm can do
 * @connect: with what KPERF_CONNECT says; the local memory is there
 * @call: one request, from and to the beginning of the first chunk, complete
 *	on return; @old: of a fetch-add
 * @stream: requests with a window, into @done and @elapsed of @run; NULL:
 *	cannot
 * @disconnect: undo connect(); nothing is under way
 */
struct kperf_arm_ops {
	int (*connect)(struct kperf_session *s, const struct kperf_connect *c);
	int (*call)(struct kperf_session *s, u32 op, u32 length, u64 *old);
	int (*stream)(struct kperf_session *s, struct kperf_run *run);
	void (*disconnect)(struct kperf_session *s);
};

/**
 * struct kperf_session - an open file
 * @lock: held by the call
 * @ops: of the arm; NULL: not connected
 * @arm: the arm's own
 * @bytes: size of the regions
 * @chunk: local memory, in pieces of @chunk_size
 * @chunk_size: bytes, a power of two of pages
 * @n_chunks: of @chunk
 */
struct kperf_session {
	struct mutex lock; /* one call at a time */
	const struct kperf_arm_ops *ops;
	void *arm;
	u64 bytes;
	void **chunk;
	u32 chunk_size;
	u32 n_chunks;
};

extern const struct kperf_arm_ops kperf_raw_ops, kperf_events_ops;
extern const struct kperf_arm_ops kperf_lite_ops;

#endif /* _KPERF_SESSION_H */
