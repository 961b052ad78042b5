// SPDX-License-Identifier: MIT
//
// Files straight into LMRs, and back.

#include <lite/file.h>

#include "context.hpp"

#include <cerrno>

namespace {

int64_t move(lite_ctx* ctx, unsigned int command, lite_lh_t lh, uint64_t offset, int fd,
             int64_t* file_offset, uint64_t length) noexcept {
    struct lite_ioc_file arg = {};
    arg.lh = lh;
    arg.offset = offset;
    arg.length = length;
    arg.fd = fd;
    if (file_offset)
        arg.file_offset = static_cast<uint64_t>(*file_offset);
    else
        arg.flags = LITE_FILE_POSITION;

    const int err = lite_file_submit(ctx, command, &arg);
    if (err)
        return err;
    if (file_offset)
        *file_offset = static_cast<int64_t>(arg.file_offset);
    return static_cast<int64_t>(arg.moved);
}

}  // namespace

int lite_file_submit(struct lite_ctx* ctx, unsigned int command,
                     struct lite_ioc_file* arg) noexcept {
    arg->moved = 0;
    if (command != LITE_IOC_SENDFILE && command != LITE_IOC_RECVFILE)
        return -EINVAL;
    return lite::internal::control(ctx, command, *arg);
}

int64_t lite_sendfile(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, int fd,
                      int64_t* file_offset, uint64_t length) noexcept {
    return move(ctx, LITE_IOC_SENDFILE, lh, offset, fd, file_offset, length);
}

int64_t lite_recvfile(struct lite_ctx* ctx, lite_lh_t lh, uint64_t offset, int fd,
                      int64_t* file_offset, uint64_t length) noexcept {
    return move(ctx, LITE_IOC_RECVFILE, lh, offset, fd, file_offset, length);
}
