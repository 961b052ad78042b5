// SPDX-License-Identifier: GPL-2.0
/*
 * Requests about an LMR to its home: of lmr_info.c, lmr_change.c and move_steps.c.
 *
 * A request by handle names the handle's user and rights, and the home permits what both allow. A
 * request by name is permitted by the user's rights alone. If it is for a change, it carries the
 * name, because the LMR may be renamed, and another LMR get its name, before the home serves the
 * request.
 */
#include "memory/memory.h"
#include "memory/store/store.h"
#include "home_request.h"

/*
 * Time for the home to wait for all mappers, and to zero or copy memory. A change's is longer than
 * the home waits for earlier changes (home/change.c).
 */
#define LITE_FREE_TIMEOUT (60 * HZ)
#define LITE_ASK_TIMEOUT (180 * HZ)

/* Does a request change nothing, and need no right? */
static bool lite_home_request_looks(const struct lite_home_request *q)
{
	return q->d.len == sizeof(struct lite_wire_id);
}

/* @name: the name that the LMR must have, or empty. */
static void lite_home_request_as(struct lite_home_request *q, u64 id, const char *name, u32 rights,
				 const struct lite_cred *cred)
{
	struct lite_wire_change *c = (void *)q->d.req;

	c->id = cpu_to_le64(id);
	if (lite_home_request_looks(q))
		return;
	c->rights = cpu_to_le32(rights);
	lite_wire_cred_put(&c->cred, cred);
	strscpy(c->name, name, sizeof(c->name));
}

static int lite_home_request_by_handle(struct lite_home_request *q)
{
	/* The home decides what a grant needs. */
	bool any = lite_home_request_looks(q) || q->d.call == LITE_CALL_LMR_GRANT;
	const struct lite_access a = {
		.ctx = q->ctx,
		.lh = q->target->lh,
		.right = any ? 0 : LITE_RIGHT_MASTER,
	};
	struct lite_mapping *m;
	struct lite_handle *h;

	m = lite_access_enter(&a);
	if (IS_ERR(m))
		return PTR_ERR(m);
	/* Ids are never reused, so home and id stay valid after leaving. */
	q->home = m->home;
	/* A home that has restarted would say that the LMR was freed; with @life it is -ESTALE. */
	q->d.life = m->home_incarnation;
	rcu_read_lock();
	h = lite_handle_find(q->ctx, q->target->lh);
	if (h)
		lite_home_request_as(q, m->id, "", READ_ONCE(h->rights), &h->user->cred);
	rcu_read_unlock();
	lite_access_exit(m);
	return h ? 0 : -EBADF;
}

static int lite_home_request_send(struct lite_home_request *q)
{
	const struct lite_wire_change *c = q->d.req;
	struct lite_memory *mem = q->ctx->mem;
	struct lite_payer *payer;
	int err;

	q->d.killable = true;
	if (lite_home_request_looks(q)) {
		err = lite_cluster_call_patiently(mem->cl, q->home, &q->d);
	} else {
		q->d.timeout = q->d.call == LITE_CALL_LMR_FREE ? LITE_FREE_TIMEOUT :
								 LITE_ASK_TIMEOUT;
		payer = lite_payer_begin(mem, q->home, le64_to_cpu(c->id));
		q->d.held = &payer->ref;
		q->d.release = lite_payer_release;
		q->d.once = true;
		err = lite_cluster_call_patiently(mem->cl, q->home, &q->d);
		lite_payer_end(payer);
	}
	return lite_home_error(mem, q->home, err);
}

/*
 * Find the next home that may have a name. @at: zeroed at first but for @name, and @ask_all if the
 * directory was asked. The directory may be stale: if the home that it names does not have the LMR,
 * all homes are asked. May sleep; killable; makes leaf calls. Return: true: ask @at->home, set
 * @at->err, and call again; false: @at->err is the result.
 */
bool lite_name_search(struct lite_memory *mem, struct lite_name_search *at)
{
	if (at->tries == 2 || (at->tries && at->err != -ENOENT && at->err != -EHOSTUNREACH)) {
		if (at->err == -EHOSTUNREACH)
			at->err = -ENOENT;
		return false;
	}
	at->err = lite_name_lookup(mem, at->name, at->ask_all || at->tries, &at->home, &at->id);
	at->tries++;
	return !at->err;
}

/*
 * Ask the home of the LMR that @q->target names, by handle or by name. A change needs a handle with
 * LITE_RIGHT_MASTER, unless the home decides. May sleep; killable. Return: 0; errors of the home,
 * and of lite_access_enter() or lite_name_lookup(); -EIDRM: the LMR of the handle was freed.
 */
int lite_home_ask(struct lite_home_request *q)
{
	struct lite_name_search at = { .name = q->target->name };
	struct lite_memory *mem = q->ctx->mem;
	int err = lite_cluster_ready(mem->cl);

	if (err)
		return err;
	if (q->target->lh) {
		err = lite_home_request_by_handle(q) ?: lite_home_request_send(q);
		return err == -ENOENT ? -EIDRM : err;
	}
	if (q->id) {
		/* A later step of a move is for the same LMR, even if that was renamed. */
		lite_home_request_as(q, q->id, "", LITE_RIGHTS_ALL, q->target->cred);
		return lite_home_request_send(q);
	}
	while (lite_name_search(mem, &at)) {
		lite_home_request_as(q, at.id, at.name, LITE_RIGHTS_ALL, q->target->cred);
		q->home = at.home;
		at.err = lite_home_request_send(q);
	}
	if (!at.err)
		q->id = at.id;
	return at.err;
}
