// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings are cached by name and user, so that mapping a name again makes no call: decisions.rst
 * has figures.
 *
 * A home recalls an LMR from all mappers before it takes a right away, renames it or frees it. So
 * while a mapping is ACTIVE and its session with the home alive, the home would grant now what it
 * has granted for a name and user. Refusals are not cached: a new grant recalls nothing. An entry
 * has a reference to its mapping, so this node stays a mapper for LITE_NAME_CACHE_TIME or more.
 */
#include <linux/jhash.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "ctx.h"
#include "pool.h"

/* Entries, at most: a pool of all users. */
#define LITE_NAME_CACHE_MAX 2048
#define LITE_NAME_CACHE_RESERVE (LITE_NAME_CACHE_MAX / 8)
/* Entries that are unused for this long, at most twice that, are dropped. */
#define LITE_NAME_CACHE_TIME HZ

struct lite_cached_name {
	struct hlist_node hash; /* by name */
	struct lite_mapping *m; /* with a reference, as is @user */
	struct lite_user *user;
	u32 rights;             /* LITE_RIGHT_* that were granted */
	unsigned long used;     /* jiffies of the last use */
	char name[LITE_NAME_SIZE];
};

static struct lite_pool *lite_name_cache_pool(struct lite_memory *mem)
{
	return &mem->fab->pools[LITE_POOL_CACHED_NAMES];
}

static u32 lite_name_cache_key(const struct lite_name_cache *cache, const char *name)
{
	return jhash(name, strlen(name), cache->salt);
}

static struct lite_cached_name *lite_name_cache_lookup(struct lite_name_cache *cache, u32 key,
						       const char *name,
						       const struct lite_user *user)
{
	struct lite_cached_name *k;

	lockdep_assert_held(&cache->lock);
	hash_for_each_possible(cache->names, k, hash, key) {
		if (!strcmp(k->name, name) &&
		    (k->user == user || lite_cred_equal(&k->user->cred, &user->cred)))
			return k;
	}
	return NULL;
}

/* Would the home still grant this? If not, the entry is useless. */
static bool lite_name_cache_true(const struct lite_cached_name *k)
{
	return READ_ONCE(k->m->state) == LITE_MAPPING_ACTIVE && lite_mapping_current(k->m);
}

/*
 * Look up a mapping that the home would grant for a name, a user and @rights. Context: any process.
 * Return: the mapping with a reference for a handle, or NULL: ask the home.
 */
struct lite_mapping *lite_name_cache_find(struct lite_memory *mem, const char *name,
					  const struct lite_user *user, u32 rights)
{
	struct lite_name_cache *cache = &mem->name_cache;
	u32 key = lite_name_cache_key(cache, name);
	struct lite_mapping *m = NULL;
	struct lite_cached_name *k;

	spin_lock(&cache->lock);
	k = lite_name_cache_lookup(cache, key, name, user);
	if (k && !(rights & ~k->rights) && lite_name_cache_true(k)) {
		k->used = jiffies;
		m = k->m;
		refcount_inc(&m->ref);
	}
	spin_unlock(&cache->lock);
	return m;
}

static void lite_name_cache_free(struct lite_cached_name *k)
{
	lite_mapping_put(k->m);
	lite_user_put(k->user);
	kfree(k);
}

/*
 * Remember that the home granted a user @rights by a MAP by name. The caller has a reference to the
 * mapping @m. Does nothing if there is no memory, or the user has no entry left. May sleep; may
 * call homes.
 */
void lite_name_cache_add(struct lite_memory *mem, const char *name, struct lite_user *user,
			 u32 rights, struct lite_mapping *m)
{
	struct lite_name_cache *cache = &mem->name_cache;
	struct lite_pool *pool = lite_name_cache_pool(mem);
	u32 key = lite_name_cache_key(cache, name);
	struct lite_cached_name *k, *old;
	struct lite_pool_part *part;

	part = lite_pool_hold(pool, user->cred.uid, GFP_KERNEL);
	if (!part)
		return;
	k = kmalloc(sizeof(*k), GFP_KERNEL_ACCOUNT);
	if (!k)
		goto out;
	strscpy(k->name, name, sizeof(k->name));
	refcount_inc(&m->ref);
	k->m = m;
	refcount_inc(&user->ref);
	k->user = user;
	k->rights = rights;
	k->used = jiffies;

	spin_lock(&cache->lock);
	old = lite_name_cache_lookup(cache, key, name, user);
	if (old) {
		/* The same mapping: both grants hold. */
		if (old->m == m)
			k->rights |= old->rights;
		hash_del(&old->hash);
		lite_pool_give_part(pool, part, 1);
	}
	if (!lite_pool_take_part(pool, part, 1)) {
		hash_add(cache->names, &k->hash, key);
		k = NULL;
	}
	spin_unlock(&cache->lock);
	queue_delayed_work(mem->wq, &cache->work, LITE_NAME_CACHE_TIME);
	if (old)
		lite_name_cache_free(old);
	if (k)
		lite_name_cache_free(k);
out:
	lite_pool_drop(pool, part);
}

/* Drop stale entries, and those not used after @since. Return: are any left? */
static bool lite_name_cache_expire(struct lite_memory *mem, unsigned long since)
{
	struct lite_name_cache *cache = &mem->name_cache;
	struct lite_pool *pool = lite_name_cache_pool(mem);
	struct hlist_node *tmp;
	struct lite_cached_name *k;
	HLIST_HEAD(gone);
	u32 i;

	for (i = 0; i < HASH_SIZE(cache->names); i++) {
		spin_lock(&cache->lock);
		hlist_for_each_entry_safe(k, tmp, &cache->names[i], hash) {
			if (time_after(k->used, since) && lite_name_cache_true(k))
				continue;
			hash_del(&k->hash);
			lite_pool_give(pool, k->user->cred.uid, 1);
			hlist_add_head(&k->hash, &gone);
		}
		spin_unlock(&cache->lock);
		cond_resched();
	}
	hlist_for_each_entry_safe(k, tmp, &gone, hash) {
		lite_name_cache_free(k);
		cond_resched();
	}
	return lite_pool_used(pool);
}

static void lite_name_cache_work(struct work_struct *work)
{
	struct lite_memory *mem = container_of(work, struct lite_memory, name_cache.work.work);

	if (lite_name_cache_expire(mem, jiffies - LITE_NAME_CACHE_TIME))
		queue_delayed_work(mem->wq, &mem->name_cache.work, LITE_NAME_CACHE_TIME);
}

/* Drop all entries but those added concurrently. May sleep; calls homes. */
void lite_name_cache_forget(struct lite_memory *mem)
{
	lite_name_cache_expire(mem, jiffies);
	cancel_delayed_work_sync(&mem->name_cache.work);
	if (lite_name_cache_expire(mem, jiffies))
		queue_delayed_work(mem->wq, &mem->name_cache.work, LITE_NAME_CACHE_TIME);
}

void lite_name_cache_init(struct lite_memory *mem)
{
	lite_pool_init(lite_name_cache_pool(mem), LITE_NAME_CACHE_MAX, LITE_NAME_CACHE_RESERVE);
	spin_lock_init(&mem->name_cache.lock);
	hash_init(mem->name_cache.names);
	mem->name_cache.salt = get_random_u32();
	INIT_DELAYED_WORK(&mem->name_cache.work, lite_name_cache_work);
}
