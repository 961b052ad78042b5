/* SPDX-License-Identifier: MIT */
/*
 * liblite: files straight into LMRs, and back. The conventions of <lite/lite.h> apply.
 *
 *    int64_t at = 0;
 *    int64_t moved = lite_sendfile(ctx, lh, 0, fd, &at, UINT64_MAX);
 *
 * The kernel sends the pages of the file as they are: nothing is copied or registered. What it
 * receives is copied once, into the file. <uapi/lite_file.h> has the details.
 */
#ifndef LITE_FILE_H
#define LITE_FILE_H

#include <lite/lite.h>
#include <uapi/lite_file.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/*
 * lite_sendfile - write bytes of a file to an LMR
 * @lh: handle with LITE_RIGHT_WRITE
 * @offset: in the LMR, bytes
 * @fd: file open for reading that has positions: a regular file, a block device, a memfd
 * @file_offset: in: where to begin in the file, bytes; out: where the bytes moved end. NULL: the
 *    file's position is used and advanced
 * @length: bytes; more than the file has, or than the LMR has room for: to the end
 *
 * Works as sendfile(2): returns a short count at the end of the file or of the LMR, and if an error
 * occurs after some bytes were moved; then call it again to get the errno. If the file is changed
 * meanwhile, the LMR may get old or new bytes. After a failure or a short count any part of the
 * range in the LMR may have been written.
 *
 * Return: bytes moved, 0 at the end of the file; -EBADF (@lh is no handle, or @fd not open for
 * reading), -EACCES (no WRITE), -EINVAL (the file has no positions, or is a directory; or
 * @file_offset is negative), -ERANGE (@offset is beyond the end of the LMR; or at its
 * end, and the file is not), -EOVERFLOW (@file_offset is too large for the file), -EIDRM, -ESTALE,
 * -EHOSTDOWN, -ETIMEDOUT or -EIO as lite_write(), -ENOTTY (older kernel module), -ENOMEM, or an
 * errno of read(2) on the file.
 */
int64_t lite_sendfile(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, int fd,
                      int64_t* file_offset, uint64_t length) LITE_NOEXCEPT;

/*
 * lite_recvfile - write bytes of an LMR to a file
 * @lh: handle with LITE_RIGHT_READ
 * @offset: in the LMR, bytes
 * @fd: file open for writing that has positions
 * @file_offset, @length: as in lite_sendfile()
 *
 * Writes to the file as write(2) does: with O_APPEND all is appended, in pieces of 64 KB, between
 * which other writers may append theirs, and @file_offset is only set, to the new end; with
 * O_DIRECT offset and length must be aligned. Nothing is written beyond the count that is returned.
 *
 * Return: bytes moved, 0 at the end of the LMR; an errno as lite_sendfile() and lite_read(), with
 * the directions reversed; -EFBIG (RLIMIT_FSIZE, with SIGXFSZ; or the file system's limit), -EPERM
 * (a seal, an immutable file), -ETXTBSY (a swap file), or another errno of write(2) on the file.
 */
int64_t lite_recvfile(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, int fd,
                      int64_t* file_offset, uint64_t length) LITE_NOEXCEPT;

/*
 * lite_file_submit - move bytes between a file and an LMR
 * @command: LITE_IOC_SENDFILE or LITE_IOC_RECVFILE
 * @arg: what to move, and the size and number of sets. Sets @arg->size; @arg->moved, to 0 on
 *    failure; and on success @arg->file_offset, unless LITE_FILE_POSITION is set
 *
 * The functions above are made of this.
 *
 * Return: 0, also for a short count, or a negative errno as theirs; -EINVAL (another @command; too
 * many pages or sets), -EOPNOTSUPP (an unknown flag, a non-zero reserved field).
 */
int lite_file_submit(struct lite_ctx* ctx, unsigned int command,
                     struct lite_ioc_file* arg) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* LITE_FILE_H */
