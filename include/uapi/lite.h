/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: the ABI of /dev/liteN.
 *
 * A process opens /dev/liteN, N being the index of a LITE node on this machine
 * (usually 0), and calls ioctl(2) on it. Every structure starts with @size,
 * which the caller sets to sizeof() of the structure it was compiled with; the
 * kernel accepts shorter ones down to the first published version and longer
 * ones whose excess is zero. Flags and reserved fields must be zero unless a
 * bit is defined here.
 *
 * A file that was opened for reading only (O_RDONLY) can look, and nothing else:
 * QUERY, STAT, LIST, GRANTS, RPC_FIND, MAP with LITE_RIGHT_READ and no other right,
 * and what a handle with that right allows. Everything else fails with EACCES.
 *
 * Handles (lh) belong to the open file that obtained them. They mean nothing
 * in another open file, are shared with children that inherit the descriptor,
 * and die with the last descriptor of the file.
 *
 * DOC: errno values, one meaning each
 *
 * ====================  ======================================================
 * EBADF                 the handle is not one of this open file (never was, or
 *                       was unmapped)
 * EIDRM                 the LMR behind the handle was freed
 * ESTALE                the node that kept the LMR, or these bytes of it, restarted
 *                       and lost them; or memory was to be taken there just then
 * EACCES                the handle lacks the right, mode bits refuse it, or the
 *                       device was opened for reading only
 * EPERM                 only a master of the LMR (owner, root, or who was made
 *                       one) may do that
 * ERANGE                offset + length is beyond the end of the LMR
 * EINVAL                a malformed argument: length or size of zero, a
 *                       misaligned atomic, a bad name, a short structure
 * E2BIG                 a longer structure than this kernel knows, with
 *                       something in the part that it does not know
 * EFAULT                a user buffer that is not mapped, or not writable for
 *                       a read or for REGISTER
 * EOPNOTSUPP            unknown flag, opcode, or non-zero reserved field, an
 *                       operation that this RDMA device cannot do, or one that
 *                       this kind of memory is not for
 * ENOTTY                unknown ioctl
 * ENAMETOOLONG          a name of more than LITE_NAME_MAX bytes
 * ENOENT                no LMR of that name
 * EEXIST                an LMR of that name exists
 * EHOSTUNREACH          no node of that id in this cluster
 * EHOSTDOWN             the node is known, but is down
 * EREMOTE               a byte of the range that was to be mapped into the
 *                       process is in another node's memory
 * ENOTCONN              this node is in no cluster (it left, or is joining)
 * ENODEV                the node was stopped, or its RDMA device is gone
 * EFBIG                 larger than the largest LMR there can be
 * ENOSPC                the memory that a node gives to LMRs is used up
 * EDQUOT                the memory that one uid may have in LMRs is used up, or,
 *                       for REGISTER, what the user may lock into memory
 *                       (RLIMIT_MEMLOCK)
 * EMFILE                too many handles in this open file
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
 * Of the ABI: another number is another ABI. It grows without a new number, by
 * longer structures and further ioctls.
 */
#define LITE_UAPI_VERSION 2

/*
 * Time-outs are signed, in ms, and mean the same everywhere: from 1 to
 * LITE_TIMEOUT_MAX (a day), or one of these. Anything else is EINVAL.
 *
 *   LITE_NOWAIT           do not wait for what is not there: EAGAIN (for a lock
 *                         EBUSY). A call does not wait for room in the ring, but for
 *                         its reply as long as by default
 *   LITE_FOREVER          until it is there, or a signal ends the wait
 *   LITE_TIMEOUT_DEFAULT  LITE_RPC_TIMEOUT_DEFAULT for calls and messages,
 *                         LITE_FOREVER for everything else
 */
#define LITE_NOWAIT 0
#define LITE_FOREVER (-1)
#define LITE_TIMEOUT_DEFAULT (-2)
#define LITE_TIMEOUT_MAX 86400000

#define LITE_IOC_TYPE 0xE7

/*
 * Longest name in bytes, and the size of a field that holds it with its NUL. A
 * name has at least one, and none below 0x20 or of 0x7f; LITE gives them no meaning.
 */
#define LITE_NAME_MAX 255
#define LITE_NAME_SIZE 256

/* Node ids are 1..LITE_NODE_ID_MAX; 0 means "this node" or "none". */
#define LITE_NODE_ID_MAX 65535

/* The most nodes that one LMR can be spread over. */
#define LITE_SPREAD_MAX 64

/* The largest LMR in bytes; node limits are usually far lower. */
#define LITE_LMR_SIZE_MAX (1ULL << 46)

/* Default TCP-like port of a node's RDMA CM listener. */
#define LITE_DEFAULT_PORT 18500

/*
 * Rights that a handle carries. The mode bits give READ (r bit), WRITE and
 * ATOMIC (w bit); the owner has SHARE and MASTER besides; root has everything;
 * grants (LITE_IOC_GRANT) give more.
 *
 *   SHARE   may grant to others what it has itself, but SHARE and MASTER
 *   MASTER  may do with the LMR what its owner may: grant and revoke anything,
 *           free, rename, resize and move it, change its mode
 *
 * A handle keeps no right that its user has lost since it was opened, and does
 * not get it back should it be granted again.
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
	LITE_NODE_IDLE = 0,     /* started, in no cluster */
	LITE_NODE_JOINING = 1,
	LITE_NODE_UP = 2,       /* member of a cluster, maybe of one */
	LITE_NODE_LEAVING = 3,
	LITE_NODE_DOWN = 4,     /* a peer that does not answer */
	LITE_NODE_STOPPED = 5,
};

/*
 * LITE_IOC_QUERY: what this kernel and this node are.
 * Never sleeps for long, works in every state but STOPPED.
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
#define LITE_ALLOC_NO_HANDLE (1U << 0) /* named only: make it, open nothing */

/*
 * LITE_IOC_ALLOC: make an LMR of @length zeroed bytes and open it.
 *
 * With a @name it outlives the process until somebody frees it; without one
 * (empty string) it is freed when this open file is closed, a little later if it
 * is on another node. Nodes are given as
 * an array of @n_nodes __u32 node ids at @nodes: none means this node, several
 * spread the LMR over them in equal contiguous shares. The first node is the
 * LMR's home and keeps its metadata. Owner is the caller's effective uid and
 * gid; @mode is taken as it is (no umask), bits 0666.
 */
struct lite_ioc_alloc {
	__u32 size;
	__u32 flags;           /* LITE_ALLOC_* */
	__aligned_u64 length;  /* bytes, 1..LITE_LMR_SIZE_MAX */
	__aligned_u64 nodes;   /* user pointer to __u32[n_nodes] */
	__u32 n_nodes;         /* 0..LITE_SPREAD_MAX */
	__u32 mode;
	__aligned_u64 lh;      /* out: handle with all rights the mode gives */
	char name[LITE_NAME_SIZE];
};

/*
 * LITE_IOC_MAP: open the LMR called @name with @rights (at least one).
 * Checked at the LMR's home against its owner and mode.
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
 * LITE_IOC_UNMAP: close a handle. Operations under way on it, in other threads,
 * end as they would have. Unmapping the last handle of an anonymous LMR in the
 * file that made it frees the LMR.
 */
struct lite_ioc_unmap {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
};

/*
 * LITE_IOC_FREE: free an LMR, by name when @lh is 0, else by handle, which
 * must have MASTER and is closed by a successful free. Returns when no node
 * can reach the memory any more; other handles of it then fail with EIDRM.
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
	LITE_OP_SET = 8,       /* fill with a pattern */
	LITE_OP_COPY = 9,      /* LMR -> LMR, overlapping or not */
	LITE_OP_COMPARE = 10,  /* of two ranges, how many leading bytes equal */
	LITE_OP_CHECKSUM = 11, /* CRC-32C of a range */
};

/*
 * LITE_IOC_OP: one operation on an LMR, complete when the call returns: data
 * of a READ is in @buf, data of a WRITE is in the LMR's memory.
 *
 * Atomics work on naturally aligned 8-byte words in host order of the (equally
 * little-endian) nodes; @length must be 8. They are atomic towards each other
 * from all nodes. A READ or WRITE is not atomic as a whole. FETCH_ADD and
 * CMP_SWAP are carried out by the RDMA device of the node that holds the word,
 * SWAP, FETCH_AND and FETCH_OR by its kernel, through that device.
 *
 * Memory operations are carried out by the nodes that hold the bytes, and @buf
 * has no part in them.
 *
 * SET      fills the range with a pattern of @swap bytes (1..8), which @operand
 *          holds, the first one lowest, zeroes above; it begins at @offset.
 *          WRITE is needed.
 * COPY     copies @length bytes from offset @swap of the LMR behind the handle
 *          @operand to @offset of @lh, as memmove(3) would if both are one
 *          LMR. READ is needed on the source, WRITE on the destination.
 * COMPARE  compares the range with that at offset @swap of the handle
 *          @operand; @result is the number of leading bytes that are equal.
 *          READ is needed on both.
 * CHECKSUM @result is the CRC-32C (Castagnoli) of the range; @operand is that
 *          of what came before it, or 0; @swap must be 0. READ is needed.
 *
 * They work in pieces of some milliseconds; a fatal signal ends them after one.
 * After ETIMEDOUT and EHOSTDOWN such a piece may still be carried out, a little
 * later. A SET or COPY that failed says in @result how many leading bytes are
 * done (of overlapping ranges copied from the end: 0). Handles, rights and
 * lengths are looked at for each piece: a RESIZE meanwhile may end it with
 * ERANGE.
 *
 * A transfer may be interrupted by a fatal signal only; it has no time-out of
 * its own, but every piece of it must complete within the node's operation
 * time-out (default 10 s). A piece that does not, or whose connection breaks, is
 * tried up to three times, as long as the node is not down; then ETIMEDOUT or
 * EHOSTDOWN. Atomics are not tried again once they were sent. On failure @result says how many
 * leading bytes are known to have been transferred.
 */
struct lite_op {
	__u32 size;
	__u16 opcode;          /* enum lite_opcode */
	__u8 priority;         /* reserved for the scheduler: 0 */
	__u8 reserved0;
	__u32 flags;           /* 0 */
	union {
		__u32 reserved1; /* 0 */
		__s32 error;   /* out, in a vector: 0 or a negative errno */
	};
	__aligned_u64 lh;
	__aligned_u64 offset;  /* bytes */
	__aligned_u64 length;  /* bytes, at least 1 */
	__aligned_u64 buf;     /* user address; for READ and WRITE only */
	__aligned_u64 operand; /* FETCH_ADD: addend; CMP_SWAP: expected; ... */
	__aligned_u64 swap;    /* CMP_SWAP: new value; ... */
	__aligned_u64 result;  /* out */
};

/* What STAT and LIST tell of an LMR. */
struct lite_lmr_info {
	__aligned_u64 id;      /* unique at its home */
	__aligned_u64 length;  /* bytes */
	__u32 home;            /* node id */
	__u32 uid;             /* owner, in the initial user namespace */
	__u32 gid;
	__u32 mode;
	__u32 n_extents;       /* physically contiguous pieces */
	__u32 n_nodes;         /* nodes it is spread over */
	__u32 n_mappers;       /* nodes that have it mapped now */
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
	__u32 n_nodes;         /* in: room; out: how many the LMR is spread over */
	__u32 reserved;
	struct lite_lmr_info info; /* in: name; out: everything */
};

/*
 * LITE_IOC_LIST: the LMRs of all live nodes, in order of (home, id), some at a
 * time. Start with @cursor 0; go on while it comes back other than 0. LMRs
 * made or freed meanwhile may or may not be listed; no other is missed or
 * listed twice. A node that dies meanwhile is passed over.
 */
struct lite_ioc_list {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 cursor;  /* in/out */
	__aligned_u64 infos;   /* user pointer to struct lite_lmr_info[n_infos] */
	__u32 n_infos;         /* in: room (at least 1); out: how many came */
	__u32 info_size;       /* in: sizeof(struct lite_lmr_info), as compiled */
};

/* The most grants that one LMR can have. */
#define LITE_GRANTS_MAX 64

/* In place of a uid, a gid, a mode: leave it as it is. */
#define LITE_KEEP (~0U)

/* One user to whom rights on an LMR were granted. */
struct lite_grant {
	__u32 uid;             /* in the initial user namespace of its node */
	__u32 node;            /* node id; 0: on every node */
	__u32 rights;          /* LITE_RIGHT_* */
	__u32 reserved;
};

/*
 * LITE_IOC_GRANT: set the rights that a user has beside those that owner and
 * mode give; @grant.rights replaces what was granted to that uid on that node,
 * 0 takes the grant away. By name when @lh is 0, else by handle.
 *
 * A master may grant anything. Who has SHARE may grant READ, WRITE and ATOMIC as
 * far as he has them, and take away nothing. When the call returns, a right
 * taken away is held by no handle, on any node: handles lose it, and operations
 * that used it have ended.
 *
 * EACCES: neither master nor sharer of those rights; ENOSPC: LITE_GRANTS_MAX
 * grants are there already.
 */
struct lite_ioc_grant {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	struct lite_grant grant;
	char name[LITE_NAME_SIZE];
};

/*
 * LITE_IOC_GRANTS: what has been granted on an LMR. Needs no right, as STAT.
 */
struct lite_ioc_grants {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	__aligned_u64 grants;  /* user pointer to struct lite_grant[n_grants] */
	__u32 n_grants;        /* in: room; out: how many there are */
	__u32 grant_size;      /* in: sizeof(struct lite_grant), as compiled */
	char name[LITE_NAME_SIZE];
};

/*
 * LITE_IOC_SETATTR: change owner, group or mode of an LMR; LITE_KEEP leaves
 * one as it is. A master may change mode, and group to one that he is in; only
 * root may change the owner. Handles lose what their users lose by it before the
 * call returns, as with LITE_IOC_GRANT.
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
 * LITE_IOC_RENAME: give an LMR another name; handles stay. Needs a master.
 * Never replaces: EEXIST if another LMR is called @to. An anonymous LMR (by @lh) that is
 * given a name outlives its maker from then on.
 */
struct lite_ioc_rename {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	char name[LITE_NAME_SIZE]; /* when @lh is 0 */
	char to[LITE_NAME_SIZE];
};

/*
 * LITE_IOC_RESIZE: make an LMR longer (by zeroes) or shorter; handles stay, and
 * have the new length. Needs a master. The memory of what is cut off is free when
 * the call returns. New memory is taken at the node that holds the LMR's end; to
 * cut within a page or a larger piece takes new memory for what stays of that.
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
 * memory, while it is in use: handles stay, writes are not lost. What moves are
 * the whole pages that these bytes are in; @length 0: all from @offset on. ERANGE
 * if some of the bytes are beyond the end when it begins, or all are later. Needs
 * a master. The home, which keeps the metadata, stays where it is. ESTALE: a node
 * has restarted and lost some of the bytes.
 *
 * Goes in steps; what has been moved when it fails or is interrupted stays
 * moved (@moved), and all of the LMR is usable whatever happens. EOPNOTSUPP: it is
 * registered memory.
 */
struct lite_ioc_move {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 lh;
	__aligned_u64 offset;
	__aligned_u64 length;
	__aligned_u64 moved;   /* out: leading bytes that are there now */
	__u32 node;            /* node id; 0: this one */
	__u32 reserved;
	char name[LITE_NAME_SIZE];
};

/* LITE_IOC_MMAP prot: as those of mmap(2) */
#define LITE_PROT_READ (1U << 0)
#define LITE_PROT_WRITE (1U << 1)

/* LITE_IOC_MMAP flags */
#define LITE_MMAP_POPULATE (1U << 0) /* no page faults later, as MAP_POPULATE */

/*
 * LITE_IOC_MMAP: map a part of an LMR that is in this node's memory into the
 * process, shared: loads and stores are reads and writes of the LMR, without a
 * call. @prot is READ, or READ | WRITE; the handle must have the rights of these
 * names. A byte of the range at another node: EREMOTE.
 *
 * The mapping is unmapped by munmap(2), and is otherwise like one of a file with
 * MAP_SHARED: read(2), write(2), O_DIRECT, ptrace(2) work on it, children
 * inherit it, mprotect(2) gives no more than @prot; it cannot grow and is not in
 * core dumps. It is independent of the handle and of the open file and keeps an
 * anonymous LMR alive as a handle would.
 *
 * It follows the LMR through changes: an access during one waits for its end.
 * Bytes that are no longer at this node, or cut off, are answered by SIGBUS
 * (EFAULT, where the kernel makes the access) for as long as that is so; all of
 * it is from when the LMR was freed, when a right that @prot stands for was taken
 * away, or when the node was stopped; and while the home is down. When FREE,
 * GRANT, SETATTR, RESIZE or MOVE return, no access goes to what was before, but
 * of processes of a node that was cut off and has not noticed yet. But pages that
 * a process has pinned through a mapping (O_DIRECT, a pipe, a registration) it has
 * until it lets them go: they may be the LMR's still when only a right to it was
 * taken away, and are nobody else's otherwise; what is written there then is lost.
 *
 * Between the CPU and other nodes it is as between threads with relaxed atomics:
 * aligned words are seen whole, in no promised order but that a store before a
 * call is before what the call does. LITE's atomics are not atomic towards
 * those of the CPU.
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

/*
 * LITE_IOC_REGISTER: make an LMR of memory that the process has, without a copy,
 * and open it. Its home is this node. @addr and @length are whole pages: the LMR
 * is all that is in them, and nobody shall get a neighbour by accident.
 *
 * The memory may be anonymous, or of shmem, memfd or hugetlbfs, and must be
 * writable; not that of a file in a file system (EOPNOTSUPP, or EFAULT from
 * kernels 6.5 and later), nor a driver's, as what LITE_IOC_MMAP maps (EOPNOTSUPP).
 * Its pages are pinned and count against the user's RLIMIT_MEMLOCK, not against
 * the node's memory for LMRs. The LMR is these pages, whatever becomes of the
 * range: after munmap(2), or whatever else replaces a page in the process, they
 * stay in the LMR.
 *
 * It is freed like any other, and at the latest when this open file is closed,
 * with or without a name. It cannot be mapped by LITE_IOC_MMAP, resized, or moved
 * (EOPNOTSUPP).
 */
struct lite_ioc_register {
	__u32 size;
	__u32 flags;           /* 0 */
	__aligned_u64 addr;    /* of the process */
	__aligned_u64 length;  /* bytes */
	__u32 mode;            /* as for ALLOC */
	__u32 reserved;
	__aligned_u64 lh;      /* out: handle with all rights the mode gives */
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

#include "lite_sync.h"
#include "lite_vector.h"

#endif /* _UAPI_LITE_H */
