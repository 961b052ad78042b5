// SPDX-License-Identifier: MIT
//
// Texts of LITE's errno values: those of <uapi/lite.h> and <uapi/lite_sync.h>, of opening and
// joining, and, where the meaning differs, of <uapi/lite_rpc.h>.

#include <lite/lite.h>

#include <cerrno>
#include <cstring>

namespace {

// Unsigned arithmetic can negate even INT_MIN, which is no errno either way.
int positive(int err) noexcept {
    const auto number = static_cast<unsigned int>(err);
    return static_cast<int>(err < 0 ? 0U - number : number);
}

}  // namespace

const char* lite_strerror(int err) noexcept {
    const int code = positive(err);
    switch (code) {
        case 0:
            return "success";
        case EBADF:
            return "not a handle of this context, or no longer";
        case EIDRM:
            return "the LMR was freed";
        case ESTALE:
            return "the node that kept the LMR restarted and lost it";
        case EACCES:
            return "permission denied by the LMR's mode or the handle's rights";
        case EPERM:
            return "only a master of the LMR may do that: its owner, root, or a user made master "
                   "by them; with a lock, only its holder";
        case ERANGE:
            return "beyond the end of the LMR";
        case EINVAL:
            return "malformed argument";
        case E2BIG:
            return "too long, or with features that this version of LITE does not know";
        case EFAULT:
            return "bad address of a buffer";
        case EOPNOTSUPP:
            return "not supported by this version of LITE or by the RDMA device";
        case EPROTONOSUPPORT:
            return "the loaded module, or the node to join, has another version of LITE (after an "
                   "upgrade: litectl stop, rmmod lite, litectl start)";
        case ENOTTY:
            return "this version of the LITE module does not know the request";
        case ENAMETOOLONG:
            return "name is too long (255 bytes at most, 63 for functions)";
        case ENOENT:
            return "no LMR of that name";
        case EEXIST:
            return "an LMR of that name exists";
        case EHOSTUNREACH:
            return "no node of that id in this cluster";
        case EHOSTDOWN:
            return "the node is down";
        case EREMOTE:
            return "a part of the range is in another node's memory";
        case ENOTCONN:
            return "this node is in no cluster";
        case ENODEV:
            return "no such LITE node on this machine (not started, or stopped)";
        case EFBIG:
            return "larger than the largest possible LMR";
        case ENOSPC:
            return "the memory that the node gives to LMRs is used up";
        case EDQUOT:
            return "the user's share of memory for LMRs, of locked memory or of locks is used up";
        case EMFILE:
            return "too many handles, locks or open files";
        case ENOMEM:
            return "out of memory";
        case ETIMEDOUT:
            return "a node did not answer in time";
        case EINTR:
            return "interrupted by a signal";
        case EAGAIN:
            return "it would have to wait";
        case ECONNREFUSED:
            return "no process serves that function there";
        case ECONNRESET:
            return "the server ended without an answer";
        case EMSGSIZE:
            return "the message is larger than the buffer for it";
        case ENOBUFS:
            return "the node has no memory left for rings";
        case ECANCELED:
            return "cancelled";
        case EPROTO:
            return "a node answered with something malformed";
        case EIO:
            return "the RDMA device failed the operation";
        case EOWNERDEAD:
            return "locked, but its previous holder died";
        case ENOTRECOVERABLE:
            return "the lock is broken: it was given up after a holder had died";
        case EBUSY:
            return "another holder has the lock";
        case EDEADLK:
            return "the caller has the lock already";
        case ENOLCK:
            return "the lock was lost while the node counted as dead";
        default:
            break;
    }
    const char* text = ::strerrordesc_np(code);
    return text ? text : "unknown error";
}

const char* lite_rpc_strerror(int err) noexcept {
    switch (positive(err)) {
        case EACCES:
            return "permission denied by the function's mode";
        case EPERM:
            return "numbers up to 1023 are root's";
        case EEXIST:
            return "its number or name is taken";
        case ENOENT:
            return "this program does not serve the function, or the request or call has ended";
        case E2BIG:
            return "longer than the function's requests, or replies, may be";
        case EMFILE:
            return "too many functions, or calls under way";
        case ENAMETOOLONG:
            return "name is too long (63 bytes at most)";
        case ENOMEM:
            return "out of memory, or the node gives no more to long requests and replies";
        default:
            return lite_strerror(err);
    }
}
