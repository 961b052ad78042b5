// SPDX-License-Identifier: GPL-2.0
/*
 * Compare-and-swap on words of LMRs by the kernel itself. The layer above keeps locks in words, and
 * has to release them even for processes that have lost the right, closed the handle or exited.
 *
 * The operation enters this node's mapping of the LMR. If there is none, the LMR is mapped and kept
 * for a while, as for memory operations (peer_mapping.c). REVOKE and RECALL wait for it as for any
 * operation; it waits for a change of the LMR without having entered it.
 */
#include "memory/io/devop.h"
#include "memory/memory.h"
#include "wait.h"
#include "word.h"

/* Attempts that fail before anything is posted; a wait or call follows each. */
#define LITE_WORD_TRIES 100

/*
 * Look up the word that a handle and an offset name. The handle's mapping may be unusable. Context:
 * any. Return: 0; -EBADF; -EOPNOTSUPP: the LMR is unpinned, so the word is not always within reach.
 */
int lite_word_of(struct lite_ctx *ctx, u64 lh, u64 offset, struct lite_word *word)
{
	const struct lite_mapping *m;
	struct lite_handle *h;
	int err = -EBADF;

	rcu_read_lock();
	h = lite_handle_find(ctx, lh);
	if (h) {
		/* Any mapping that the handle ever has is of this LMR. */
		m = rcu_dereference(h->mapping);
		*word = (struct lite_word){
			.home = m->home,
			.uid = h->user->cred.uid,
			.incarnation = m->home_incarnation,
			.id = m->id,
			.offset = offset,
		};
		err = m->chunked ? -EOPNOTSUPP : 0;
	}
	rcu_read_unlock();
	return err;
}

static struct lite_wire_range lite_word_range(const struct lite_word *w)
{
	return (struct lite_wire_range){
		.id = cpu_to_le64(w->id),
		.incarnation = cpu_to_le64(w->incarnation),
		.home = cpu_to_le32(w->home),
	};
}

static int lite_word_prepare(struct lite_memory *mem, const struct lite_word *w)
{
	const struct lite_wire_range range = lite_word_range(w);
	int err = lite_peer_mapping_prepare(mem, &range);

	if (err == -EBUSY)
		err = lite_mapping_await(mem, w->home, w->id);
	else if (err == -ENOENT)
		err = lite_home_gone(mem, w->home, w->incarnation);
	return err == -EHOSTUNREACH ? -EHOSTDOWN : err;
}

/*
 * Try once, with this node's mapping. If it fails with @d->posted unset, lite_word_recover() takes
 * the errno, and @suspect with its reference.
 */
static int lite_word_try(struct lite_memory *mem, const struct lite_word *w, struct lite_devop *d,
			 u64 *old, struct lite_peer **suspect)
{
	const struct lite_wire_range range = lite_word_range(w);
	struct lite_bounce *bounce = lite_bounce_get(mem->fab);
	struct lite_peer *peer;
	int err;

	if (!bounce)
		return -EINTR;
	d->m = lite_mapping_enter(mem, &range);
	err = PTR_ERR_OR_ZERO(d->m);
	if (err)
		goto out;
	err = lite_atomic_check(w->offset - d->m->base, sizeof(u64), d->m->length);
	if (!err) {
		err = lite_atomic_run(d, bounce);
		/* The completion handler has left the LMR: lite_word_prepare() does the waiting. */
		if (err == -EHOSTDOWN && !d->posted && !d->m)
			err = -ENOLINK;
		peer = err == -EHOSTDOWN && !d->posted ? lite_devop_share(d)->peer : NULL;
		if (peer && lite_peer_is_suspect(peer)) {
			refcount_inc(&peer->ref);
			*suspect = peer;
		}
	}
	lite_devop_exit(d);
	if (!err)
		memcpy(old, bounce->data, sizeof(*old));
out:
	lite_bounce_put(mem->fab, bounce);
	return err;
}

/* Remove what prevented posting. Return: 0: try again; or an errno. */
static int lite_word_recover(struct lite_memory *mem, const struct lite_word *w, int err,
			     struct lite_peer *suspect)
{
	/* -EAGAIN: there is a newer session, or the LMR is about to be changed. */
	if (err == -EAGAIN || err == -ENOLINK)
		return lite_word_prepare(mem, w);
	if (err == -EUNATCH)
		return lite_atomic_connect(mem);
	if (!suspect)
		return err;
	err = lite_peer_await(suspect);
	lite_peer_put(suspect);
	return err;
}

/*
 * Compare and swap a word of an LMR. Sets @old, and @posted: it may have been done, even if it
 * failed. May sleep; killable; makes calls. Return: 0; -EIDRM, -ESTALE: the LMR is gone; -ERANGE:
 * the word was cut off; -EHOSTDOWN, -ETIMEDOUT, -EIO, -ENOMEM, -EINTR and others.
 */
int lite_word_cmp_swap(struct lite_memory *mem, const struct lite_word *word, u64 expected,
		       u64 desired, u64 *old, bool *posted)
{
	struct lite_devop d = {
		.opcode = LITE_OP_CMP_SWAP,
		.offset = word->offset,
		.operand = expected,
		.swap = desired,
	};
	struct lite_peer *suspect;
	int tries, err;

	*posted = false;
	if (!mem->fab->atomics)
		return -EOPNOTSUPP;
	for (tries = 0; tries < LITE_WORD_TRIES; tries++) {
		err = lite_cluster_ready(mem->cl);
		if (err)
			return err;
		suspect = NULL;
		err = lite_word_try(mem, word, &d, old, &suspect);
		*posted = d.posted;
		if (!err || *posted)
			return err;
		err = lite_word_recover(mem, word, err, suspect);
		if (err)
			return err == -EHOSTDOWN ? lite_cluster_ready(mem->cl) ?: err : err;
		/* A change may take long: end with a signal, or with the node. */
		if (lite_given_up())
			return -EINTR;
	}
	return lite_cluster_ready(mem->cl) ?: -EHOSTDOWN;
}
