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
 * @m: mapping with pages in page tables, or NULL; under views_lock
 * @zapping: threads that are removing its pages from page tables
 * @inode: of the file that the VMAs map; not shared with other views
 * @offset: of its first byte in the LMR
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

void lite_view_exit(struct lite_view *v);
int lite_view_attach(struct lite_view *v, struct lite_mapping *m, bool write);
struct page *lite_view_page(const struct lite_mapping *m, u64 offset,
			    size_t *n);
void lite_mapping_drain(struct lite_mapping *m);

/* handle/fault.c */
int lite_view_check(const struct lite_view *v, const struct lite_access *a);
int lite_view_fault(struct lite_view *v, const struct lite_access *a,
		    struct vm_fault *vmf);
int lite_view_ask(const struct lite_access *a);
int lite_view_renew(const struct lite_access *a);

#endif /* _LITE_VIEW_H */
