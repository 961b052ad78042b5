// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel client that owns LMRs (owner.c), makes mistakes, and has a slow function, for tests.
 * Loading it is the test.
 * With @hold it stays loaded and serves a function, that of a node which then stops; unloading it
 * closes its context first, although that is wrong.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "client.h"

#define RUNNING 256	/* so many handlers of a function run at a time: WQ_DFL_ACTIVE */
#define NODES 5		/* of this machine; each has room for 64 messages to a function */
#define CALL_MS 60000

static uint node;
module_param(node, uint, 0444);
MODULE_PARM_DESC(node, "id of another node");

static bool hold;
module_param(hold, bool, 0444);
MODULE_PARM_DESC(hold, "serve a function until it is unloaded");

static struct lite_ctx *ctx, *others[NODES - 1];
static struct lite_kfunc *held;
static atomic_t handled;
static DECLARE_COMPLETION(release);

static int echo(void *priv, const struct lite_krequest *req, void *reply, u32 *status)
{
	return 0;
}

static int slow(void *priv, const struct lite_krequest *req, void *reply, u32 *status)
{
	atomic_inc(&handled);
	wait_for_completion(&release);
	return 0;
}

static struct lite_kfunc *serve(const char *name, u32 number, lite_kfunc_handler handler)
{
	struct lite_kfunc_params p = {
		.name = name, .function = number, .mode = 0666, .max_request = 64,
		.ring_size = LITE_RPC_RING_MAX, .handler = handler,
	};

	return lite_kfunc_register(ctx, &p);
}

static int call(struct lite_ctx *from, const struct lite_function *f)
{
	return lite_function_call(from, f, "hello", 5, NULL, 0, NULL, CALL_MS, NULL);
}

/* A function that was found is that one, and no later one of its number. */
static int successor(void)
{
	struct lite_kfunc *kf = serve("client-echo", 0, echo);
	struct lite_function found = { .uid = U32_MAX };
	u32 number;

	if (FAILS(!IS_ERR(kf)))
		return -EIO;
	number = lite_kfunc_number(kf);
	if (FAILS(!lite_function_find(ctx, 0, "client-echo", &found)) ||
	    FAILS(found.number == number && found.registration && !found.uid) ||
	    FAILS(!call(ctx, &found)))
		return -EIO;
	lite_kfunc_unregister(kf);
	if (FAILS(call(ctx, &found) == -ECONNREFUSED))
		return -EIO;
	kf = serve(NULL, number, echo);
	if (FAILS(!IS_ERR(kf)) ||
	    FAILS(call(ctx, &found) == -ECONNREFUSED))
		return -EIO;
	found.registration = 0;
	if (FAILS(!call(ctx, &found)))
		return -EIO;
	lite_kfunc_unregister(kf);
	return 0;
}

static int described(void)
{
	struct lite_lmr_params params = {
		.name = "client", .length = PAGE_SIZE, .nodes = &node, .n_nodes = 1, .mode = 0600,
	};
	u32 nodes[LITE_SPREAD_MAX], n = 0;
	struct lite_lmr_info info;
	u64 lh;

	if (FAILS(!lite_lmr_alloc(ctx, &params, &lh)) ||
	    FAILS(!lite_lmr_stat(ctx, lh, &info, nodes, &n)) ||
	    FAILS(info.length == PAGE_SIZE && !info.uid && info.home == node && n == 1) ||
	    FAILS(nodes[0] == node && !strcmp(info.name, "client")) ||
	    FAILS(!lite_lmr_resize(ctx, lh, 2 * PAGE_SIZE)) ||
	    FAILS(!lite_lmr_stat(ctx, lh, &info, NULL, NULL) && info.length == 2 * PAGE_SIZE) ||
	    FAILS(!lite_lmr_free(ctx, lh)) ||
	    FAILS(lite_lmr_stat(ctx, lh, &info, NULL, NULL) == -EBADF))
		return -EIO;
	return 0;
}

/* Addresses that have no memory, and other mistakes. */
static int mistaken(void)
{
	struct lite_lmr_params params = {
		.length = 8 * PAGE_SIZE, .nodes = &node, .n_nodes = 1, .mode = 0600,
	};
	u8 *pages = vmalloc(2 * PAGE_SIZE); /* no memory follows them */
	struct lite_op op = {};
	u64 lh;

	if (FAILS(pages && !lite_lmr_alloc(ctx, &params, &lh)))
		return -EIO;
	memset(pages, 7, 2 * PAGE_SIZE);
	if (FAILS(!lite_lmr_write(ctx, lh, 0, pages, 2 * PAGE_SIZE)) ||
	    FAILS(lite_lmr_write(ctx, lh, 0, pages, 3 * PAGE_SIZE) == -EFAULT) ||
	    FAILS(lite_lmr_read(ctx, lh, 0, pages, 3 * PAGE_SIZE) == -EFAULT) ||
	    FAILS(lite_lmr_write(ctx, lh, 0, NULL, 3 * PAGE_SIZE) == -EFAULT) ||
	    FAILS(!lite_lmr_unmap(ctx, lh)) ||
	    FAILS(lite_lmr_vector(ctx, &op, U32_MAX) == -EINVAL) ||
	    FAILS(PTR_ERR(serve(NULL, 0, NULL)) == -EINVAL))
		return -EIO;
	vfree(pages);
	return 0;
}

/* Handlers end when the function is no longer found. */
static void release_work(struct work_struct *work)
{
	struct lite_function found;

	while (!lite_function_find(ctx, 0, "client-slow", &found))
		msleep(20);
	complete_all(&release);
}

static DECLARE_WORK(releasing, release_work);

/* Send messages to the slow function from a node, as many as there is room for. */
static int fill(struct lite_ctx *from, u32 to)
{
	struct lite_function f;
	int err, sent = 0;

	if (FAILS(!lite_function_find(from, to, "client-slow", &f)))
		return -EIO;
	while (!(err = lite_function_send(from, &f, "hello", 5, LITE_NOWAIT)))
		sent++;
	if (FAILS(err == -EAGAIN))
		return -EIO;
	return sent;
}

/*
 * More handlers of a function wait than can run: those of another run all the same, and when the
 * function ends, no more of them begin.
 */
static int crowded(void)
{
	struct lite_kfunc *kf = serve("client-slow", 0, slow), *quick;
	u32 here = lite_ctx_node_id(ctx);
	struct lite_function q = {};
	int i, n, sent, err;

	if (FAILS(!IS_ERR(kf)))
		return -EIO;
	quick = serve("client-quick", 0, echo);
	if (FAILS(!IS_ERR(quick)))
		return -EIO;
	n = fill(ctx, here);
	sent = n;
	for (i = 0; i < NODES - 1 && n >= 0; i++) {
		n = fill(others[i], here);
		sent += n;
	}
	err = lite_function_find(others[0], here, "client-quick", &q) ?: call(others[0], &q);
	schedule_work(&releasing);
	lite_kfunc_unregister(kf);
	flush_work(&releasing);
	lite_kfunc_unregister(quick);
	pr_info("%d messages, %d handled\n", sent, atomic_read(&handled));
	if (FAILS(n >= 0 && sent > RUNNING) ||
	    FAILS(!err) ||
	    FAILS(atomic_read(&handled) < sent))
		return -EIO;
	return 0;
}

/* Runs until the node does not serve clients any more; uses it afterwards. */
static int until_stopped(void *priv, const struct lite_krequest *req, void *reply, u32 *status)
{
	u64 lh;

	complete(&release);
	while (lite_ctx_node_id(ctx))
		msleep(20);
	return lite_lmr_map(ctx, "client", LITE_RIGHT_READ, &lh, NULL) == -ENODEV ? 0 : -EIO;
}

/* A call from another node, which is in the handler when its node stops. */
static void call_work(struct work_struct *work)
{
	struct lite_function f;
	int err = lite_function_find(others[0], lite_ctx_node_id(ctx), "client-held", &f);

	pr_info("the call ended: %d\n", err ?: call(others[0], &f));
}

static DECLARE_WORK(calling, call_work);

static int __init client_hold(void)
{
	others[0] = lite_ctx_open(1);
	held = serve("client-held", 0, until_stopped);
	if (FAILS(!IS_ERR(others[0])) || FAILS(!IS_ERR(held)))
		return -EIO;
	schedule_work(&calling);
	return wait_for_completion_killable(&release);
}

static int __init client_init(void)
{
	int i, err;

	ctx = lite_ctx_open(0);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	if (hold)
		return client_hold();
	for (i = 0; i < NODES - 1; i++) {
		others[i] = lite_ctx_open(i + 1);
		if (FAILS(!IS_ERR(others[i])))
			return -EIO;
	}
	/* After an error what it has made is left: the test has failed. */
	err = successor() ?: described() ?: mistaken() ?:
	      client_owns(ctx, node, others[1]) ?: client_locks(ctx, node, 2) ?: crowded();
	for (i = 0; i < NODES - 1; i++)
		lite_ctx_close(others[i]);
	lite_ctx_close(ctx);
	return err;
}
module_init(client_init);

static void __exit client_exit(void)
{
	if (!held)
		return;
	flush_work(&calling);
	lite_ctx_close(others[0]);
	lite_ctx_close(ctx);
	lite_kfunc_unregister(held);
}
module_exit(client_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A client that makes mistakes, and one with slow functions, for tests");
