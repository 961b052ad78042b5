/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * Interface between lite-perf and kperf.ko, its arms in the kernel. Not stable: both are built from
 * the same sources.
 *
 * A file of /dev/kperf is one connection: KPERF_CONNECT once, then KPERF_RUN.
 */
#ifndef KPERF_H
#define KPERF_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KPERF_VERSION 1
#define KPERF_DEVICE "kperf"

/* Start of lite-perf's protocol, in the private data of RDMA CM. */
#define KPERF_MAGIC 0x4650544c /* "LTPF" */
#define KPERF_PROTOCOL 2

/**
 * struct kperf_hello - a client's request to "lite-perf serve"
 * @magic: KPERF_MAGIC
 * @version: KPERF_PROTOCOL
 * @bytes: size of a region
 * @regions: number of regions, each registered separately
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
 * struct kperf_grant - the server's answer
 * @hello: as requested
 * @address: of the region; if there are several, of a table of struct kperf_region
 * @rkey: for @address
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
 * RAW: verbs in the kernel, busy polling. EVENTS: the same with completions in softirq context, for
 * windows. LITE: include/lite/kapi.h. NOTHING: no request, to show the cost of timing.
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
 * @window: EVENTS: most requests in flight
 * @reserved: 0
 * @bytes: size of the regions, local and remote
 * @server: RAW, EVENTS: struct sockaddr_in or sockaddr_in6 of "lite-perf serve"
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
 * @window: requests in flight; more than 1 for EVENTS only
 * @warm_up: requests made before, one at a time, which do not count; ignored with a larger window
 * @calls: limit of requests, at least 1
 * @ns: time in ns after which no further request begins
 * @samples: with a window of 1: array of @calls __u32, for the time of each in ns; 0: none
 * @data: if not 0, @length bytes to write, or buffer for the bytes read
 * @done: set: requests completed
 * @elapsed: set: time for them in ns
 * @old: set: old value of the last fetch-add
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
