/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * Between lite-perf and kperf.ko, its arms in the kernel. No stable interface:
 * both are built from the same sources.
 *
 * A file of /dev/kperf is one connection: KPERF_CONNECT once, then KPERF_RUN.
 */
#ifndef KPERF_H
#define KPERF_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KPERF_VERSION 1
#define KPERF_DEVICE "kperf"

/* First bytes of lite-perf's protocol, as private data of RDMA CM. */
#define KPERF_MAGIC 0x4650544c /* "LTPF" */
#define KPERF_PROTOCOL 2

/**
 * struct kperf_hello - what a client wants of "lite-perf serve"
 * @magic: KPERF_MAGIC
 * @version: KPERF_PROTOCOL
 * @bytes: size of a region
 * @regions: how many, each registered by itself
 * @reserved: 0
 */
struct kperf_hello {
	__u32 magic;
	__u32 version;
	__u64 bytes;
	__u32 regions;
	__u32 reserved;
};

/**
 * struct kperf_grant - what it gets
 * @hello: as wanted
 * @address: of the region; of several: of a table of struct kperf_region
 * @rkey: likewise
 * @reserved: 0
 */
struct kperf_grant {
	struct kperf_hello hello;
	__u64 address;
	__u32 rkey;
	__u32 reserved;
};

struct kperf_region {
	__u64 address;
	__u32 rkey;
	__u32 reserved;
};

/*
 * RAW: verbs in the kernel, busy polling. EVENTS: the same, completions handled
 * in softirq context, for windows. LITE: include/lite/kapi.h. NOTHING: no request
 * at all, so that one can see what timing costs.
 */
enum kperf_arm {
	KPERF_RAW = 1,
	KPERF_EVENTS = 2,
	KPERF_LITE = 3,
	KPERF_NOTHING = 4,
};

/**
 * struct kperf_connect - KPERF_CONNECT
 * @version: KPERF_VERSION
 * @arm: enum kperf_arm
 * @index: LITE: the N of /dev/liteN
 * @node: LITE: node to allocate on
 * @window: EVENTS: most requests under way
 * @reserved: 0
 * @bytes: of the regions, local and remote
 * @server: others: struct sockaddr_in or sockaddr_in6 of "lite-perf serve"
 */
struct kperf_connect {
	__u32 version;
	__u32 arm;
	__u32 index;
	__u32 node;
	__u32 window;
	__u32 reserved;
	__aligned_u64 bytes;
	__u8 server[32];
};

enum kperf_op {
	KPERF_READ = 1,
	KPERF_WRITE = 2,
	KPERF_FETCH_ADD = 3,
};

/**
 * struct kperf_run - KPERF_RUN
 * @op: enum kperf_op
 * @length: bytes of a request
 * @window: requests under way; EVENTS only: more than 1
 * @warm_up: requests before, not counted; with a window of 1
 * @calls: requests, at most (and one at least)
 * @ns: time after which no further one begins
 * @samples: window of 1: array for the time of each call, in ns, as __u32, of
 *	@calls entries; 0: none
 * @data: if not 0: @length bytes to be written, or where what was read goes to
 * @done: set: requests completed
 * @elapsed: set: in so many ns
 * @old: set: what the last fetch-add found
 */
struct kperf_run {
	__u32 op;
	__u32 length;
	__u32 window;
	__u32 warm_up;
	__aligned_u64 calls;
	__aligned_u64 ns;
	__aligned_u64 samples;
	__aligned_u64 data;
	__aligned_u64 done;
	__aligned_u64 elapsed;
	__aligned_u64 old;
};

#define KPERF_CONNECT _IOW('P', 0xe0, struct kperf_connect)
#define KPERF_RUN _IOWR('P', 0xe1, struct kperf_run)

#endif /* KPERF_H */
