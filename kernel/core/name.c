// SPDX-License-Identifier: GPL-2.0
#include "name.h"

int lite_name_check(const char *name, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++) {
		unsigned char c = (unsigned char)name[i];

		if (!c)
			return i ? (int)i : -EINVAL;
		if (c < 0x20 || c == 0x7f)
			return -EINVAL;
	}
	return -ENAMETOOLONG;
}

/* The finalizer of MurmurHash3 (public domain): every bit affects every bit. */
static u64 lite_mix64(u64 x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	x ^= x >> 33;
	return x;
}

u64 lite_name_hash(const char *name, size_t len)
{
	u64 h = 0xcbf29ce484222325ULL; /* FNV-1a */
	size_t i;

	for (i = 0; i < len; i++) {
		h ^= (unsigned char)name[i];
		h *= 0x100000001b3ULL;
	}
	return lite_mix64(h);
}

u64 lite_rendezvous_weight(u64 hash, u32 node)
{
	return lite_mix64(hash ^ lite_mix64(node));
}
