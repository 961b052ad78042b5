/* SPDX-License-Identifier: GPL-2.0 */
/* User mappings of LMRs (mmap). view.c */
#ifndef _LITE_VIEW_H
#define _LITE_VIEW_H

#include <linux/mm_types.h>

struct lite_access;
struct lite_mapping;
struct lite_memory;

/**
 * struct lite_view - a user mapping of a part of an LMR
 * @mem: node's
 * @list: in @m
 * @m: mapping whose pages may be in page tables; NULL: none; under views_lock
 * @zapping: those who take its pages out of page tables just now
 * @inode: of the file that the VMAs map, and of no other
 * @offset: in the LMR, of its first byte
 * @length: bytes
 */
struct lite_view {
	struct lite_memory *mem;
	struct list_head list;
	struct lite_mapping *m;
	atomic_t zapping;
	struct inode *inode;
	u64 offset;
	u64 length;
};

void lite_view_init(struct lite_view *v, struct lite_memory *mem, u64 offset,
		    u64 length);
void lite_view_exit(struct lite_view *v);
int lite_view_check(const struct lite_view *v, const struct lite_access *a);
int lite_view_fault(struct lite_view *v, const struct lite_access *a,
		    struct vm_fault *vmf);
int lite_view_ask(const struct lite_access *a);
int lite_view_renew(const struct lite_access *a);
void lite_mapping_drain(struct lite_mapping *m);

#endif /* _LITE_VIEW_H */
