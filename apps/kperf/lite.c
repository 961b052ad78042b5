// SPDX-License-Identifier: GPL-2.0
/* The arm LITE: an LMR on the other node; each request is one call of include/lite/kapi.h. */
#include <linux/slab.h>

#include <lite/kapi.h>

#include "session.h"

struct kperf_lite {
	struct lite_ctx *ctx;
	u64 lh;
};

static int kperf_lite_connect(struct kperf_session *s,
			      const struct kperf_connect *c)
{
	struct lite_lmr_params params = {
		.length = c->bytes,
		.nodes = &c->node,
		.n_nodes = c->node ? 1 : 0,
		.mode = 0600,
	};
	struct kperf_lite *lite;
	int err;

	lite = kzalloc(sizeof(*lite), GFP_KERNEL);
	if (!lite)
		return -ENOMEM;
	lite->ctx = lite_ctx_open(c->index);
	if (IS_ERR(lite->ctx)) {
		err = PTR_ERR(lite->ctx);
		goto err_free;
	}
	err = lite_lmr_alloc(lite->ctx, &params, &lite->lh);
	if (err)
		goto err_close;
	s->arm = lite;
	return 0;
err_close:
	lite_ctx_close(lite->ctx);
err_free:
	kfree(lite);
	return err;
}

static int kperf_lite_call(struct kperf_session *s, u32 op, u32 length,
			   u64 *old)
{
	struct kperf_lite *lite = s->arm;

	switch (op) {
	case KPERF_READ:
		return lite_lmr_read(lite->ctx, lite->lh, 0, s->chunk[0],
				     length);
	case KPERF_WRITE:
		return lite_lmr_write(lite->ctx, lite->lh, 0, s->chunk[0],
				      length);
	default:
		return lite_lmr_fetch_add(lite->ctx, lite->lh, 0, 1, old);
	}
}

static void kperf_lite_disconnect(struct kperf_session *s)
{
	struct kperf_lite *lite = s->arm;

	lite_ctx_close(lite->ctx);
	kfree(lite);
}

const struct kperf_arm_ops kperf_lite_ops = {
	.connect = kperf_lite_connect,
	.call = kperf_lite_call,
	.disconnect = kperf_lite_disconnect,
};
