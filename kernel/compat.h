/* SPDX-License-Identifier: GPL-2.0 */
/* Code is written to the newest kernel's API; this file alone emulates what older ones lack. */
#ifndef _LITE_COMPAT_H
#define _LITE_COMPAT_H

#include <linux/crc32.h>
#include <linux/fs.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <net/genetlink.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

/* Spinlocks are taken with preemption off: fabric/cq.c. */
#ifdef CONFIG_PREEMPT_RT
#error "LITE does not work with PREEMPT_RT"
#endif

/* The attributes of a dump request are in struct genl_info since 6.6. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define genl_info_dump genl_dumpit_info
#endif

/* Since 6.6. */
#ifndef VM_SHADOW_STACK
#define VM_SHADOW_STACK VM_NONE
#endif

/* vm_flags_set() and mem_cgroup_tryget() exist since 6.3. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline bool mem_cgroup_tryget(struct mem_cgroup *memcg)
{
#ifdef CONFIG_MEMCG
	return !memcg || css_tryget(&memcg->css);
#else
	return true;
#endif
}
#endif

/* Since 6.6 a fault may hold the lock of its VMA instead of mmap_lock. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
static inline void release_fault_lock(struct vm_fault *vmf)
{
	mmap_read_unlock(vmf->vma->vm_mm);
}
#endif

/* 6.5 removed the argument for VMAs, which is unused here. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define pin_user_pages(addr, n, flags, pages) pin_user_pages(addr, n, flags, pages, NULL)
#define pin_user_pages_remote(mm, addr, n, flags, pages, locked) \
	pin_user_pages_remote(mm, addr, n, flags, pages, NULL, locked)
#endif

/* Exempts large arrays, which are read only where written, from stack initialisation. */
#if __has_attribute(__uninitialized__)
#define LITE_UNINIT __attribute__((__uninitialized__))
#else
#define LITE_UNINIT
#endif

/* Before 6.4 Soft-RoCE worked, and raised completion events, in tasklets. */
#define LITE_RXE_TASKLETS (LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0))

/*
 * From 6.4 to 6.9 Soft-RoCE copied wrong bytes into inline work requests of kernel clients (fixed
 * by "RDMA/rxe: Fix data copy for IB_SEND_INLINE"). Later kernels have not been tested enough.
 */
#define LITE_RXE_INLINES (LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0))

/* An io_uring command refers to its whole SQE since 6.5. */
static inline const void *lite_uring_payload(const struct io_uring_cmd *cmd)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	return cmd->sqe->cmd;
#else
	return cmd->cmd;
#endif
}

/* Since 6.8 vfs_iter_write() itself keeps the file system from freezing. */
static inline ssize_t lite_iter_write(struct file *file, struct iov_iter *iter, loff_t *pos)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
	return vfs_iter_write(file, iter, pos, 0);
#else
	ssize_t ret;

	file_start_write(file);
	ret = vfs_iter_write(file, iter, pos, 0);
	file_end_write(file);
	return ret;
#endif
}

/*
 * lite_shrinker_new() makes a shrinker; its callbacks get @data from lite_shrinker_data(). Since
 * 6.7 the kernel allocates it, with a place for @data. May sleep. Return: NULL: no memory.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
static inline void *lite_shrinker_data(struct shrinker *s)
{
	return s->private_data;
}

static inline struct shrinker *
lite_shrinker_new(unsigned long (*count)(struct shrinker *, struct shrink_control *),
		  unsigned long (*scan)(struct shrinker *, struct shrink_control *), void *data)
{
	struct shrinker *s = shrinker_alloc(0, "lite");

	if (!s)
		return NULL;
	s->count_objects = count;
	s->scan_objects = scan;
	s->private_data = data;
	shrinker_register(s);
	return s;
}

static inline void lite_shrinker_free(struct shrinker *s)
{
	shrinker_free(s);
}
#else
struct lite_shrinker {
	struct shrinker s;
	void *data;
};

static inline void *lite_shrinker_data(struct shrinker *s)
{
	return container_of(s, struct lite_shrinker, s)->data;
}

static inline struct shrinker *
lite_shrinker_new(unsigned long (*count)(struct shrinker *, struct shrink_control *),
		  unsigned long (*scan)(struct shrinker *, struct shrink_control *), void *data)
{
	struct lite_shrinker *own = kzalloc(sizeof(*own), GFP_KERNEL);

	if (!own)
		return NULL;
	own->data = data;
	own->s.count_objects = count;
	own->s.scan_objects = scan;
	own->s.seeks = DEFAULT_SEEKS;
	if (!register_shrinker(&own->s, "lite"))
		return &own->s;
	kfree(own);
	return NULL;
}

static inline void lite_shrinker_free(struct shrinker *s)
{
	unregister_shrinker(s);
	kfree(container_of(s, struct lite_shrinker, s));
}
#endif

/* CRC-32C without the module libcrc32c has this name since 6.14. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define crc32c __crc32c_le
#endif

#endif /* _LITE_COMPAT_H */
