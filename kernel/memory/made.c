// SPDX-License-Identifier: GPL-2.0
/*
 * Anonymous LMRs at other nodes, at the node that made them.
 *
 * Such an LMR is there until the last handle on it is closed, in whatever session
 * that is: sessions with its home come and go meanwhile, each with a mapping of
 * its own, and handles that are not used keep old ones. So all mappings that the
 * maker's handles have or had count as users of one struct lite_made. With the
 * last of them the home is told to free the LMR: in the UNMAP of that mapping, or,
 * when its session is over, in an UNMAP of nothing in the next one.
 *
 * A home that lives anew has no such LMR; and when our life is over, homes free
 * what we have made (orphan.c).
 */
#include <linux/slab.h>

#include "memory.h"

/**
 * struct lite_made - an anonymous LMR that this node has made
 * @list: in mem->made, when the home is to hear that we have let go
 * @home: its home
 * @incarnation: of that
 * @id: its id there
 * @users: mappings; under map_lock
 */
struct lite_made {
	struct list_head list;
	u32 home;
	u64 incarnation;
	u64 id;
	u32 users;
};

/**
 * lite_made_new - an anonymous LMR has been made
 * @home: its home
 * @r: what that says
 *
 * Context: may sleep.
 * Return: for lite_made_attach() or kfree(); NULL: no memory.
 */
struct lite_made *lite_made_new(u32 home, const struct lite_wire_map_reply *r)
{
	struct lite_made *made = kzalloc(sizeof(*made), GFP_KERNEL_ACCOUNT);

	if (!made)
		return NULL;
	made->home = home;
	made->incarnation = le64_to_cpu(r->share[0].incarnation);
	made->id = le64_to_cpu(r->id);
	return made;
}

static void lite_made_use(struct lite_mapping *m, struct lite_made *made)
{
	lockdep_assert_held(&m->mem->map_lock);
	if (!made || m->made)
		return;
	m->made = made;
	made->users++;
}

/**
 * lite_made_attach - a mapping is what the maker's first handle has
 * @m: mapping, with a reference
 * @made: of lite_made_new(), which goes with it; NULL: it is no such mapping
 *
 * Context: any process.
 */
void lite_made_attach(struct lite_mapping *m, struct lite_made *made)
{
	spin_lock(&m->mem->map_lock);
	lite_made_use(m, made);
	spin_unlock(&m->mem->map_lock);
}

/**
 * lite_made_inherit - a handle is to have another mapping
 * @m: which, with a reference
 * @from: that it has now
 *
 * Context: any process.
 */
void lite_made_inherit(struct lite_mapping *m, const struct lite_mapping *from)
{
	spin_lock(&m->mem->map_lock);
	lite_made_use(m, from->made);
	spin_unlock(&m->mem->map_lock);
}

/**
 * lite_made_detach - a mapping ends
 * @m: mapping, which no handle has; map_lock is held
 *
 * Return: what was made, if that was its last mapping: for lite_made_over(); or
 * NULL.
 */
struct lite_made *lite_made_detach(struct lite_mapping *m)
{
	struct lite_made *made = m->made;

	lockdep_assert_held(&m->mem->map_lock);
	m->made = NULL;
	return made && !--made->users ? made : NULL;
}

/**
 * lite_made_over - nobody here has a handle on it any more
 * @mem: node's
 * @made: goes
 * @told: its home knows
 *
 * Context: any process; otherwise the home is told in the background.
 */
void lite_made_over(struct lite_memory *mem, struct lite_made *made, bool told)
{
	if (told) {
		kfree(made);
		return;
	}
	spin_lock(&mem->map_lock);
	list_add_tail(&made->list, &mem->made);
	spin_unlock(&mem->map_lock);
	/* There may be a new session already. */
	queue_work(mem->wq, &mem->made_work);
}

/* True: its home knows, or does not have it any more. */
static bool lite_made_tell(struct lite_memory *mem, const struct lite_made *made)
{
	struct lite_peer *peer = lite_peer_find(mem->cl, made->home);
	struct lite_conn *conn;
	bool over;

	if (!peer)
		return true;
	conn = lite_peer_conn_get(peer);
	over = READ_ONCE(peer->left) ||
	       READ_ONCE(peer->incarnation) != made->incarnation;
	lite_peer_put(peer);
	if (!conn)
		return over;
	over = conn->from.incarnation != made->incarnation ||
	       lite_mapping_give_back(mem, conn, made->id, 0, LITE_UNMAP_LAST);
	lite_conn_put(conn);
	return over;
}

/* Those that are left are told of when members change. */
void lite_made_work(struct work_struct *work)
{
	struct lite_memory *mem = container_of(work, struct lite_memory,
					       made_work);
	struct lite_made *made, *tmp;
	LIST_HEAD(todo);

	spin_lock(&mem->map_lock);
	list_splice_init(&mem->made, &todo);
	spin_unlock(&mem->map_lock);
	list_for_each_entry_safe(made, tmp, &todo, list) {
		if (lite_made_tell(mem, made)) {
			list_del(&made->list);
			kfree(made);
		}
		cond_resched();
	}
	spin_lock(&mem->map_lock);
	list_splice(&todo, &mem->made);
	spin_unlock(&mem->map_lock);
}

/**
 * lite_made_drop - our life is over, and homes know or will learn it
 * @mem: node's; made_work is not running, and no session is left
 *
 * Context: process.
 */
void lite_made_drop(struct lite_memory *mem)
{
	struct lite_made *made, *tmp;
	LIST_HEAD(todo);

	spin_lock(&mem->map_lock);
	list_splice_init(&mem->made, &todo);
	spin_unlock(&mem->map_lock);
	list_for_each_entry_safe(made, tmp, &todo, list)
		kfree(made);
}
