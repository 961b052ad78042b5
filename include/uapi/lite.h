/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: the ABI of /dev/liteN.
 *
 * A process opens /dev/liteN, N being the index of a LITE node on this machine
 * (usually 0), and calls ioctl(2) on it. Every structure starts with @size,
 * which the caller sets to sizeof() of the structure it was compiled with; the
 * kernel accepts a shorter one, down to that of the first published version,
 * and a longer one if the excess is zero. Flags and reserved fields must be
 * zero unless a bit is defined here.
 *
 * A file that is open for reading only (O_RDONLY) allows QUERY, STAT, LIST,
 * GRANTS, RPC_FIND, PRIORITY, MAP with LITE_RIGHT_READ alone, and what a handle
 * with only that right allows. Everything else fails with EACCES.
 *
 * Handles (lh) belong to the open file that obtained them. They mean nothing in
 * another open file, are shared with children that inherit the descriptor, and
 * are closed with the last descriptor of the file.
 *
 * DOC: errno values, one meaning each
 *
 * ====================  ======================================================
 * EBADF                 no handle of this open file, or already unmapped
 * EIDRM                 the LMR behind the handle was freed
 * ESTALE                the node that kept the LMR, or these bytes of it,
 *                       restarted and lost them; or it restarted during an
 *                       allocation
 * EACCES                the handle lacks the right, mode bits refuse it, or the
 *                       device was opened for reading only
 * EPERM                 the caller must be a master of the LMR: its owner,
 *                       root, or a user granted MASTER
 * ERANGE                offset + length is beyond the end of the LMR
 * EINVAL                a malformed argument: length or size of zero, a
 *                       misaligned atomic, a bad name, a short structure
 * E2BIG                 a structure longer than this kernel knows, with a
 *                       non-zero excess
 * EFAULT                a user buffer is not mapped, or not writable for a read
 *                       or for REGISTER
 * EOPNOTSUPP            unknown flag, opcode, or non-zero reserved field; or
 *                       the RDMA device or this kind of memory does not support
 *                       the operation
 * ENOTTY                unknown ioctl
 * ENAMETOOLONG          a name of more than LITE_NAME_MAX bytes
 * ENOENT                no LMR of that name
 * EEXIST                an LMR of that name exists
 * EHOSTUNREACH          no node of that id in this cluster
 * EHOSTDOWN             the node is known, but is down
 * EREMOTE               part of the range to mmap is in another node's memory
 * ENOTCONN              this node is in no cluster (it left, or is joining)
 * ENODEV                the node was stopped, or its RDMA device is gone
 * EFBIG                 larger than the largest possible LMR
 * ENOSPC                the memory that a node gives to LMRs is used up
 * EDQUOT                the memory that one uid may have in LMRs is used up;
 *                       for REGISTER also the user's RLIMIT_MEMLOCK
 * EMFILE                too many handles in this open file, or of this user
 * ENOMEM                the kernel is out of memory
 * ETIMEDOUT             a node did not answer in time; for allocation and free
 *                       this means "unknown", for transfers "not complete"
 * EINTR                 a signal that kills the caller arrived
 * EPROTO                a node answered with something malformed
 * EIO                   the RDMA device failed the operation
 * ====================  ======================================================
 */
#ifndef _UAPI_LITE_H
#define _UAPI_LITE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Version of the ABI. Longer structures and new ioctls do not change it; an
 * incompatible ABI does.
 */
#define LITE_UAPI_VERSION 2

/*
 * Time-outs are signed, in ms, and mean the same everywhere: from 1 to
 * LITE_TIMEOUT_MAX (a day), or one of these. Anything else is EINVAL.
 *
 *   LITE_NOWAIT           fail with EAGAIN (locks: EBUSY) instead of waiting. A
 *                         call does not wait for room in the ring, but waits
 *                         the default time for its reply. A join begins, and
 *                         has the default time
 *   LITE_FOREVER          no limit; a signal still ends the wait
 *   LITE_TIMEOUT_DEFAULT  LITE_RPC_TIMEOUT_DEFAULT for calls and messages,
 *                         LITE_JOIN_TIMEOUT_DEFAULT for joining, LITE_FOREVER
 *                         for everything else
 */
#define LITE_NOWAIT 0
#define LITE_FOREVER (-1)
#define LITE_TIMEOUT_DEFAULT (-2)
#define LITE_TIMEOUT_MAX 86400000

#define LITE_IOC_TYPE 0xE7

/*
 * Longest name in bytes, and the size of a field that holds it with its NUL. A
 * name has at least one byte, and none below 0x20 or equal to 0x7f. LITE does
 * not interpret the bytes.
 */
#define LITE_NAME_MAX 255
#define LITE_NAME_SIZE 256

/* Node ids are 1..LITE_NODE_ID_MAX; 0 means "this node" or "none". */
#define LITE_NODE_ID_MAX 65535

/* The most nodes that one LMR can be spread over. */
#define LITE_SPREAD_MAX 64

/* The largest LMR in bytes; node limits are usually far lower. */
#define LITE_LMR_SIZE_MAX (1ULL << 46)

/* Default port of a node's RDMA CM listener, numbered as TCP ports are. */
#define LITE_DEFAULT_PORT 18500

/*
 * Rights that a handle carries. The mode bits give READ (r bit), and WRITE and
 * ATOMIC (w bit); the owner also has SHARE and MASTER; root has everything;
 * grants (LITE_IOC_GRANT) add more.
 *
 *   SHARE   grant READ, WRITE and ATOMIC, as far as the grantor has them
 *   MASTER  do what the owner may: grant and revoke anything, free, rename,
 *           resize and move the LMR, change its mode
 *
 * A handle loses a right as soon as its user loses it. If the user gets the
 * right again, whether an old handle has it again is undefined.
 */
#define LITE_RIGHT_READ (1U << 0)
#define LITE_RIGHT_WRITE (1U << 1)
#define LITE_RIGHT_ATOMIC (1U << 2)
#define LITE_RIGHT_SHARE (1U << 3)
#define LITE_RIGHT_MASTER (1U << 4)
#define LITE_RIGHTS_ALL                                                        \
	(LITE_RIGHT_READ | LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC |              \
	 LITE_RIGHT_SHARE | LITE_RIGHT_MASTER)

/* Features reported by LITE_IOC_QUERY. */
#define LITE_FEATURE_ATOMICS (1U << 0) /* remote 8-byte atomics work */

/* State of a node, as in QUERY and over netlink. */
enum lite_node_state {
	LITE_NODE_IDLE = 0,     /* in no cluster */
	LITE_NODE_JOINING = 1,
	LITE_NODE_UP = 2,       /* member of a cluster, perhaps alone */
	LITE_NODE_LEAVING = 3,
	LITE_NODE_DOWN = 4,     /* a peer that does not answer */
	LITE_NODE_STOPPED = 5,
};

/*
 * LITE_IOC_QUERY: describe this kernel and this node. Never sleeps for long,
 * works in every state but STOPPED.
 */
struct lite_ioc_query {
	__u32 size;
	__u32 flags;           /* in: 0 */
	__u32 uapi_version;    /* out: LITE_UAPI_VERSION */
	__u32 features;        /* out: LITE_FEATURE_* */
	__u32 index;           /* out: the N of /dev/liteN */
	__u32 node_id;         /* out: 0 when in no cluster */
	__u32 state;           /* out: enum lite_node_state */
	__u32 nodes_up;        /* out: live members, this one included */
	__aligned_u64 incarnation; /* out */
	__aligned_u64 lmr_size_max;
	__aligned_u64 mem_limit;   /* out: for LMRs and what describes them */
	__aligned_u64 mem_used;    /* out: bytes that LMRs have, whole pages */
	__u32 handles_max;     /* out: per open file */
	__u32 reserved;
};

/* LITE_IOC_ALLOC flags */
#define LITE_ALLOC_NO_HANDLE (1U << 0) /* only with a name: do not open it */
/* Bits 30 and 31 belong to liblite; the kernel refuses them. */

/*
 * LITE_IOC_ALLOC: make an LMR of @length zeroed bytes and open it.
 *
 * An LMR with a @name lives until it is freed. An anonymous one (empty @name)
 * ends with its last handle or mapping (LITE_IOC_MMAP) on this node; if its
 * home is another node, shortly after that. @nodes points to @n_nodes node ids:
 * none means this node, several share the LMR in equal contiguous parts. The
 * first node is the LMR's home and keeps its metadata. The owner is the
 * caller's effective uid and gid; @mode (bits 0666) ignores the umask.
 */
struct lite_ioc_alloc {
	__u32 size;
	__u32 flags;           /* LITE_ALLOC_* */
	__aligned_u64 length;  /* bytes, 1..LITE_LMR_SIZE_MAX */
	__aligned_u64 nodes;   /* user pointer to __u32[n_nodes] */
	__u32 n_nodes;         /* 0..LITE_SPREAD_MAX */
	__u32 mode;
	__aligned_u64 lh;      /* out: rights SHARE, MASTER, and those of @mode */
	char name[LITE_NAME_SIZE];
};

/*
 * LITE_IOC_MAP: open the LMR called @name with @rights (at least one). Its home
 * checks them against owner, mode and grants.
 */
struct lite_ioc_map {
	__u32 size;
	__u32 flags;           /* 0 */
	__u32 rights;          /* LITE_RIGHT_* wanted; all of them or EACCES */
	__u32 reserved;
	__aligned_u64 lh;      /* out */
	__aligned_u64 length;  /* out: bytes */
	char name[LITE_NAME_SIZE];
};

/*
 * LITE_IOC_UNMAP: close a handle. Operations in flight on it, in other threads,
 * complete normally. An anonymous LMR is freed if this was its last handle and
 * it is not mapped (LITE_IOC_MMAP).
 */
struct lite_ioc_unmap {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
};

/*
 * LITE_IOC_FREE: free an LMR, by name when @lh is 0, else by handle, which must
 * have MASTER and is closed on success. On return no node can reach the memory
 * any more, and other handles of the LMR fail with EIDRM. Its name is taken until
 * all nodes that have it mapped have let it go, or were fenced.
 */
struct lite_ioc_free {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	char name[LITE_NAME_SIZE];
};

enum lite_opcode {
	LITE_OP_READ = 1,      /* LMR -> buf */
	LITE_OP_WRITE = 2,     /* buf -> LMR */
	LITE_OP_FETCH_ADD = 3, /* *offset += operand; result = old value */
	LITE_OP_CMP_SWAP = 4,  /* if *offset == operand: = swap; result = old */
	LITE_OP_SWAP = 5,      /* *offset = operand; result = old value */
	LITE_OP_FETCH_AND = 6, /* *offset &= operand; result = old value */
	LITE_OP_FETCH_OR = 7,  /* *offset |= operand; result = old value */
	LITE_OP_SET = 8,       /* fill a range with a pattern */
	LITE_OP_COPY = 9,      /* LMR -> LMR, overlapping or not */
	LITE_OP_COMPARE = 10,  /* count the leading bytes that are equal */
	LITE_OP_CHECKSUM = 11, /* CRC-32C of a range */
};

/*
 * LITE_IOC_OP: one operation on an LMR, complete when the call returns: the
 * data of a READ is in @buf, that of a WRITE in the LMR's memory.
 *
 * Atomics work on naturally aligned 8-byte words in host order (all nodes are
 * little-endian); @length must be 8. They are atomic with respect to each other
 * from all nodes. A READ or WRITE is not atomic as a whole. FETCH_ADD and
 * CMP_SWAP are executed by the RDMA device of the node that holds the word;
 * SWAP, FETCH_AND and FETCH_OR by its kernel, through that device.
 *
 * Memory operations are executed by the nodes that hold the bytes, and do not
 * use @buf:
 *
 * SET      fills the range with a pattern of @swap bytes (1..8), which starts
 *          at @offset. @operand holds it, first byte lowest, unused bytes zero.
 *          Needs WRITE.
 * COPY     copies @length bytes from offset @swap of the LMR behind handle
 *          @operand to @offset of @lh, within one LMR as memmove(3) would.
 *          Needs READ on the source, WRITE on the destination.
 * COMPARE  compares the range with that at offset @swap of handle @operand;
 *          @result is the number of equal leading bytes. Needs READ on both.
 * CHECKSUM sets @result to the CRC-32C (Castagnoli) of the range; @operand is
 *          the checksum of what precedes it, or 0; @swap must be 0. Needs READ.
 *
 * They are executed in pieces of some milliseconds; a fatal signal takes effect
 * between pieces. After ETIMEDOUT or EHOSTDOWN the last piece may still be
 * executed shortly after. A failed SET or COPY sets @result to the number of
 * leading bytes done (0 if it copies overlapping ranges from the end). Handle,
 * rights and length are checked for each piece: a concurrent RESIZE may end the
 * operation with ERANGE.
 *
 * Only a fatal signal interrupts a transfer. It has no time-out of its own, but
 * a connection ends when one of its queue pairs has work and completes nothing
 * for the node's operation time-out (default 10 s). A piece that loses its
 * connection is tried up to three times while the node is not down; then
 * ETIMEDOUT or EHOSTDOWN. An atomic is not retried once it was sent. On failure
 * @result is the number of leading bytes known to be transferred.
 */
struct lite_op {
	__u32 size;
	__u16 opcode;          /* enum lite_opcode */
	__u8 priority;         /* lite_priority.h; 0: that of the open file */
	__u8 reserved0;
	__u32 flags;           /* 0 */
	union {
		__u32 reserved1; /* 0 */
		__s32 error;   /* out, in a vector: 0 or negative errno */
	};
	__aligned_u64 lh;
	__aligned_u64 offset;  /* bytes */
	__aligned_u64 length;  /* bytes, at least 1 */
	__aligned_u64 buf;     /* user address; for READ and WRITE only */
	__aligned_u64 operand; /* FETCH_ADD: addend; CMP_SWAP: expected; ... */
	__aligned_u64 swap;    /* CMP_SWAP: new value; ... */
	__aligned_u64 result;  /* out */
};

/* An LMR, as STAT and LIST describe it. */
struct lite_lmr_info {
	__aligned_u64 id;      /* unique at its home */
	__aligned_u64 length;  /* bytes */
	__u32 home;            /* node id */
	__u32 uid;             /* owner, in the initial user namespace */
	__u32 gid;
	__u32 mode;
	__u32 n_extents;       /* physically contiguous pieces */
	__u32 n_nodes;         /* nodes it is spread over */
	__u32 n_mappers;       /* nodes that have it mapped */
	__u32 reserved;
	char name[LITE_NAME_SIZE]; /* empty: anonymous */
};

/*
 * LITE_IOC_STAT: describe an LMR, by handle when @lh is not 0, else by name.
 * Needs no right on the LMR, as stat(2) needs none on a file.
 */
struct lite_ioc_stat {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	__aligned_u64 nodes;   /* user pointer to __u32[n_nodes], or 0 */
	__u32 n_nodes;         /* in: room; out: nodes it is spread over */
	__u32 reserved;
	struct lite_lmr_info info; /* in: name; out: everything */
};

/*
 * LITE_IOC_LIST: list the LMRs of all live nodes, in order of (home, id),
 * @n_infos at most per call. Start with @cursor 0 and repeat until it comes
 * back as 0. LMRs made or freed meanwhile may or may not be listed; no other is
 * missed or listed twice. A node that does not answer is skipped.
 */
struct lite_ioc_list {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 cursor;  /* in/out */
	__aligned_u64 infos;   /* user pointer to lite_lmr_info[n_infos] */
	__u32 n_infos;         /* in: room (at least 1); out: entries filled */
	__u32 info_size;       /* in: the caller's sizeof(lite_lmr_info) */
};

/* The most grants that one LMR can have. */
#define LITE_GRANTS_MAX 64

/* In place of a uid, gid or mode: do not change it. */
#define LITE_KEEP (~0U)

/* Rights granted to one user. */
struct lite_grant {
	__u32 uid;             /* in the initial user namespace of its node */
	__u32 node;            /* node id; 0: on every node */
	__u32 rights;          /* LITE_RIGHT_* */
	__u32 reserved;
};

/*
 * LITE_IOC_GRANT: set the rights that a user has beyond those of owner and
 * mode; @grant.rights replaces what was granted to that uid on that node, 0
 * removes the grant. By name when @lh is 0, else by handle.
 *
 * A master may grant anything. A user with SHARE may grant those of READ, WRITE
 * and ATOMIC that it has, and may take nothing away. When the call returns, no
 * handle on any node holds a right that was taken away, and operations that
 * used it have ended.
 *
 * EACCES: the caller is no master, and may not share these rights. ENOSPC:
 * there are LITE_GRANTS_MAX grants already, or the home's memory for LMRs is
 * used up.
 */
struct lite_ioc_grant {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	struct lite_grant grant;
	char name[LITE_NAME_SIZE];
};

/* LITE_IOC_GRANTS: list the grants of an LMR. Needs no right, as STAT. */
struct lite_ioc_grants {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	__aligned_u64 grants;  /* user pointer to struct lite_grant[n_grants] */
	__u32 n_grants;        /* in: room; out: number of grants */
	__u32 grant_size;      /* in: the caller's sizeof(lite_grant) */
	char name[LITE_NAME_SIZE];
};

/*
 * LITE_IOC_SETATTR: change owner, group or mode of an LMR; LITE_KEEP leaves one
 * as it is. A master may change the mode, and the group to one it is in; only
 * root may change the owner. When the call returns, handles have lost the
 * rights that their users lost by it, as with LITE_IOC_GRANT.
 */
struct lite_ioc_setattr {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	__u32 uid;
	__u32 gid;
	__u32 mode;            /* bits 0666 */
	__u32 reserved;
	char name[LITE_NAME_SIZE];
};

/*
 * LITE_IOC_RENAME: rename an LMR; handles stay valid. Needs a master. Never
 * replaces: EEXIST if another LMR is called @to. An anonymous LMR (by @lh) that
 * gets a name no longer ends with its maker's handles.
 */
struct lite_ioc_rename {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	char name[LITE_NAME_SIZE]; /* when @lh is 0 */
	char to[LITE_NAME_SIZE];
};

/*
 * LITE_IOC_RESIZE: extend an LMR by zeroes, or truncate it; handles stay valid
 * and have the new length. Needs a master. Memory that is cut off is free when
 * the call returns. New memory is taken at the node that holds the LMR's end. A
 * cut also needs new memory for what remains of the allocation that it divides.
 * EOPNOTSUPP: it is registered memory.
 */
struct lite_ioc_resize {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	__aligned_u64 length;  /* bytes, 1..LITE_LMR_SIZE_MAX */
	char name[LITE_NAME_SIZE];
};

/*
 * LITE_IOC_MOVE: move @length bytes at @offset of an LMR to another node's
 * memory while it is in use: handles stay valid, no write is lost. Whole pages
 * move; @length 0: everything from @offset on. Needs a master. The home, which
 * keeps the metadata, does not change. ERANGE: some of the bytes are beyond the
 * end when the move begins, or all of them later. ESTALE: a node restarted and
 * lost some of the bytes. ENOSPC also if the LMR would be on more than
 * LITE_SPREAD_MAX nodes. EOPNOTSUPP: it is registered memory.
 *
 * The move goes in steps. After a failure or interruption, what was moved
 * (@moved) stays moved, and all of the LMR remains usable.
 */
struct lite_ioc_move {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	__aligned_u64 offset;
	__aligned_u64 length;
	__aligned_u64 moved;   /* out: leading bytes that were moved */
	__u32 node;            /* node id; 0: this one */
	__u32 reserved;
	char name[LITE_NAME_SIZE];
};

/* LITE_IOC_MMAP prot, as for mmap(2) */
#define LITE_PROT_READ (1U << 0)
#define LITE_PROT_WRITE (1U << 1)

/* LITE_IOC_MMAP flags */
#define LITE_MMAP_POPULATE (1U << 0) /* no page faults later, as MAP_POPULATE */

/*
 * LITE_IOC_MMAP: map a part of an LMR that is in this node's memory into the
 * process, shared: loads and stores read and write the LMR without a call.
 * @prot is READ, or READ | WRITE; the handle must have the rights of these
 * names. EREMOTE: a byte of the range is at another node.
 *
 * munmap(2) unmaps it; otherwise it behaves as a file's mapping with
 * MAP_SHARED: read(2), write(2), O_DIRECT and ptrace(2) work on it, children
 * inherit it, mprotect(2) gives no more than @prot. It cannot grow and is not
 * in core dumps. It is independent of the handle and the open file, and keeps
 * an anonymous LMR alive as a handle does.
 *
 * It follows changes of the LMR: an access during a change waits for its end.
 * Access to bytes that have left this node, or were cut off, raises SIGBUS
 * (EFAULT if the kernel makes the access) until they are back. So does any
 * access once the LMR is freed, a right that @prot needs is taken away, or the
 * node is stopped; and while the home is down. When FREE, GRANT, SETATTR,
 * RESIZE or MOVE return, no access reaches the old memory, except by processes
 * of a node that was cut off and has not noticed yet. A process keeps pages
 * that it has pinned through a mapping (O_DIRECT, a pipe, a registration) until
 * it unpins them. If only a right was taken away, they may still belong to the
 * LMR; otherwise they are given to no other user, and what is written there is
 * lost.
 *
 * Between the CPU and other nodes, memory behaves as between threads with
 * relaxed atomics: aligned words are seen whole, in no promised order, except
 * that a store before a call is ordered before what the call does. LITE's
 * atomics are not atomic with respect to those of the CPU.
 */
struct lite_ioc_mmap {
	__u32 size;
	__u32 flags;           /* LITE_MMAP_* */
	__aligned_u64 lh;
	__aligned_u64 offset;  /* bytes, whole pages */
	__aligned_u64 length;  /* bytes, at least 1; whole pages are mapped */
	__u32 prot;            /* LITE_PROT_* */
	__u32 reserved;
	__aligned_u64 addr;    /* out */
};

/* LITE_IOC_REGISTER flags */
#define LITE_REGISTER_UNPINNED (1U << 0) /* do not pin, and bring in no page */
#define LITE_REGISTER_LEASED   (1U << 1) /* with UNPINNED: pin pages in use for ten seconds */

/*
 * LITE_IOC_REGISTER: make an LMR of memory of the process, without a copy, and
 * open it. Its home is this node. @addr and @length must be whole pages, so
 * that no neighbouring data is exposed by accident.
 *
 * The memory may be anonymous, or of shmem, memfd or hugetlbfs, and must be
 * writable. It may not be that of a file in a file system (EOPNOTSUPP, or
 * EFAULT from kernels 6.5 and later), nor a driver's, such as a mapping of
 * LITE_IOC_MMAP (EOPNOTSUPP). Its pages are pinned and count against the user's
 * RLIMIT_MEMLOCK, not against the node's memory for LMRs. They stay in the LMR
 * when the process unmaps or replaces them. A range in one arena
 * (LITE_IOC_ARENA) is only looked up: nothing is pinned or counted again.
 *
 * It is freed like any other LMR, and at the latest when this open file is
 * closed, with or without a name. LITE_IOC_MMAP, RESIZE and MOVE of it fail
 * with EOPNOTSUPP.
 *
 * With LITE_REGISTER_UNPINNED no page is pinned, counted or even brought in. The
 * LMR is whatever the process has at these addresses: its pages may be swapped
 * out or migrated, and if the process unmaps or replaces them, operations see
 * the new ones, or fail with EFAULT where there are none. The memory may be
 * anonymous, or of shmem or memfd, but not of an arena (otherwise: EOPNOTSUPP);
 * read-only memory can be read. It must be mapped when it is registered
 * (EFAULT). Operations fail with EFAULT once the process has ended or replaced
 * its memory (execve(2)). EOPNOTSUPP also if the node was not started with
 * LITE_A_UNPINNED. EFBIG: more than 4 GB. EEXIST: a part is an unpinned LMR of
 * this process and node already. EBUSY: eight such LMRs have parts of the same
 * 2 MB, or the process has freed 1024 such LMRs while its threads kept changing
 * its memory. See Documentation/interfaces/unpinned.rst.
 *
 * With LITE_REGISTER_LEASED as well, writable pages that an operation brings in
 * are pinned for ten seconds, or until memory is short or the process takes
 * them away. Meanwhile the kernel does not swap or compact them, if they are
 * anonymous. They count against RLIMIT_MEMLOCK; pages that would exceed half of
 * that limit, with all else that counts, are not pinned. EINVAL: without
 * LITE_REGISTER_UNPINNED.
 */
struct lite_ioc_register {
	__u32 size;
	__u32 flags;           /* LITE_REGISTER_* */
	__aligned_u64 addr;    /* of the process */
	__aligned_u64 length;  /* bytes */
	__u32 mode;            /* as for ALLOC */
	__u32 reserved;
	__aligned_u64 lh;      /* out: as for ALLOC */
	char name[LITE_NAME_SIZE]; /* empty: anonymous */
};

#define LITE_IOC_QUERY _IO(LITE_IOC_TYPE, 0x00)
#define LITE_IOC_ALLOC _IO(LITE_IOC_TYPE, 0x01)
#define LITE_IOC_MAP _IO(LITE_IOC_TYPE, 0x02)
#define LITE_IOC_UNMAP _IO(LITE_IOC_TYPE, 0x03)
#define LITE_IOC_FREE _IO(LITE_IOC_TYPE, 0x04)
#define LITE_IOC_OP _IO(LITE_IOC_TYPE, 0x05)
#define LITE_IOC_STAT _IO(LITE_IOC_TYPE, 0x06)
#define LITE_IOC_LIST _IO(LITE_IOC_TYPE, 0x07)
#define LITE_IOC_GRANT _IO(LITE_IOC_TYPE, 0x08)
#define LITE_IOC_GRANTS _IO(LITE_IOC_TYPE, 0x09)
#define LITE_IOC_SETATTR _IO(LITE_IOC_TYPE, 0x0a)
#define LITE_IOC_RENAME _IO(LITE_IOC_TYPE, 0x0b)
#define LITE_IOC_RESIZE _IO(LITE_IOC_TYPE, 0x0c)
#define LITE_IOC_MOVE _IO(LITE_IOC_TYPE, 0x0d)
#define LITE_IOC_MMAP _IO(LITE_IOC_TYPE, 0x0e)
#define LITE_IOC_REGISTER _IO(LITE_IOC_TYPE, 0x0f)

#include "lite_arena.h"
#include "lite_file.h"
#include "lite_priority.h"
#include "lite_sync.h"
#include "lite_vector.h"

#endif /* _UAPI_LITE_H */
