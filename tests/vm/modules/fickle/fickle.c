// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel client that changes its operations while LITE executes them, for tests: after LITE has
 * checked their lengths, just before it packs them into messages. Loading it is the test.
 */
#include <linux/kprobes.h>
#include <linux/module.h>

#include <lite/kapi.h>

#define N 16 /* operations of a kind: enough to go in messages */
#define BYTES 64
#define TOO_LONG 60000

static uint node;
module_param(node, uint, 0444);
MODULE_PARM_DESC(node, "where the bytes are");

static struct lite_op ops[2 * N];
static u8 out[N][BYTES], in[N][BYTES];
static atomic_t changed;

static void fill(u64 lh)
{
	int i;

	for (i = 0; i < 2 * N; i++) {
		bool write = i < N;

		memset(out[i % N], 'a' + i % N, BYTES);
		ops[i] = (struct lite_op){
			.size = sizeof(ops[i]),
			.opcode = write ? LITE_OP_WRITE : LITE_OP_READ,
			.lh = lh,
			.offset = i % N * BYTES,
			.length = BYTES,
			.buf = (uintptr_t)(write ? out[i] : in[i - N]),
		};
	}
}

/* Runs before lite_pack_run(). No other client uses the node, so these are its operations. */
static int change(struct kprobe *probe, struct pt_regs *regs)
{
	int i;

	for (i = 0; i < 2 * N; i++)
		WRITE_ONCE(ops[i].length, TOO_LONG);
	atomic_inc(&changed);
	return 0;
}

static struct kprobe probe = {
	.symbol_name = "lite_pack_run",
	.pre_handler = change,
};

static int check(int failed)
{
	int i;

	if (failed) {
		pr_err("fickle: %d failed\n", failed);
		return -EIO;
	}
	for (i = 0; i < 2 * N; i++) {
		if (ops[i].result != BYTES) {
			pr_err("fickle: %llu bytes\n", ops[i].result);
			return -EIO;
		}
	}
	return 0;
}

static int run(struct lite_ctx *ctx)
{
	struct lite_lmr_params params = {
		.length = PAGE_SIZE, .nodes = &node, .n_nodes = 1, .mode = 0600,
	};
	int i, err;
	u64 lh;

	err = lite_lmr_alloc(ctx, &params, &lh);
	for (i = 0; i < 20 && !err; i++) {
		fill(lh);
		err = check(lite_lmr_vector(ctx, ops, 2 * N));
	}
	fill(lh);
	if (!err && (!atomic_read(&changed) || memcmp(in, out, sizeof(in))))
		err = -ENODATA;
	return err;
}

static int __init fickle_init(void)
{
	struct lite_ctx *ctx = lite_ctx_open(0);
	int err;

	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	err = register_kprobe(&probe);
	if (!err) {
		err = run(ctx);
		unregister_kprobe(&probe);
	}
	lite_ctx_close(ctx);
	return err;
}
module_init(fickle_init);

static void __exit fickle_exit(void)
{
}
module_exit(fickle_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A client that changes its operations meanwhile, for tests");
