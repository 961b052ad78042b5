/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * LITE: files straight into LMRs, and back. Part of the ABI of /dev/liteN; see
 * lite.h.
 */
#ifndef _UAPI_LITE_FILE_H
#define _UAPI_LITE_FILE_H

#include <linux/types.h>

/* Defaults of lite_ioc_file.pages and .sets, used if they are 0, and maxima. */
#define LITE_FILE_PAGES 256
#define LITE_FILE_PAGES_MAX 1024
#define LITE_FILE_SETS 2
#define LITE_FILE_SETS_MAX 16

/* LITE_IOC_SENDFILE and LITE_IOC_RECVFILE flags */
#define LITE_FILE_POSITION (1U << 0) /* use and advance the file's position */

/*
 * LITE_IOC_SENDFILE: write up to @length bytes of file @fd, from @file_offset
 * on, to an LMR. Needs WRITE on the handle and a file open for reading.
 * LITE_IOC_RECVFILE: the same from the LMR to the file. Needs READ on the
 * handle and a file open for writing.
 *
 * They work as sendfile(2) does. @moved is the number of leading bytes that
 * were moved: @length, or fewer because the file or the LMR ended there, or
 * because of an error or a fatal signal. The call fails only if none were; if
 * the cause lasts, the next call reports it. With a @length of 0 only @fd and
 * the numbers of pages and sets are checked. On success @file_offset is set to
 * where the bytes moved end. With LITE_FILE_POSITION the file's position is
 * used and set instead; threads that do so at the same time may begin at the
 * same position.
 *
 * SENDFILE sends what read(2) would give: holes are zeroes. Whole pages of the
 * file are not copied: if it is written to or truncated meanwhile, the LMR may
 * get old or new bytes, or zeroes, as with sendfile(2). RECVFILE writes as
 * write(2) does: with O_APPEND all is appended, and @file_offset is set to the
 * new end; with O_DIRECT offset and length must be aligned. After a failure or
 * a short count SENDFILE may have written any part of the range of the LMR;
 * RECVFILE has written nothing to the file beyond @moved.
 *
 * Bytes are moved in sets of @pages pages, of which up to @sets are held and
 * moved at a time. If the user already has more than its share of the pages of
 * the node (Documentation/limits.rst), smaller and fewer sets are used.
 *
 * An io_uring command of either kind always runs in a worker. @fd is looked up
 * there, and cannot be a registered file.
 *
 * errno values, beside those of READ and WRITE (LITE_IOC_OP) and of read(2) and
 * write(2) on the file:
 *
 *   EBADF       also: @fd is not open, or not for reading (SENDFILE) or writing
 *               (RECVFILE)
 *   EINVAL      @pages or @sets is too large; @file_offset is above 2^63 - 1; the
 *               file has no positions (a pipe, a socket, a terminal), or cannot
 *               be spliced from (a directory) or be given pages (some devices)
 *   EOVERFLOW   the file cannot have bytes there
 *   ERANGE      @offset is beyond the end of the LMR; or SENDFILE: at its end,
 *               and the file is not
 *   EFBIG       RECVFILE: RLIMIT_FSIZE (with SIGXFSZ), or more than the file
 *               system allows
 *   EPERM       RECVFILE: a seal (memfd), or an immutable file
 *   ETXTBSY     RECVFILE: a swap file
 *   ENOSPC, EDQUOT, EIO, ESTALE  also: of the file system
 *   EINTR       a signal that kills the caller, before anything was moved
 */
struct lite_ioc_file {
	__u32 size;
	__u32 flags;           /* LITE_FILE_* */
	__aligned_u64 lh;
	__aligned_u64 offset;  /* in the LMR, bytes */
	__aligned_u64 length;  /* bytes; more than there are: to the end */
	__aligned_u64 file_offset; /* in/out: bytes; not with POSITION */
	__s32 fd;
	__u32 reserved;        /* 0 */
	__u32 pages;           /* of a set: 1..LITE_FILE_PAGES_MAX, or 0 */
	__u32 sets;            /* 1..LITE_FILE_SETS_MAX, or 0 */
	__aligned_u64 moved;   /* out: bytes */
};

#define LITE_IOC_SENDFILE _IO(LITE_IOC_TYPE, 0x1c)
#define LITE_IOC_RECVFILE _IO(LITE_IOC_TYPE, 0x1d)

#endif /* _UAPI_LITE_FILE_H */
