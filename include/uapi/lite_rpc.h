/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: remote calls and messages; a part of the ABI of /dev/liteN (lite.h).
 *
 * A function is a number on a node, with an optional name. A process registers it, and takes and
 * answers requests through the open file with which it did so. Processes on any node call it by
 * node and number. Closing the file ends its functions, the requests that it has taken and the
 * calls that it has begun.
 *
 * A call is carried out at most once. If it fails, the errno tells what is known of it:
 *
 * DOC: errno values of calls, one meaning each
 *
 * ====================  ======================================================
 * ECONNREFUSED          no process of that node serves the function; no process has
 *                       seen the request
 * EACCES                the function's mode refuses the caller
 * E2BIG                 the request is larger than the function takes
 * EMSGSIZE              the reply is larger than the caller's room; it is lost,
 *                       and @reply_len says how large it was. RECV: the
 *                       request is larger than the buffer; it is still there
 * ECONNRESET            the process that had taken the request has ended, or gave
 *                       it back without an answer
 * EHOSTDOWN             the node is down, or the connection with it broke while
 *                       the call was under way
 * EHOSTUNREACH          no node with that id in this cluster
 * ETIMEDOUT             no reply in time; RECV, COLLECT: nothing came in time.
 *                       A call that failed may have been served, except with
 *                       ECONNREFUSED and EAGAIN
 * EINTR                 a fatal signal arrived; RECV, COLLECT: any signal that has a
 *                       handler or stops the process
 * EAGAIN                NOWAIT, and the caller would have to wait: for room in the function's
 *                       ring, for a request, for the end of a call
 * ENOBUFS               the server's node or this one has no memory left for rings,
 *                       or none for the rings of the function's owner
 * ENOMEM                no memory; or the limit of the node, or of this user, for
 *                       long requests and replies is reached
 * EEXIST                REGISTER: the number or the name is taken
 * EPERM                 REGISTER: that number is root's
 * ENOENT                RECV, UNREGISTER: this file has not registered that
 *                       function; REPLY: it has no such request, or no longer;
 *                       COLLECT: no call is in flight
 * EMFILE                too many functions registered (by this file, by this user, on
 *                       this node), functions found, or calls in flight (of this file)
 * EINVAL                a malformed argument
 * ====================  ======================================================
 */
#ifndef _UAPI_LITE_RPC_H
#define _UAPI_LITE_RPC_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Functions are 1..LITE_FUNCTION_MAX; only root may register those up to LITE_FUNCTION_ROOT_MAX. */
#define LITE_FUNCTION_MAX 65535
#define LITE_FUNCTION_ROOT_MAX 1023

/* Longest name of a function, and the size of a field that holds it. */
#define LITE_FUNCTION_NAME_MAX 63
#define LITE_FUNCTION_NAME_SIZE 64

/*
 * Bytes of a request or a reply: at most BYTES_MAX go through the ring. Longer ones, of at most
 * BULK_MAX, go by reference: during the call, the kernels keep them in memory that is charged to
 * the callers and servers.
 */
#define LITE_RPC_BYTES_MAX 65536
#define LITE_RPC_BULK_MAX (64U << 20)

/*
 * Bytes of a function's ring, of which each client node has one, for the requests in flight and
 * their replies: MIN..MAX (otherwise: EINVAL). 0: room for 16 of the longest, but at least DEFAULT
 * and at most MAX; if one of the two nodes has many rings already, only DEFAULT, or room for three
 * of the longest if that is more. The size is rounded up to whole chunks, each with room for at
 * least one of the longest.
 */
#define LITE_RPC_RING_MIN 4096
#define LITE_RPC_RING_MAX (1U << 20)
#define LITE_RPC_RING_DEFAULT (128U << 10)

/* Most calls of one node to one function in flight; fewer if the ring has no room. */
#define LITE_RPC_DEPTH 64

/* Functions that one open file may have registered. */
#define LITE_RPC_FUNCTIONS_MAX 16
/* Calls of one open file that are in flight or not yet collected. */
#define LITE_RPC_ASYNC_MAX 1024

#define LITE_RPC_TIMEOUT_DEFAULT 5000       /* ms: LITE_TIMEOUT_DEFAULT of calls */

/* LITE_IOC_RPC_REGISTER flags */
#define LITE_RPC_SHARED (1U << 0) /* other open files of this user may serve it, too */

/*
 * LITE_IOC_RPC_REGISTER: serve a function, with RECV and REPLY.
 *
 * @mode is like that of a Unix socket: users with write permission may call. The owner is the
 * caller's effective uid and gid. SHARED registers the function, or joins those that serve it if it
 * exists; it is looked up by number or, with @function 0, by name. It must have been registered as
 * SHARED by the same user, with the same values (otherwise EEXIST). Each request is taken by one of
 * the files that serve the function. The function ends when the last of these files unregisters it
 * or is closed.
 */
struct lite_ioc_rpc_register {
	__u32 size;
	__u32 flags;           /* LITE_RPC_SHARED */
	__u32 function;        /* in/out; 0: any free one from 32768 on, or see SHARED */
	__u32 mode;            /* bits 0666 */
	__u32 max_request;     /* bytes, 0..LITE_RPC_BULK_MAX */
	__u32 max_reply;       /* bytes, 0..LITE_RPC_BULK_MAX */
	__u32 ring_size;       /* bytes, or 0 */
	__u32 reserved;
	char name[LITE_FUNCTION_NAME_SIZE]; /* empty: none */
};

/*
 * LITE_IOC_RPC_UNREGISTER: stop serving a function. Requests that this file has taken may still be
 * answered. If no other file serves the function, waiting requests are refused.
 */
struct lite_ioc_rpc_unregister {
	__u32 size;
	__u32 flags;           /* 0 */
	__u32 function;
	__u32 reserved;
};

/*
 * LITE_IOC_RPC_FIND: the function that a node serves under a name, or under a number if the name is
 * empty. Needs no permission.
 *
 * After a function was found by name, calls of this open file to its number are for that
 * registration only: if the function has ended and another one has the number, they fail with
 * ECONNREFUSED until the name is found again. Calls to other numbers go to whichever function has
 * them. EMFILE: this file has already found 262144 functions; one of this node counts twice if
 * @node was its id.
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
#define LITE_RPC_NOWAIT (1U << 0) /* do not wait for room; @timeout_ms is for the reply */
#define LITE_RPC_ONEWAY (1U << 1) /* a message: there is no reply */
#define LITE_RPC_ASYNC (1U << 2)  /* the reply is fetched by COLLECT */
#define LITE_RPC_QUEUE (1U << 3)  /* ASYNC: do not wait until the request is sent */

/*
 * LITE_IOC_RPC_CALL: call a function.
 *
 * The caller waits for its turn to get room in the ring that this node has for the function, then
 * for the reply; for @timeout_ms in all, or until a fatal signal. On success the reply is at
 * @reply, its length in @reply_len, and the server's number in @status.
 *
 * If the function may reply with more than LITE_RPC_BYTES_MAX bytes, the call takes memory (ENOMEM)
 * for @reply_room bytes, or for the function's @max_reply if that is less. So a caller that expects
 * a short reply should pass a small @reply_room.
 *
 * ONEWAY: returns 0 when the message is sent. Whether it is served is not reported. It keeps its
 * room in the ring until a server takes it.
 *
 * ASYNC: returns 0 when the request is sent; COLLECT reports the outcome, with @cookie. The calls
 * of a @group are collected apart from those of other groups. poll(2) reports only those of group
 * 0. Calls of other groups end with the process that began them. Groups from 2^31 on are those of
 * liblite (lite_rpc_multicall()). @reply is only used by COLLECT with INTO.
 *
 * QUEUE: with this, ASYNC does not wait at all. A request that cannot be sent at once (no room, no
 * ring yet, a suspect node) is copied, and sent when possible. If that fails, COLLECT's @error has
 * the errno.
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
#define LITE_RPC_INTO (1U << 1)   /* the reply goes to the @reply of the CALL */
#define LITE_RPC_CANCEL (1U << 2) /* end all calls of the group */

/*
 * LITE_IOC_RPC_COLLECT: fetch the outcome of one ASYNC call of a group, in the order in which the
 * calls end; wait for one if necessary. @error is the errno of the call; the errno of the ioctl
 * itself is about collecting. EMSGSIZE: the reply has @reply_len bytes, more than @reply_room.
 * After EMSGSIZE and EFAULT the call can still be collected. The kernel does not repeat a call that
 * ends with ECONNREFUSED.
 *
 * INTO: the reply goes to the @reply of the CALL instead of this one. If it cannot be written
 * there, or another process (the parent, after a fork) began the call, the call ends with EFAULT in
 * @error.
 *
 * CANCEL: forget the calls of the group, ended or in flight. They may have been served, or may
 * still be. Does not wait.
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
#define LITE_RPC_REPLY_ONLY (1U << 2) /* only answer @token */
#define LITE_RPC_DROP (1U << 3)       /* with one of these: give @token back unanswered */

/* Flags of a request */
#define LITE_RPC_REQ_ONEWAY (1U << 0) /* a message: it is not answered */

/*
 * LITE_IOC_RPC_RECV: answer a request, take the next one, or both in one call.
 *
 * REPLY and REPLY_ONLY first answer @token with @reply_len bytes at @reply and with @status, a
 * number that the application chooses. If answering fails with EFAULT, E2BIG (longer than the
 * function's @max_reply) or ENOMEM, nothing is taken, and the request can still be answered. If
 * there is no such request (its caller may have given up), REPLY_ONLY fails with ENOENT; REPLY goes
 * on, and sets @answered to 0. A caller that gives up while it is being answered is no error.
 *
 * DROP gives the request back without a reply (@reply_len must be 0): the caller gets ECONNRESET at
 * once.
 *
 * Then a request for @function (0: for any that this file has registered) is taken; RECV waits for
 * one if necessary. After ENOMEM a long request can still be taken. The request must be answered
 * through this open file. The caller gets ECONNRESET if the process that took it, or that last
 * tried to answer it, exits first or loses the file by execve(2), or if the file is closed; but not
 * if the process merely closes its descriptors while others have the file open. A request with
 * LITE_RPC_REQ_ONEWAY has token 0.
 *
 * @answered is set to 1 if the answer was given, even if nothing was taken afterwards (ETIMEDOUT,
 * EAGAIN, EINTR, EMSGSIZE, ENOENT).
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
/* Not to be used again: 0x16 (a call to several nodes), 0x18 and 0x19 (INBOX, NEXT). */

#endif /* _UAPI_LITE_RPC_H */
