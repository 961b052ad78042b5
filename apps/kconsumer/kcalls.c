// SPDX-License-Identifier: GPL-2.0
/*
 * kcalls: how a kernel module serves functions, and calls functions of other nodes.
 *
 *	modprobe lite; litectl start ...; litectl join ...
 *	insmod kcalls.ko                 on node 2, which then serves
 *	insmod kcalls.ko node=2          on another node, which calls node 2
 *
 * While loaded it serves two functions: "kcalls-sort" sorts the bytes of a request and may sleep;
 * "kcalls-sum" adds them up, and is short, so the receive handler of requests runs it. Loading the
 * module calls both functions on this node, and on the other node, if given, and checks the
 * replies. If one is wrong, loading fails with an errno, and the kernel log says where.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <lite/kapi.h>

/* Bytes of the longest request: too many for a ring, which handlers do not notice. */
#define MOST (512U << 10)
/* For a call, in ms. The default of 5 s may be too short for a machine that is busy with others. */
#define CALL_MS 60000

static unsigned int index;
module_param(index, uint, 0444);
MODULE_PARM_DESC(index, "the N of this machine's /dev/liteN (default 0)");

static unsigned int node;
module_param(node, uint, 0444);
MODULE_PARM_DESC(node, "id of another node that has it loaded (default: none)");

static struct lite_ctx *ctx;
static struct lite_kfunc *sorter, *adder;
static atomic_t messages = ATOMIC_INIT(0);

static int failed(const char *step, int err)
{
	pr_err("%s: %pe\n", step, ERR_PTR(err));
	return err;
}

/* Counting sort: fast enough for long requests in one work item. */
static void sort_bytes(u8 *to, const u8 *from, u32 length)
{
	u32 count[256] = {};
	u32 i;

	for (i = 0; i < length; i++)
		count[from[i]]++;
	for (i = 0; i < ARRAY_SIZE(count); i++) {
		memset(to, i, count[i]);
		to += count[i];
	}
}

static int do_sort(void *priv, const struct lite_krequest *req, void *reply,
		   u32 *status)
{
	if (req->oneway) {
		atomic_inc(&messages);
		return 0;
	}
	sort_bytes(reply, req->data, req->length);
	*status = req->node;
	return req->length;
}

static int do_sum(void *priv, const struct lite_krequest *req, void *reply,
		  u32 *status)
{
	const u8 *data = req->data;
	u64 sum = 0;
	u32 i;

	/* The caller gets -ECONNRESET; try_sum() checks that. */
	if (!req->length)
		return -EINVAL;
	for (i = 0; i < req->length; i++)
		sum += data[i];
	memcpy(reply, &sum, sizeof(sum));
	return sizeof(sum);
}

static int serve(void)
{
	struct lite_kfunc_params p = {
		.name = "kcalls-sort",
		.mode = 0666,
		.max_request = MOST,
		.max_reply = MOST,
		.handler = do_sort,
	};

	sorter = lite_kfunc_register(ctx, &p);
	if (IS_ERR(sorter))
		return failed("register", PTR_ERR(sorter));
	p.name = "kcalls-sum";
	p.max_reply = sizeof(u64);
	p.is_short = true;
	p.handler = do_sum;
	adder = lite_kfunc_register(ctx, &p);
	if (IS_ERR(adder)) {
		lite_kfunc_unregister(sorter);
		return failed("register", PTR_ERR(adder));
	}
	return 0;
}

static int try_sum(unsigned int at, u8 *data, u32 length)
{
	struct lite_function function;
	u32 got = 0, i;
	u64 sum = 0, said = 0;
	int err;

	err = lite_function_find(ctx, at, "kcalls-sum", &function);
	if (err)
		return failed("find", err);
	/* Any user could serve that name. */
	if (function.uid)
		return failed("the server is not root's", -EPERM);
	for (i = 0; i < length; i++)
		sum += data[i];
	err = lite_function_call(ctx, &function, data, length, &said,
				 sizeof(said), &got, CALL_MS, NULL);
	if (err)
		return failed("call", err);
	if (got != sizeof(said) || said != sum)
		return failed("the sum is wrong", -EIO);
	err = lite_function_call(ctx, &function, data, length, &said, 7,
				 &got, CALL_MS, NULL);
	if (err != -EMSGSIZE || got != sizeof(said))
		return failed("a reply that does not fit", err ?: -EIO);
	err = lite_function_call(ctx, &function, data, 0, &said,
				 sizeof(said), &got, CALL_MS, NULL);
	if (err != -ECONNRESET)
		return failed("a handler that fails", err ?: -EIO);
	return 0;
}

static int try_sort(unsigned int at, u8 *data, u32 length)
{
	u8 *reply = kvmalloc(length, GFP_KERNEL);
	u32 got = 0, status = 0, i;
	struct lite_function function;
	int err;

	if (!reply)
		return -ENOMEM;
	err = lite_function_find(ctx, at, "kcalls-sort", &function);
	if (!err)
		err = lite_function_call(ctx, &function, data, length,
					 reply, length, &got, CALL_MS,
					 &status);
	if (err) {
		failed("call", err);
		goto out;
	}
	if (got != length || status != lite_ctx_node_id(ctx))
		err = failed("the answer is wrong", -EIO);
	for (i = 1; i < length && !err; i++) {
		if (reply[i - 1] > reply[i])
			err = failed("what came back is not sorted", -EIO);
	}
	if (!err) {
		err = lite_function_send(ctx, &function, data, length,
					 CALL_MS);
		if (err)
			failed("send", err);
	}
out:
	kvfree(reply);
	return err;
}

static int try_node(unsigned int at)
{
	u8 *data = kvmalloc(MOST, GFP_KERNEL);
	u32 lengths[] = { 1, 64, 1000, 4096, LITE_RPC_BYTES_MAX + 1, MOST };
	int err = 0;
	int i, k;

	if (!data)
		return -ENOMEM;
	for (i = 0; i < MOST; i++)
		data[i] = i * 7919 >> 3;
	for (i = 0; i < ARRAY_SIZE(lengths) && !err; i++) {
		for (k = lengths[i] > 4096 ? 48 : 0; k < 50 && !err; k++)
			err = try_sum(at, data, lengths[i]) ?:
			      try_sort(at, data, lengths[i]);
	}
	kvfree(data);
	return err;
}

static int __init kcalls_init(void)
{
	int err;

	ctx = lite_ctx_open(index);
	if (IS_ERR(ctx))
		return failed("open", PTR_ERR(ctx));
	err = serve();
	if (err)
		goto close;
	err = try_node(0);
	if (!err && node)
		err = try_node(node);
	if (err) {
		lite_kfunc_unregister(adder);
		lite_kfunc_unregister(sorter);
		goto close;
	}
	pr_info("serving functions %u and %u of node %u\n",
		lite_kfunc_number(sorter), lite_kfunc_number(adder),
		lite_ctx_node_id(ctx));
	return 0;
close:
	lite_ctx_close(ctx);
	return err;
}

static void __exit kcalls_exit(void)
{
	lite_kfunc_unregister(adder);
	lite_kfunc_unregister(sorter);
	lite_ctx_close(ctx);
	pr_info("%d messages came\n", atomic_read(&messages));
}

module_init(kcalls_init);
module_exit(kcalls_exit);
MODULE_DESCRIPTION("LITE example: functions of a kernel module");
MODULE_LICENSE("GPL");
