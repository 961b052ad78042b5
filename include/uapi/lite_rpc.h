/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: remote calls and messages; a part of the ABI of /dev/liteN (lite.h).
 *
 * A function is a number on a node, with a name if it wants one. A process
 * registers it, and takes requests and answers them through the open file by
 * which it did; others, on any node, call it by node and number. What an open
 * file has registered, taken and not yet collected ends with it.
 *
 * A call is made at most once, whatever happens. When it fails, the errno says
 * what is known of it:
 *
 * DOC: errno values of calls, one meaning each
 *
 * ====================  ======================================================
 * ECONNREFUSED          nobody serves that function on that node; the request
 *                       was seen by nobody
 * EACCES                the function's mode refuses the caller
 * E2BIG                 the request is larger than the function takes
 * EMSGSIZE              the reply is larger than the caller's room; it is lost,
 *                       and @reply_len says how large it was. RECV: the
 *                       request is larger than the buffer; it is still there
 * ECONNRESET            the process that had taken the request is gone, or let
 *                       go of it without an answer
 * EHOSTDOWN             the node is down, or the connection with it broke while
 *                       the call was under way
 * EHOSTUNREACH          no node of that id in this cluster
 * ETIMEDOUT             no reply in time; RECV, COLLECT: nothing came in time.
 *                       Unless ECONNREFUSED or EAGAIN said otherwise, a call
 *                       that failed may have been served
 * EINTR                 a signal that kills the caller arrived; RECV, COLLECT: any
 *                       that has a handler, or stops the caller for a while
 * EAGAIN                NOWAIT: it would have had to wait: for room in the ring
 *                       of the function, for a request, for a call to end
 * ENOBUFS               the server's node, or this one, has no memory left for
 *                       rings, or for those of that function's owner
 * ENOMEM                no memory, or this node gives no more to long requests and
 *                       replies, or not to that user
 * EEXIST                REGISTER: the number or the name is taken
 * EPERM                 REGISTER: that number is root's
 * ENOENT                RECV, UNREGISTER: this file has not registered that
 *                       function; REPLY: it has no such request (any more);
 *                       COLLECT: no call is under way
 * EMFILE                more functions, or calls under way, than an open file
 *                       may have, or have found, or functions than a node, or a user, may
 * EINVAL                a malformed argument
 * ====================  ======================================================
 */
#ifndef _UAPI_LITE_RPC_H
#define _UAPI_LITE_RPC_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Functions are 1..LITE_FUNCTION_MAX; up to LITE_FUNCTION_ROOT_MAX root's. */
#define LITE_FUNCTION_MAX 65535
#define LITE_FUNCTION_ROOT_MAX 1023

/* Longest name of a function, and the size of a field that holds it. */
#define LITE_FUNCTION_NAME_MAX 63
#define LITE_FUNCTION_NAME_SIZE 64

/*
 * Most bytes of a request, and of a reply, that go through the ring; and most at
 * all. Longer ones go by reference: the kernels keep them in memory of their own,
 * which is charged to the callers and servers, while the call is under way.
 */
#define LITE_RPC_BYTES_MAX 65536
#define LITE_RPC_BULK_MAX (64U << 20)

/*
 * Of the ring that every client node gets: bytes for requests under way and the
 * room for their replies. 0 means the default.
 */
#define LITE_RPC_RING_MIN 4096
#define LITE_RPC_RING_MAX (1U << 20)
#define LITE_RPC_RING_DEFAULT (128U << 10)

/* Calls that one node may have under way to one function, if the ring has room. */
#define LITE_RPC_DEPTH 64

/* Functions that one open file may have registered. */
#define LITE_RPC_FUNCTIONS_MAX 16
/* Calls that one open file may have under way, or not collected. */
#define LITE_RPC_ASYNC_MAX 1024

#define LITE_RPC_TIMEOUT_DEFAULT 5000       /* ms: LITE_TIMEOUT_DEFAULT of calls */

/* LITE_IOC_RPC_REGISTER flags */
#define LITE_RPC_SHARED (1U << 0) /* other files of this user may serve it, too */

/*
 * LITE_IOC_RPC_REGISTER: serve a function from now on, by RECV and REPLY.
 *
 * @mode is like that of a Unix socket: a user to whom it gives the permission to
 * write may call. The owner is the caller's effective uid and gid. SHARED registers
 * the function, or joins it if it is there: by its number, or, with @function 0, by
 * its name. It must have been registered as SHARED by the same user, with the same
 * values (EEXIST else). Each request is then taken by one of the files that serve
 * it. It ends when the last of them lets go of it.
 */
struct lite_ioc_rpc_register {
	__u32 size;
	__u32 flags;           /* LITE_RPC_SHARED */
	__u32 function;        /* in/out; in 0: any from 32768 on, or see SHARED */
	__u32 mode;            /* bits 0666 */
	__u32 max_request;     /* bytes, 0..LITE_RPC_BULK_MAX */
	__u32 max_reply;       /* bytes, 0..LITE_RPC_BULK_MAX */
	__u32 ring_size;       /* bytes, or 0 */
	__u32 reserved;
	char name[LITE_FUNCTION_NAME_SIZE]; /* empty: none */
};

/*
 * LITE_IOC_RPC_UNREGISTER: serve it no more. Requests that this file has taken
 * may still be answered; if nobody else serves it, those that wait are refused.
 */
struct lite_ioc_rpc_unregister {
	__u32 size;
	__u32 flags;           /* 0 */
	__u32 function;
	__u32 reserved;
};

/*
 * LITE_IOC_RPC_FIND: what a node serves under a name, or a number if the name is
 * empty. Needs no permission.
 *
 * What this open file has found by name it calls by number then, as long as that is
 * the same registration: if the function has ended, and the number is another's, calls
 * fail with ECONNREFUSED until it is found anew. A number that was not found by name is
 * called whatever has it. EMFILE: it has found 262144 already.
 */
struct lite_ioc_rpc_find {
	__u32 size;
	__u32 flags;           /* 0 */
	__u32 node;            /* 0: this one */
	__u32 function;        /* in/out */
	__u32 uid;             /* out: owner */
	__u32 gid;             /* out */
	__u32 mode;            /* out */
	__u32 max_request;     /* out */
	__u32 max_reply;       /* out */
	__u32 reserved;
	char name[LITE_FUNCTION_NAME_SIZE];
};

/* LITE_IOC_RPC_CALL flags */
#define LITE_RPC_NOWAIT (1U << 0) /* as LITE_NOWAIT, with a time-out for the reply */
#define LITE_RPC_ONEWAY (1U << 1) /* a message: there is no reply */
#define LITE_RPC_ASYNC (1U << 2)  /* the reply is fetched by COLLECT */
#define LITE_RPC_QUEUE (1U << 3)  /* ASYNC: sending the request is not waited for */

/*
 * LITE_IOC_RPC_CALL: call a function.
 *
 * A call waits in line for room in the ring of (this node, that function), then
 * for the reply, for @timeout_ms altogether; a signal that kills ends it early.
 * The reply is in @reply when it returns 0, its length in @reply_len, and what
 * the server said of it in @status.
 *
 * If the function may reply with more than LITE_RPC_BYTES_MAX bytes, memory for
 * @reply_room bytes, or the function's @max_reply if that is less, is taken for
 * the time of the call (ENOMEM): who expects less does well to say so.
 *
 * ONEWAY: it returns 0 when the message is on its way; what becomes of it nobody
 * says. It takes its place in the ring until a server takes it.
 *
 * ASYNC: it returns 0 when the request is on its way; COLLECT tells the rest,
 * and gives back @cookie. Calls of one @group are collected together, apart from
 * those of others. Those of group 0 are what poll(2) tells of; others end with the
 * process that began them. @reply is only used by INTO, see COLLECT.
 *
 * QUEUE: ASYNC waits for nobody. What cannot be sent at once, for want of room,
 * because the ring is not there yet or because the node is suspect, is copied and
 * sent when it can be; if it cannot be, that is an errno of COLLECT's @error.
 */
struct lite_ioc_rpc_call {
	__u32 size;
	__u32 flags;
	__u32 node;            /* 0: this one */
	__u32 function;
	__aligned_u64 request; /* user address */
	__aligned_u64 reply;   /* user address */
	__u32 request_len;
	__u32 reply_room;
	__u32 reply_len;       /* out, also with EMSGSIZE */
	__u32 status;          /* out */
	__s32 timeout_ms;      /* see lite.h */
	__u32 group;           /* ASYNC */
	__aligned_u64 cookie;  /* ASYNC */
};

/* LITE_IOC_RPC_COLLECT flags */
#define LITE_RPC_INTO (1U << 1)   /* the reply goes to where its CALL said */
#define LITE_RPC_CANCEL (1U << 2) /* end all of the group */

/*
 * LITE_IOC_RPC_COLLECT: one call of a group made with ASYNC that has ended, in the
 * order of their ends; waits for one, if need be. The errno of the call is in
 * @error; that of the ioctl is about collecting. EMSGSIZE: the reply is larger than
 * @reply_room, it is @reply_len; the call is still there to be collected, as it
 * is after EFAULT. A call that ends with ECONNREFUSED is not tried again.
 *
 * INTO: the reply goes to the @reply of the CALL, not of this; if it cannot be
 * written there, that is the end of the call, and EFAULT its @error.
 *
 * CANCEL: those calls of the group that are under way or have ended are collected
 * by nobody any more; they may have been, or be yet, served. It waits for nothing.
 */
struct lite_ioc_rpc_collect {
	__u32 size;
	__u32 flags;           /* LITE_RPC_NOWAIT, INTO, CANCEL */
	__aligned_u64 reply;   /* user address */
	__u32 reply_room;
	__u32 reply_len;       /* out */
	__s32 timeout_ms;      /* see lite.h */
	__s32 error;           /* out: errno of the call, negative, or 0 */
	__u32 status;          /* out */
	__u32 node;            /* out */
	__u32 function;        /* out */
	__u32 group;
	__aligned_u64 cookie;  /* out */
};

/* LITE_IOC_RPC_RECV flags */
#define LITE_RPC_REPLY (1U << 1)      /* first answer @token */
#define LITE_RPC_REPLY_ONLY (1U << 2) /* answer @token, and that is all */
#define LITE_RPC_DROP (1U << 3)       /* with one of these: give it back unanswered */

/* Flags of a request */
#define LITE_RPC_REQ_ONEWAY (1U << 0) /* no answer is wanted: it has none */

/*
 * LITE_IOC_RPC_RECV: answer a request, take the next one, or both in one call.
 *
 * With REPLY or REPLY_ONLY, @token is answered first, by @reply_len bytes at
 * @reply and @status, an application's number for the caller. A reply that
 * cannot be given because the caller is gone is given to nobody, and that is no
 * error. ENOENT, EFAULT, E2BIG (longer than the function's @max_reply) are:
 * nothing was received then, and but for ENOENT the request is still there to be
 * answered. With REPLY, that there is no such request any more, because its caller
 * has given up, is no error: @answered is 0 then. With ENOMEM a reply is as not
 * given, and a long request is still there to be taken.
 *
 * With DROP, too, there is no reply (@reply_len is 0): the caller gets ECONNRESET at
 * once.
 *
 * Then a request for @function (0: any that this file has registered) is taken,
 * and waited for if need be. It is to be answered through this open file. If its
 * process exits first, or becomes a program that does not have it (execve(2)), or
 * the file is closed, the caller is told (ECONNRESET); not if the process closes
 * its descriptors while others have the file open. A request with LITE_RPC_REQ_ONEWAY has token 0.
 *
 * @answered comes back as 1 when the answer was given, also when then nothing
 * was received (ETIMEDOUT, EAGAIN, EINTR, EMSGSIZE, ENOENT).
 */
struct lite_ioc_rpc_recv {
	__u32 size;
	__u32 flags;           /* LITE_RPC_NOWAIT, REPLY, REPLY_ONLY, DROP */
	__aligned_u64 token;   /* in: to answer; out: taken */
	__aligned_u64 reply;   /* user address */
	__u32 reply_len;
	__u32 status;
	__aligned_u64 buf;     /* user address, for the request */
	__u32 buf_len;
	__s32 timeout_ms;      /* see lite.h */
	__u32 function;        /* in: 0 or one; out */
	__u32 length;          /* out: of the request */
	__u32 node;            /* out: of the caller */
	__u32 uid;             /* out: of the caller, effective */
	__u32 gid;             /* out */
	__u32 req_flags;       /* out: LITE_RPC_REQ_* */
	__u32 reply_room;      /* out: what the caller has room for */
	__u32 answered;        /* out */
};

#define LITE_IOC_RPC_REGISTER _IO(0xE7, 0x10)
#define LITE_IOC_RPC_UNREGISTER _IO(0xE7, 0x11)
#define LITE_IOC_RPC_FIND _IO(0xE7, 0x12)
#define LITE_IOC_RPC_CALL _IO(0xE7, 0x13)
#define LITE_IOC_RPC_COLLECT _IO(0xE7, 0x14)
#define LITE_IOC_RPC_RECV _IO(0xE7, 0x15)
/* 0x16 (a call to several nodes), 0x18 and 0x19 (INBOX, NEXT) are not used again. */

#endif /* _UAPI_LITE_RPC_H */
