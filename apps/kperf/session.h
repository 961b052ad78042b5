/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _KPERF_SESSION_H
#define _KPERF_SESSION_H

#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/types.h>

#include "kperf.h"

/* Bytes of the largest piece that is physically contiguous on every kernel. */
#define KPERF_CHUNK SZ_4M
#define KPERF_BYTES_MAX SZ_256M
#define KPERF_WINDOW_MAX 64
/* Limit of calls in a KPERF_RUN with @samples. */
#define KPERF_SAMPLES_MAX SZ_1M

struct kperf_session;

/**
 * struct kperf_arm_ops - operations of an arm
 * @connect: connect as KPERF_CONNECT asks; the local memory is allocated
 * @call: make one request, from or to the first chunk's start, and wait; @old: set by a fetch-add
 * @stream: make requests with a window; sets @done and @elapsed of @run. NULL: not supported
 * @disconnect: undo connect(); no request is in flight
 */
struct kperf_arm_ops {
	int (*connect)(struct kperf_session *s, const struct kperf_connect *c);
	int (*call)(struct kperf_session *s, u32 op, u32 length, u64 *old);
	int (*stream)(struct kperf_session *s, struct kperf_run *run);
	void (*disconnect)(struct kperf_session *s);
};

/**
 * struct kperf_session - an open file
 * @lock: held during ioctls
 * @ops: of the arm; NULL: not connected
 * @arm: private data of the arm
 * @bytes: size of the regions
 * @chunk: local memory, in pieces of @chunk_size
 * @chunk_size: bytes, a power of two of pages
 * @n_chunks: pieces of @chunk
 */
struct kperf_session {
	struct mutex lock;
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
