/* SPDX-License-Identifier: MIT */
/*
 * liblite: requests taken in place, without a copy, and without a system call for
 * as long as there are some. Included by lite.h; what rpc.h says holds, and errno
 * values are also those of <uapi/lite_inbox.h>.
 *
 *    lite_rpc_register(ctx, &params, &fn);
 *    lite_inbox_open(ctx, fn, 0, &inbox);
 *    lite_inbox_next(inbox, -1, &req, &data);
 *    for (;;)
 *        lite_inbox_reply_next(inbox, &req, &data, 0, data, req.length, -1);
 *
 * A request that was taken stays where it is, and as it is, until it is given back:
 * by an answer, by lite_inbox_done(), when the context is closed, or the process
 * exits. Its caller may have given up long before.
 *
 * A child does not have its parent's inboxes: it opens its own, with a context of
 * its own and a SHARED function. All that it may do with one that it has inherited
 * is to lite_inbox_close() it, which frees its own memory and is of no consequence
 * for the parent.
 */
#ifndef LITE_INBOX_H
#define LITE_INBOX_H

#include <lite/rpc.h>
#include <uapi/lite_inbox.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct lite_inbox;

/*
 * lite_inbox_open - take requests for a function in place
 * @ctx: context; is to live as long as the inbox
 * @function: registered by it
 * @depth: requests that may be in the inbox, or taken from it and not given back;
 *    0: LITE_INBOX_DEPTH_DEFAULT, at most LITE_INBOX_DEPTH_MAX
 * @inbox: set; any number of threads may use it at the same time
 *
 * Whoever waits in lite_rpc_recv() for this function gets requests, too. Of
 * several processes that serve it, the one with the fewest requests gets the next.
 *
 * Return: 0, -ENOENT (@ctx does not serve it), -EBUSY (it has an inbox for it),
 * -EACCES (this process does not act as the function's owner), -EOPNOTSUPP (the
 * function's maxima are above LITE_RPC_BYTES_MAX), -EINVAL, -ENOMEM.
 */
int lite_inbox_open(struct lite_ctx* ctx, uint32_t function, uint32_t depth,
                    struct lite_inbox** inbox) LITE_NOEXCEPT;

/*
 * lite_inbox_close - the counterpart of lite_inbox_open()
 * @inbox: that nobody uses; or NULL
 *
 * What was not taken goes to others who serve the function, or is refused. What was
 * taken can be answered by lite_rpc_reply(), but not read any more.
 */
void lite_inbox_close(struct lite_inbox* inbox) LITE_NOEXCEPT;

/*
 * lite_inbox_next - take a request
 * @inbox: inbox
 * @timeout_ms: LITE_FOREVER by default
 * @request: set; a message has a token, too
 * @data: set to its first byte, at a multiple of 64; @request->length follow
 *
 * Return: 0, -EAGAIN (LITE_NOWAIT), -ETIMEDOUT, -EINTR, -ENOENT (the function
 * is not served by this context any more), -ENODEV, -ENOMEM.
 */
int lite_inbox_next(struct lite_inbox* inbox, int timeout_ms, struct lite_rpc_request* request,
                    const void** data) LITE_NOEXCEPT;

/*
 * lite_inbox_reply - answer a request
 * @inbox: inbox
 * @token: of the request, not of a message
 * @status: for the caller
 * @reply: bytes; may be the request itself, from its first byte
 * @length: of them
 *
 * That the caller has given up is no error.
 *
 * Return: 0, -ENOENT, -EFAULT, -E2BIG, -EINVAL (an answer to a message), -ENOMEM.
 * But for -ENOENT it may be answered again, or given back by lite_inbox_done().
 */
int lite_inbox_reply(struct lite_inbox* inbox, uint64_t token, uint32_t status, const void* reply,
                     size_t length) LITE_NOEXCEPT;

/*
 * lite_inbox_done - give a request back that is not to be answered
 * @inbox: inbox
 * @token: of a message, or of a call, whose caller gets -ECONNRESET then
 *
 * Return: 0, -ENOENT.
 */
int lite_inbox_done(struct lite_inbox* inbox, uint64_t token) LITE_NOEXCEPT;

/*
 * lite_inbox_reply_next - answer a request, and take the next one
 * @inbox: inbox
 * @request: with a token: to be answered, or, if it is a message, given back; set
 *    to the next one
 * @data: set
 * @status: as for lite_inbox_reply()
 * @reply: likewise
 * @length: likewise
 * @timeout_ms: as for lite_inbox_next()
 *
 * That is one system call; if it is a message, mostly none: several of them are
 * given back together, at the latest when there is nothing to be taken.
 *
 * When it fails @request->token is 0 if the request was answered, and what it was
 * if not.
 *
 * Return: as lite_inbox_next() and lite_inbox_reply(), of which -ENOMEM passes:
 * see rpc.h.
 */
int lite_inbox_reply_next(struct lite_inbox* inbox, struct lite_rpc_request* request,
                          const void** data, uint32_t status, const void* reply, size_t length,
                          int timeout_ms) LITE_NOEXCEPT;

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* LITE_INBOX_H */
