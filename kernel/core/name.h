/* SPDX-License-Identifier: GPL-2.0 */
/* Names of LMRs, and which node is the directory for a name. */
#ifndef _LITE_CORE_NAME_H
#define _LITE_CORE_NAME_H

#include "types.h"

/*
 * Check a name in a field of @size bytes. It must have 1..@size - 1 bytes, and neither control
 * characters (below 0x20) nor DEL, which a terminal would obey. Other bytes have no meaning: '/' is
 * not special, and UTF-8 passes. Return: the length; -ENAMETOOLONG: there is no NUL; -EINVAL.
 */
int lite_name_check(const char *name, size_t size);

/* 64-bit hash of a name of @len bytes, without NUL; the same on every node. */
u64 lite_name_hash(const char *name, size_t len);

/*
 * The weight of @node for a name with the hash @hash. The directory of a name is the live node with
 * the greatest weight, the lowest id among equals. A node that comes or goes moves only its own
 * names (Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998).
 */
u64 lite_rendezvous_weight(u64 hash, u32 node);

#endif /* _LITE_CORE_NAME_H */
