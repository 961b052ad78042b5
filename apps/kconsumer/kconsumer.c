// SPDX-License-Identifier: GPL-2.0
/*
 * kconsumer: how a kernel module uses memory of another machine through LITE.
 *
 *	modprobe lite; litectl start ...; litectl join ...
 *	insmod kconsumer.ko node=2
 *
 * Loading it allocates an LMR on node 2, writes to it, reads back, uses atomics, memory operations
 * and a file, checks that LITE refuses invalid requests, and frees everything. On a mismatch
 * loading fails with the errno, and the kernel log says where. Once loaded it does nothing.
 *
 * All of LITE's calls may sleep, so use process context.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/file.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/shmem_fs.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include <lite/kapi.h>

static unsigned int index;
module_param(index, uint, 0444);
MODULE_PARM_DESC(index, "the N of this machine's /dev/liteN (default 0)");

static unsigned int node;
module_param(node, uint, 0444);
MODULE_PARM_DESC(node, "id of the node to allocate on (default: this node)");

static unsigned long size = SZ_1M;
module_param(size, ulong, 0444);
MODULE_PARM_DESC(size, "bytes to allocate, 16 B to 64 MB (default 1 MB)");

static char *name;
module_param(name, charp, 0444);
MODULE_PARM_DESC(name, "name of the LMR (default: anonymous)");

/* Log the step that failed; the errno alone does not tell. */
static int failed(const char *step, int err)
{
	pr_err("%s: %pe\n", step, ERR_PTR(err));
	return err;
}

static int try_transfer(struct lite_ctx *ctx, u64 lh)
{
	void *out = kvmalloc(size, GFP_KERNEL);
	void *in = kvzalloc(size, GFP_KERNEL);
	int err = -ENOMEM;

	if (!out || !in)
		goto done;
	get_random_bytes(out, size);

	err = lite_lmr_write(ctx, lh, 0, out, size);
	if (err) {
		failed("write", err);
		goto done;
	}
	/* Make the data visible to processors: of the LMR's nodes, then of all nodes. */
	err = lite_lmr_fence(ctx, lh) ?: lite_lmr_fence(ctx, 0);
	if (err) {
		failed("fence", err);
		goto done;
	}
	err = lite_lmr_read(ctx, lh, 0, in, size);
	if (err) {
		failed("read", err);
		goto done;
	}
	if (memcmp(out, in, size))
		err = failed("what was read is not what was written", -EIO);
done:
	kvfree(in);
	kvfree(out);
	return err;
}

/* Atomics work on aligned 8-byte words and return the previous value. */
static int try_atomics(struct lite_ctx *ctx, u64 lh)
{
	u64 word = 40, old;
	int err;

	err = lite_lmr_write(ctx, lh, 8, &word, sizeof(word));
	if (err)
		return failed("write a word", err);

	err = lite_lmr_fetch_add(ctx, lh, 8, 2, &old);
	if (err)
		return failed("fetch-add", err);
	if (old != 40)
		return failed("fetch-add returned a wrong value", -EIO);

	err = lite_lmr_cmp_swap(ctx, lh, 8, 42, 1, &old);
	if (err)
		return failed("compare-and-swap", err);
	if (old != 42)
		return failed("compare-and-swap returned a wrong value", -EIO);

	err = lite_lmr_read(ctx, lh, 8, &word, sizeof(word));
	if (err)
		return failed("read a word", err);
	return word == 1 ? 0 : failed("compare-and-swap did not swap", -EIO);
}

/* Atomics that the kernel of the word's node executes, as devices cannot. */
static int try_words(struct lite_ctx *ctx, u64 lh)
{
	u64 a, b, c;
	int err;

	err = lite_lmr_swap(ctx, lh, 8, 12, NULL);
	if (!err)
		err = lite_lmr_fetch_or(ctx, lh, 8, 3, &a);
	if (!err)
		err = lite_lmr_fetch_and(ctx, lh, 8, 6, &b);
	if (!err)
		err = lite_lmr_swap(ctx, lh, 8, 0, &c);
	if (err)
		return failed("swap, or, and", err);
	if (a != 12 || b != 15 || c != 6)
		return failed("swap, or, and returned wrong values", -EIO);
	return 0;
}

/* The node that has the memory executes these: no data comes here. */
static int try_memory(struct lite_ctx *ctx, u64 lh)
{
	u64 half = size / 2, equal;
	u32 one, other;
	int err;

	err = lite_lmr_set(ctx, lh, 0, size, "kernel", 6);
	if (err)
		return failed("set", err);
	err = lite_lmr_copy(ctx, lh, half, lh, 0, half);
	if (err)
		return failed("copy", err);
	err = lite_lmr_compare(ctx, lh, 0, lh, half, half, &equal);
	if (err)
		return failed("compare", err);
	if (equal != half)
		return failed("a copy differs from what was copied", -EIO);
	err = lite_lmr_checksum(ctx, lh, 0, half, 0, &one);
	if (!err)
		err = lite_lmr_checksum(ctx, lh, half, half, 0, &other);
	if (err)
		return failed("checksum", err);
	return one == other ? 0 : failed("checksums of equal data differ", -EIO);
}

/* Move the data to a file and back. A file from filp_open() would do as well. */
static int try_file(struct lite_ctx *ctx, u64 lh)
{
	struct file *file = shmem_file_setup("kconsumer", size, 0);
	u32 before, after;
	loff_t pos = 0;
	s64 moved;
	int err;

	if (IS_ERR(file))
		return failed("make a file", PTR_ERR(file));
	moved = lite_lmr_recvfile(ctx, lh, 0, file, &pos, U64_MAX);
	err = lite_lmr_checksum(ctx, lh, 0, size, 0, &before);
	if (!err)
		err = lite_lmr_set(ctx, lh, 0, size, "", 1);
	if (err || moved != size || pos != size) {
		err = failed("receive a file", err ?: moved < 0 ? moved : -EIO);
		goto put;
	}
	pos = 0;
	moved = lite_lmr_sendfile(ctx, lh, 0, file, &pos, size);
	err = lite_lmr_checksum(ctx, lh, 0, size, 0, &after);
	if (err || moved != size || pos != size)
		err = failed("send a file", err ?: moved < 0 ? moved : -EIO);
	else if (before != after)
		err = failed("what was sent is not what was received", -EIO);
put:
	fput(file);
	return err;
}

static int try_bounds(struct lite_ctx *ctx, u64 lh)
{
	u8 bytes[2];
	int err;

	err = lite_lmr_read(ctx, lh, size - 1, bytes, 1);
	if (err)
		return failed("read the last byte", err);

	err = lite_lmr_read(ctx, lh, size - 1, bytes, 2);
	if (err != -ERANGE)
		return failed("a read beyond the end was not refused with -ERANGE",
			      err ?: -EIO);
	return 0;
}

/* LITE runs these in parallel, in any order; each has a result and an error. */
static int try_vector(struct lite_ctx *ctx, u64 lh)
{
	u64 words[2] = { 7, 8 };
	struct lite_op ops[] = {
		{
			.size = sizeof(ops[0]),
			.opcode = LITE_OP_WRITE,
			.lh = lh,
			.length = sizeof(words[0]),
			.buf = (uintptr_t)&words[0],
		}, {
			.size = sizeof(ops[0]),
			.opcode = LITE_OP_READ,
			.lh = lh,
			.offset = size - 1,
			.length = 2,
			.buf = (uintptr_t)&words[1],
		}, {
			.size = sizeof(ops[0]),
			.opcode = LITE_OP_FETCH_ADD,
			.lh = lh,
			.offset = 8,
			.length = sizeof(u64),
			.operand = 1,
		},
	};
	int ret = lite_lmr_vector(ctx, ops, ARRAY_SIZE(ops));

	if (ret < 0)
		return failed("vector", ret);
	if (ret != 1 || ops[0].error || ops[1].error != -ERANGE ||
	    ops[2].error || ops[0].result != sizeof(words[0]))
		return failed("vector: wrong errors", -EIO);
	ops[1].offset = 0;
	ops[1].length = sizeof(words[1]);
	ret = lite_lmr_vector(ctx, &ops[1], 1);
	if (ret)
		return failed("vector of one", ret < 0 ? ret : -EIO);
	return words[1] == 7 ? 0 : failed("vector did not write", -EIO);
}

static int __init kconsumer_init(void)
{
	struct lite_lmr_params params = {
		.name = name,
		.length = size,
		.nodes = &node,
		.n_nodes = node ? 1 : 0,
		.mode = 0600,
	};
	struct lite_ctx *ctx;
	int err, free_err;
	u64 lh;

	if (size < 16 || size > SZ_64M)
		return -EINVAL;

	ctx = lite_ctx_open(index);
	if (IS_ERR(ctx))
		return failed("open /dev/liteN", PTR_ERR(ctx));

	/* If the node schedules operations, those of this context give way to most others. */
	err = lite_ctx_set_priority(ctx, LITE_PRIORITY(5));
	if (!err && lite_ctx_set_priority(ctx, LITE_PRIORITY_MAX + 1) != -EINVAL)
		err = -EPROTO;
	if (err) {
		failed("set a priority", err);
		goto close;
	}
	err = lite_lmr_alloc(ctx, &params, &lh);
	if (err) {
		failed("allocate", err);
		goto close;
	}

	err = try_transfer(ctx, lh);
	if (!err)
		err = try_atomics(ctx, lh);
	if (!err)
		err = try_words(ctx, lh);
	if (!err)
		err = try_memory(ctx, lh);
	if (!err)
		err = try_vector(ctx, lh);
	if (!err)
		err = try_file(ctx, lh);
	if (!err)
		err = try_bounds(ctx, lh);

	/* lite_ctx_close() would also free it, unless it has a name. */
	free_err = lite_lmr_free(ctx, lh);
	if (free_err)
		failed("free", free_err);
	err = err ?: free_err;
	if (!err)
		pr_info("%lu bytes on node %u written, read back and verified; atomics and bounds are right\n",
			size, node ?: lite_ctx_node_id(ctx));
close:
	lite_ctx_close(ctx);
	return err;
}
module_init(kconsumer_init);

/* Nothing to undo, but a module without an exit function cannot be unloaded. */
static void __exit kconsumer_exit(void)
{
}
module_exit(kconsumer_exit);

MODULE_DESCRIPTION("Example of a kernel module that uses memory of another machine through LITE");
MODULE_AUTHOR("The LITE authors");
MODULE_LICENSE("GPL");
