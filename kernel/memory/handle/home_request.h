/* SPDX-License-Identifier: GPL-2.0 */
/* A request about an LMR to its home. */
#ifndef _LITE_HOME_REQUEST_H
#define _LITE_HOME_REQUEST_H

#include "ctx.h"

/* Set @ctx, @target, and @d but for what the LMR's place and the kind of call decide. */
struct lite_home_request {
	struct lite_ctx *ctx;
	const struct lite_target *target;
	u32 home;             /* asked last */
	u64 id;               /* of the LMR found by name; 0: none yet */
	/*
	 * The request begins with struct lite_wire_change or, if it changes nothing and may be
	 * repeated, is a struct lite_wire_id.
	 */
	struct lite_call_desc d;
};

int lite_home_ask(struct lite_home_request *q);

#endif /* _LITE_HOME_REQUEST_H */
