/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: requests taken in place; a part of the ABI of /dev/liteN (lite_rpc.h).
 *
 * A process that serves a function may have an inbox for it: a queue in memory
 * that it shares with the kernel, and the rings of the function's clients, which
 * it may read. The kernel puts requests into the queue; the process takes them
 * without a call, reads them where they are, and gives them back: by an answer,
 * or, if it was a message, by saying that it is done. Until then nobody writes
 * there, whatever becomes of the caller.
 *
 * errno values are those of lite_rpc.h; and
 *
 * DOC: errno values of inboxes
 *
 * ====================  ======================================================
 * EBUSY                 this open file has an inbox for that function
 * EACCES                the process does not act as the owner of the function
 * EOPNOTSUPP            its requests or replies may have more than
 *                       LITE_RPC_BYTES_MAX bytes, and are not in the rings then
 * ENOENT                INBOX: this file has not registered that function; NEXT:
 *                       it has no inbox for it (any more), or has taken no
 *                       request of that token (any more)
 * ETIMEDOUT, EINTR      NEXT: nothing came in time; a signal that has a handler did
 * ENOMEM                the kernel is out of memory, or the process of addresses
 * ====================  ======================================================
 */
#ifndef _UAPI_LITE_INBOX_H
#define _UAPI_LITE_INBOX_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Requests that a process may have in an inbox, or have taken from it. */
#define LITE_INBOX_DEPTH_MAX 256
#define LITE_INBOX_DEPTH_DEFAULT 32

/* In @head: the kernel has closed the inbox, and nothing can be taken from it. */
#define LITE_INBOX_CLOSED (1ULL << 63)

/* A request in an inbox. */
struct lite_inbox_entry {
	__aligned_u64 token;   /* to answer it, or to say that it is done */
	__aligned_u64 offset;  /* of its first byte, in the rings */
	__u32 length;
	__u32 node;            /* of the caller */
	__u32 uid;             /* of the caller, effective */
	__u32 gid;
	__u32 flags;           /* LITE_RPC_REQ_* */
	__u32 reply_room;      /* what the caller has room for */
	__aligned_u64 reserved[3];
};

/*
 * What process and kernel share: this, and behind it struct lite_inbox_entry[].
 * Entries @head to @tail wait to be taken;
 * number n is at n % @entries.
 *
 * The kernel writes an entry, then @tail (a release). The process reads @tail (an
 * acquire), copies the entry, and takes it by changing @head from n to n + 1, in
 * one atomic operation (a release) that fails if it is not n any more: so threads,
 * and the kernel, who closes the inbox by changing @head, get along.
 *
 * The kernel does not rely on anything in here.
 */
struct lite_inbox_control {
	__aligned_u64 tail;
	__aligned_u64 reserved[7];
	__aligned_u64 head;
	__aligned_u64 reserved2[7];
};

/*
 * LITE_IOC_RPC_INBOX: have an inbox for a function that this open file has
 * registered. From then on requests go there, @depth of them at most that have
 * not been given back, if no thread waits for one in RECV, which still works.
 *
 * Two ranges are mapped, shared: @control, to be read and written, and @rings, to
 * be read. A byte of @rings is there for as long as the process has a request of
 * the ring that it is in, and may be for longer; else it is answered by SIGBUS.
 * Besides requests not given back there is nothing in there to be relied on. All
 * of @rings was written by callers of this function, or as replies to them, also
 * by others who serve it, who have the same owner.
 *
 * The inbox ends when both ranges are unmapped (munmap(2), execve(2), exit), and
 * when the function is unregistered, the file is closed, or the node is stopped:
 * requests that have not been taken then go to others who serve the function, or
 * are refused; those that have been can still be given back, unless the process
 * exited, or became another program: then their callers are told (ECONNRESET),
 * whoever has the file open. When it was unmapped they are there to be answered,
 * but for those whose callers have given up (ENOENT), or do so before they are.
 * Children do not have it. It is not in core dumps.
 */
struct lite_ioc_rpc_inbox {
	__u32 size;
	__u32 flags;           /* 0 */
	__u32 function;
	__u32 depth;           /* 1..LITE_INBOX_DEPTH_MAX; 0: the default */
	__aligned_u64 control; /* out: address */
	__aligned_u64 rings;   /* out: address */
	__aligned_u64 control_bytes; /* out */
	__aligned_u64 rings_bytes;   /* out */
	__u32 entries;         /* out: a power of two */
	__u32 reserved;
};

/* Requests that one NEXT can give back besides the one it answers. */
#define LITE_INBOX_DONE_MAX 16

/*
 * LITE_IOC_RPC_NEXT: give requests back, and wait for the next one to be taken.
 *
 * First @done are given back; a call among them is one that nobody answers
 * (ECONNRESET). ENOENT: one of them was no such request; all others were given
 * back, @token is answered all the same, and NEXT does not wait.
 *
 * With LITE_RPC_REPLY, @token is answered then, as by RECV; a message can be, too,
 * but by nothing, and nobody is told of it. If that fails the request is still
 * there, but for ENOENT, and NEXT does not wait. @answered comes back as 1 when it
 * was answered, whatever came afterwards.
 *
 * Then, without LITE_RPC_NOWAIT, it waits until @tail is not @seen any more.
 */
struct lite_ioc_rpc_next {
	__u32 size;
	__u32 flags;           /* LITE_RPC_NOWAIT, REPLY */
	__aligned_u64 token;
	__aligned_u64 reply;   /* user address; may be in the rings */
	__u32 reply_len;
	__u32 status;
	__aligned_u64 seen;
	__u32 function;
	__s32 timeout_ms;      /* see lite.h */
	__u32 answered;        /* out */
	__u32 n_done;          /* 0..LITE_INBOX_DONE_MAX */
	__aligned_u64 done[LITE_INBOX_DONE_MAX]; /* tokens */
};

#define LITE_IOC_RPC_INBOX _IO(0xE7, 0x18)
#define LITE_IOC_RPC_NEXT _IO(0xE7, 0x19)

#endif /* _UAPI_LITE_INBOX_H */
