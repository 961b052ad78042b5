// SPDX-License-Identifier: GPL-2.0
/* Addresses of nodes, as sockaddr and in wire format. */
#include <net/ipv6.h>

#include "fabric.h"

/* @addr: IPv4 or IPv6, with port. */
void lite_addr_to_wire(struct lite_wire_addr *w, const struct sockaddr_storage *addr)
{
	struct in6_addr ip;

	memset(w, 0, sizeof(*w));
	if (addr->ss_family == AF_INET) {
		const struct sockaddr_in *sin = (const void *)addr;

		ipv6_addr_set_v4mapped(sin->sin_addr.s_addr, &ip);
		w->port = cpu_to_le16(ntohs(sin->sin_port));
	} else {
		const struct sockaddr_in6 *sin6 = (const void *)addr;

		ip = sin6->sin6_addr;
		w->port = cpu_to_le16(ntohs(sin6->sin6_port));
	}
	memcpy(w->ip, &ip, sizeof(w->ip));
}

/* Decode an address from a peer. Returns 0, or -EINVAL: not the address of a node. */
int lite_addr_from_wire(struct sockaddr_storage *addr, const struct lite_wire_addr *w)
{
	struct in6_addr ip;

	memcpy(&ip, w->ip, sizeof(ip));
	memset(addr, 0, sizeof(*addr));
	if (!w->port || ipv6_addr_any(&ip))
		return -EINVAL;
	if (ipv6_addr_v4mapped(&ip)) {
		struct sockaddr_in *sin = (void *)addr;

		sin->sin_family = AF_INET;
		sin->sin_addr.s_addr = ip.s6_addr32[3];
		sin->sin_port = htons(le16_to_cpu(w->port));
	} else {
		struct sockaddr_in6 *sin6 = (void *)addr;

		sin6->sin6_family = AF_INET6;
		sin6->sin6_addr = ip;
		sin6->sin6_port = htons(le16_to_cpu(w->port));
	}
	return 0;
}

/* Are address and port the same? */
bool lite_addr_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct lite_wire_addr wa, wb;

	lite_addr_to_wire(&wa, a);
	lite_addr_to_wire(&wb, b);
	return !memcmp(&wa, &wb, sizeof(wa));
}
