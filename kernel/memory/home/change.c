// SPDX-License-Identifier: GPL-2.0
/*
 * Changing an LMR in use, at its home: owner, mode, grants and name; move.c changes where its bytes
 * are. One change at a time begins, closes the LMR, changes it and ends. While the LMR is closed no
 * MAP is granted, and every mapper has answered RECALL: it has no operation in flight, and maps
 * anew before its next one.
 *
 * All users wait from close to end, so nothing in between waits for user space. RECALLs queue up
 * with those for other LMRs of the same owner; other waits end with the time-outs of calls and
 * copies.
 */
#include "memory/memory.h"
#include "home.h"

/* A change waits this long for earlier ones. */
#define LITE_CHANGE_TIMEOUT (120 * HZ)
/* A node that awaits the end of a change asks again after this time. */
#define LITE_AWAIT_TIME (2 * HZ)

/* Set @flag (@changing or @renaming) once it is clear. The caller clears it, and wakes waiters. */
static int lite_lmr_claim(struct lite_lmr *lmr, bool *flag)
{
	long left = LITE_CHANGE_TIMEOUT;
	int err;

	for (;;) {
		spin_lock(&lmr->lock);
		err = lmr->dying ? -ENOENT : *flag ? -EBUSY : 0;
		if (!err)
			*flag = true;
		spin_unlock(&lmr->lock);
		if (err != -EBUSY)
			return err;
		left = lite_crowd_wait_timeout(&lmr->changed,
					       !READ_ONCE(*flag) || READ_ONCE(lmr->dying), left);
		if (left <= 0)
			return left ? -EINTR : -ETIMEDOUT;
	}
}

/*
 * Stop all use of an LMR on which a change has begun. May sleep; makes leaf calls. Return: 0, or an
 * errno of lite_mappers_recall(). In any case the caller opens it again with lite_change_end().
 */
int lite_change_close(struct lite_lmr *lmr)
{
	int err;

	spin_lock(&lmr->lock);
	lmr->closed = true;
	spin_unlock(&lmr->lock);
	err = lite_mappers_recall(lmr);
	if (err)
		return err;
	/* End the chunks, which have no generation: requests still executed elsewhere name them. */
	if (lmr->unpinned)
		lmr->mem->rooms->unpinned_recall(lmr->unpinned);
	spin_lock(&lmr->lock);
	lmr->generation++;
	spin_unlock(&lmr->lock);
	return 0;
}

/* End a change, done or not: open the LMR again. May sleep. */
void lite_change_end(struct lite_lmr *lmr)
{
	bool dying;

	spin_lock(&lmr->lock);
	lmr->closed = false;
	lmr->changing = false;
	dying = lmr->dying;
	spin_unlock(&lmr->lock);
	lite_crowd_wake(&lmr->changed);
	if (dying && !lmr->of)
		lite_home_reap(lmr);
}

/* Rights of the requesting user, limited to those of the handle. */
static u32 lite_change_rights(struct lite_lmr *lmr, struct lite_conn *conn,
			      const struct lite_wire_change *c)
{
	return lite_lmr_rights(lmr, conn, &c->cred) & le32_to_cpu(c->rights);
}

/* Return: 0; -ENOENT: the locked LMR no longer has the name by which the requester knows it. */
static int lite_change_named(struct lite_lmr *lmr, const struct lite_wire_change *c)
{
	lockdep_assert_held(&lmr->lock);
	return c->name[0] && strcmp(c->name, lmr->name) ? -ENOENT : 0;
}

/* May @conn (NULL: this node) change a locked LMR? Return: 0; -ENOENT: it was renamed; -EPERM. */
int lite_change_check_locked(struct lite_lmr *lmr, struct lite_conn *conn,
			     const struct lite_wire_change *c)
{
	int err = lite_change_named(lmr, c);

	if (!err && !(lite_change_rights(lmr, conn, c) & LITE_RIGHT_MASTER))
		err = -EPERM;
	return err;
}

static int lite_change_check(struct lite_lmr *lmr, struct lite_conn *conn,
			     const struct lite_wire_change *c)
{
	int err;

	spin_lock(&lmr->lock);
	err = lite_change_check_locked(lmr, conn, c);
	spin_unlock(&lmr->lock);
	return err;
}

/*
 * Begin a change that a master (@conn; NULL: this node) requests. Waits for earlier changes, and
 * then checks its rights again. May sleep; killable. Return: 0: to be ended with lite_change_end();
 * -EPERM; -ENOENT: being freed, or renamed; -ETIMEDOUT: other changes go on; -EINTR.
 */
int lite_change_open(struct lite_lmr *lmr, struct lite_conn *conn, const struct lite_wire_change *c)
{
	int err = lite_change_check(lmr, conn, c) ?: lite_lmr_claim(lmr, &lmr->changing);

	if (err)
		return err;
	err = lite_change_check(lmr, conn, c);
	if (err)
		lite_change_end(lmr);
	return err;
}

/* Set a grant, for which there is room, or remove it if it has no rights. */
static void lite_grant_set(struct lite_acl *acl, const struct lite_grant *g)
{
	u32 i = lite_grant_find(acl, g->uid, g->node);

	if (g->rights) {
		acl->grants[i] = *g;
		acl->n_grants = max(acl->n_grants, i + 1);
	} else if (i < acl->n_grants) {
		acl->grants[i] = acl->grants[--acl->n_grants];
	}
}

/* Check a request to set a grant. @adds: is it a new one? @takes: does it take rights away? */
static int lite_grant_check(struct lite_lmr *lmr, struct lite_conn *conn,
			    const struct lite_wire_change *c, const struct lite_grant *g,
			    bool *adds, bool *takes)
{
	struct lite_acl *acl = &lmr->acl;
	u32 old = 0, i;
	int err;

	spin_lock(&lmr->lock);
	err = lite_change_named(lmr, c);
	i = lite_grant_find(acl, g->uid, g->node);
	if (i < acl->n_grants)
		old = acl->grants[i].rights;
	*adds = g->rights && i == acl->n_grants;
	*takes = old & ~g->rights;
	if (!err && !lite_grant_allowed(lite_change_rights(lmr, conn, c), old, g->rights))
		err = -EACCES;
	else if (!err && *adds && i == LITE_GRANTS_MAX)
		err = -ENOSPC;
	spin_unlock(&lmr->lock);
	return err;
}

int lite_serve_grant(struct lite_lmr *lmr, struct lite_conn *conn, const void *req, void *reply)
{
	const struct lite_wire_set_grant *s = req;
	const struct lite_grant g = {
		.uid = le32_to_cpu(s->grant.uid),
		.node = le32_to_cpu(s->grant.node),
		.rights = le32_to_cpu(s->grant.rights),
	};
	bool adds, takes;
	int err;

	/* Check first: a user without the right must not keep others from changing the LMR. */
	err = lite_grant_check(lmr, conn, &s->change, &g, &adds, &takes) ?:
	      lite_lmr_claim(lmr, &lmr->changing);
	if (err)
		return err;
	err = lite_grant_check(lmr, conn, &s->change, &g, &adds, &takes);
	if (!err && adds)
		err = lite_lmr_grow_grants(lmr);
	if (!err && takes)
		err = lite_change_close(lmr);
	spin_lock(&lmr->lock);
	if (!err)
		lite_grant_set(&lmr->acl, &g);
	spin_unlock(&lmr->lock);
	lite_change_end(lmr);
	return err;
}

int lite_serve_grants(struct lite_lmr *lmr, struct lite_conn *conn, const void *req, void *reply)
{
	struct lite_wire_grants_reply *r = reply;
	u32 n;

	spin_lock(&lmr->lock);
	for (n = 0; n < lmr->acl.n_grants; n++) {
		const struct lite_grant *g = &lmr->acl.grants[n];

		r->grant[n].uid = cpu_to_le32(g->uid);
		r->grant[n].node = cpu_to_le32(g->node);
		r->grant[n].rights = cpu_to_le32(g->rights);
	}
	spin_unlock(&lmr->lock);
	r->count = cpu_to_le32(n);
	return struct_size(r, grant, n);
}

/*
 * As in chown(2), root may set any uid and gid; other masters may set only the gid, to one of their
 * groups. The groups of a squashed root do not count.
 */
static int lite_setattr_allowed(struct lite_lmr *lmr, struct lite_conn *conn,
				const struct lite_wire_setattr *s)
{
	struct lite_cred cred;
	u32 uid = le32_to_cpu(s->uid);
	u32 gid = le32_to_cpu(s->gid);

	lite_wire_cred_get(&cred, &s->change.cred);
	if (!cred.uid) {
		if (!conn || !lmr->mem->root_squash)
			return 0;
		cred.gid = LITE_UID_NOBODY;
		cred.n_groups = 0;
	}
	if (uid != LITE_KEEP && uid != lmr->acl.uid)
		return -EPERM;
	if (gid != LITE_KEEP && gid != lmr->acl.gid && !lite_cred_in_group(&cred, gid))
		return -EPERM;
	return 0;
}

int lite_serve_setattr(struct lite_lmr *lmr, struct lite_conn *conn, const void *req, void *reply)
{
	const struct lite_wire_setattr *s = req;
	struct lite_acl *acl = &lmr->acl;
	int err;

	err = lite_change_open(lmr, conn, &s->change);
	if (err)
		return err;
	spin_lock(&lmr->lock);
	err = lite_setattr_allowed(lmr, conn, s);
	spin_unlock(&lmr->lock);
	err = err ?: lite_change_close(lmr);
	if (!err) {
		spin_lock(&lmr->lock);
		if (le32_to_cpu(s->uid) != LITE_KEEP)
			acl->uid = le32_to_cpu(s->uid);
		if (le32_to_cpu(s->gid) != LITE_KEEP)
			acl->gid = le32_to_cpu(s->gid);
		if (le32_to_cpu(s->mode) != LITE_KEEP)
			acl->mode = le32_to_cpu(s->mode);
		spin_unlock(&lmr->lock);
	}
	lite_change_end(lmr);
	return err;
}

/*
 * Reserve the name before the change begins, because that may wait long for other claims, or fail.
 * @unused: set, once the name is reserved, to the one of the two names that the LMR does not have.
 */
static int lite_home_rename(struct lite_lmr *lmr, struct lite_conn *conn,
			    const struct lite_wire_rename *r, const char **unused)
{
	struct lite_memory *mem = lmr->mem;
	const char *to;
	bool same;
	int err;

	spin_lock(&lmr->lock);
	same = !strcmp(lmr->name, r->name);
	spin_unlock(&lmr->lock);
	if (same)
		return 0;
	to = lite_lmr_name_new(lmr, r->name);
	if (IS_ERR(to))
		return PTR_ERR(to);
	err = lite_name_reserve(mem, to, lmr->id, lmr->charged_to);
	if (err) {
		lite_lmr_name_free(lmr, to);
		return err;
	}
	*unused = to;
	err = lite_change_open(lmr, conn, &r->change);
	if (err)
		return err;
	/* RECALL the mappers, as nodes cache the name of a mapping. */
	err = lite_change_close(lmr);
	if (err)
		goto out;
	/* Both names find the LMR. As it is closed, a MAP by either waits and then looks again. */
	lite_name_show(mem, to, lmr->id);
	spin_lock(&lmr->lock);
	/* An anonymous LMR may have lost its maker meanwhile. */
	if (lmr->dying)
		err = -ENOENT;
	else
		swap(lmr->name, *unused);
	spin_unlock(&lmr->lock);
out:
	lite_change_end(lmr);
	return err;
}

/* Finish a rename, if there is one: tell all members. Run by a worker. May sleep. */
void lite_rename_end(struct lite_lmr *lmr)
{
	const char *unused;

	spin_lock(&lmr->lock);
	unused = lmr->unused;
	spin_unlock(&lmr->lock);
	if (!unused)
		return;
	lite_name_confirm(lmr->mem, lmr->name, lmr->id);
	if (unused[0])
		lite_name_drop(lmr->mem, unused, lmr->id);
	lite_lmr_name_free(lmr, unused);
	spin_lock(&lmr->lock);
	lmr->unused = NULL;
	lmr->renaming = false;
	spin_unlock(&lmr->lock);
	lite_crowd_wake(&lmr->changed);
}

int lite_serve_rename(struct lite_lmr *lmr, struct lite_conn *conn, const void *req, void *reply)
{
	int err = lite_change_check(lmr, conn, req);
	const char *unused = NULL;

	/* One at a time, as a reservation is identified by name and LMR only. */
	err = err ?: lite_lmr_claim(lmr, &lmr->renaming);
	if (err)
		return err;
	err = lite_home_rename(lmr, conn, req, &unused);
	/* A worker does the rest, even if this thread is killed: members may be silent. */
	spin_lock(&lmr->lock);
	lmr->unused = unused;
	lmr->renaming = unused;
	spin_unlock(&lmr->lock);
	if (!unused) {
		lite_crowd_wake(&lmr->changed);
		return err;
	}
	lite_home_reap(lmr);
	lite_crowd_wait_timeout(&lmr->changed, READ_ONCE(lmr->unused) != unused,
				MAX_SCHEDULE_TIMEOUT);
	return err;
}

int lite_serve_await(struct lite_lmr *lmr, struct lite_conn *conn, const void *req, void *reply)
{
	long left = lite_crowd_wait_timeout(&lmr->changed,
					    !READ_ONCE(lmr->closed) || READ_ONCE(lmr->dying),
					    LITE_AWAIT_TIME);

	return left < 0 ? -EINTR : 0;
}
