// SPDX-License-Identifier: GPL-2.0
/*
 * Makes the nodes of this machine do what no peer may do, for tests. As guests, which know the
 * cluster secret, they ask for something else than to join; they connect as another node; and they
 * execute what they are asked late, or not at all.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "cluster/cluster.h"
#include "core/lockword.h"

static ushort call;
module_param(call, ushort, 0644);
MODULE_PARM_DESC(call, "enum lite_call, in place of another; 0: none");

static ushort instead = LITE_CALL_JOIN;
module_param(instead, ushort, 0644);
MODULE_PARM_DESC(instead, "what @call replaces");

static u8 request[LITE_WORK_PAYLOAD_MAX];
static u32 length;

static int request_set(const char *text, const struct kernel_param *kp)
{
	u32 n = strcspn(text, "\n") / 2;

	if (n > sizeof(request) || hex2bin(request, text, n))
		return -EINVAL;
	length = n;
	return 0;
}

static const struct kernel_param_ops request_ops = { .set = request_set };
module_param_cb(request, &request_ops, NULL, 0200);
MODULE_PARM_DESC(request, "its payload, in hexadecimal");

static ushort node;
module_param(node, ushort, 0644);
MODULE_PARM_DESC(node, "as which to connect; 0: as what one is");

static unsigned long long incarnation;
module_param(incarnation, ullong, 0644);
MODULE_PARM_DESC(incarnation, "its");

static bool echo;
module_param(echo, bool, 0644);
MODULE_PARM_DESC(echo, "connect with the last nonce with which another node has connected");

static ushort late;
module_param(late, ushort, 0644);
MODULE_PARM_DESC(late, "enum lite_call");

static uint late_ms;
module_param(late_ms, uint, 0644);
MODULE_PARM_DESC(late_ms, "after so long @late is carried out");

static bool hold;
module_param(hold, bool, 0644);
MODULE_PARM_DESC(hold, "while this is set it waits, too");

static uint connects;
module_param(connects, uint, 0644);
MODULE_PARM_DESC(connects, "so many connections, the next ones, wait for that, too, before they begin");

static uint late_calls;
module_param(late_calls, uint, 0644);
MODULE_PARM_DESC(late_calls, "so many times, the next ones");

static uint were_late;
module_param(were_late, uint, 0444);
MODULE_PARM_DESC(were_late, "how many calls were carried out late");

static bool mute;
module_param(mute, bool, 0644);
MODULE_PARM_DESC(mute, "while this is set, connections that are accepted are not used");

static uint muted;
module_param(muted, uint, 0444);
MODULE_PARM_DESC(muted, "how many connections that were");

static uint sessions;
module_param(sessions, uint, 0644);
MODULE_PARM_DESC(sessions, "so many connections made here, the next ones, wait for that before they are sessions");

static uint lose;
module_param(lose, uint, 0644);
MODULE_PARM_DESC(lose, "so many swaps of words by homes of locks, the next ones, lose their answer");

static uint lost;
module_param(lost, uint, 0444);
MODULE_PARM_DESC(lost, "how many were");

static u8 nonce[LITE_NONCE_SIZE];
static struct task_struct *connecting; /* as another node; only compared */

/* Threads in this module's functions, which keep it from being unloaded. */
static atomic_t inside = ATOMIC_INIT(0);
static bool over; /* it is being unloaded: they wait no longer */
static DECLARE_WAIT_QUEUE_HEAD(waiting);

/* Let the thread that hit a probe go on in @function, which ends with leave(). Return: 1. */
static int enter(struct pt_regs *regs, void *function)
{
	atomic_inc(&inside);
	instruction_pointer_set(regs, (unsigned long)function);
	return 1;
}

static void leave(void)
{
	if (atomic_dec_and_test(&inside))
		wake_up(&waiting);
}

/* Tasks that have waited and now call the function that they were to call, past its probe. */
static DEFINE_XARRAY(passing);

static void pass_begin(void)
{
	xa_store(&passing, (unsigned long)current, xa_mk_value(1), GFP_KERNEL);
}

static void pass_end(void)
{
	xa_erase(&passing, (unsigned long)current);
}

static bool passes(void)
{
	return xa_load(&passing, (unsigned long)current);
}

static void wait_held(void)
{
	while (READ_ONCE(hold) && !READ_ONCE(over))
		msleep(20);
}

/* int lite_kcall(struct lite_conn *conn, struct lite_call_desc *d) */
static int ask(struct kprobe *probe, struct pt_regs *regs)
{
	struct lite_call_desc *d = (void *)regs_get_kernel_argument(regs, 1);

	if (call && d->call == instead) {
		d->call = call;
		d->req = request;
		d->len = length;
	}
	return 0;
}

static struct kprobe connect_probe;

/* In place of lite_conn_connect(). */
static int connect_late(struct lite_fabric *fab, const struct lite_wire_addr *dst,
			unsigned long timeout, struct lite_conn **out)
{
	typeof(connect_late) *conn_connect = (void *)connect_probe.addr;
	int err;

	wait_held();
	pass_begin();
	err = conn_connect(fab, dst, timeout, out);
	pass_end();
	leave();
	return err;
}

/* int lite_conn_connect(struct lite_fabric *fab, ...) */
static int connect(struct kprobe *probe, struct pt_regs *regs)
{
	struct lite_fabric *fab = (void *)regs_get_kernel_argument(regs, 0);
	uint n = passes() ? 0 : READ_ONCE(connects);

	if (n && hold && cmpxchg(&connects, n, n - 1) == n)
		return enter(regs, connect_late);

	WRITE_ONCE(connecting, node ? current : NULL);
	if (node) {
		fab->self.node = node;
		fab->self.incarnation = incarnation;
	}
	return 0;
}

/* int lite_auth_check_connect(auth, responder, const struct lite_cm_connect *connect) */
static int accept(struct kprobe *probe, struct pt_regs *regs)
{
	const struct lite_cm_connect *c = (void *)regs_get_kernel_argument(regs, 2);

	if (!echo)
		memcpy(nonce, c->nonce, sizeof(nonce));
	return 0;
}

/* void get_random_bytes(void *buf, size_t len) */
static int random_begin(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	*(void **)instance->data = (void *)regs_get_kernel_argument(regs, 0);
	return !echo || current != READ_ONCE(connecting) ||
	       regs_get_kernel_argument(regs, 1) != sizeof(nonce);
}

static int random_end(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	memcpy(*(void **)instance->data, nonce, sizeof(nonce));
	return 0;
}

static struct kprobe dispatch_probe;

/* In place of lite_kcall_dispatch(). */
static int dispatch_late(struct lite_kcalls *kcalls, struct lite_conn *conn, u16 call,
			 const void *req, u32 len, void *reply)
{
	typeof(dispatch_late) *dispatch = (void *)dispatch_probe.addr;
	int ret;

	/* Interruptible: else reported as a hung task. */
	wait_event_interruptible_timeout(waiting, READ_ONCE(over), msecs_to_jiffies(late_ms));
	wait_held();
	were_late++;
	pass_begin();
	ret = dispatch(kcalls, conn, call, req, len, reply);
	pass_end();
	leave();
	return ret;
}

/* int lite_kcall_dispatch(struct lite_kcalls *kcalls, struct lite_conn *conn, u16 call, ...) */
static int dispatch(struct kprobe *probe, struct pt_regs *regs)
{
	uint n = passes() ? 0 : READ_ONCE(late_calls);

	/* Calls of the node to itself have no connection, and are never late. */
	if (!n || !regs_get_kernel_argument(regs, 1) ||
	    (u16)regs_get_kernel_argument(regs, 2) != late ||
	    cmpxchg(&late_calls, n, n - 1) != n)
		return 0;
	return enter(regs, dispatch_late);
}

/* In place of lite_cluster_attach(). */
static int attach_mute(struct lite_cluster *cl, struct lite_conn *conn)
{
	muted++;
	while (READ_ONCE(mute) && !READ_ONCE(over))
		msleep(20);
	leave();
	return -ECONNABORTED;
}

static int attach(struct kprobe *probe, struct pt_regs *regs)
{
	return mute ? enter(regs, attach_mute) : 0;
}

static struct kprobe publish_probe;

/* In place of lite_peer_publish(). */
static bool publish_late(struct lite_cluster *cl, struct lite_conn *conn,
			 const struct lite_wire_addr *addr)
{
	typeof(publish_late) *publish = (void *)publish_probe.addr;
	bool done;

	wait_held();
	pass_begin();
	done = publish(cl, conn, addr);
	pass_end();
	leave();
	return done;
}

/* bool lite_peer_publish(struct lite_cluster *cl, struct lite_conn *conn, ...) */
static int publish(struct kprobe *probe, struct pt_regs *regs)
{
	struct lite_conn *conn = (void *)regs_get_kernel_argument(regs, 1);
	uint n = passes() ? 0 : READ_ONCE(sessions);

	if (!n || !hold || conn->passive || cmpxchg(&sessions, n, n - 1) != n)
		return 0;
	return enter(regs, publish_late);
}

/* int lite_word_cmp_swap(mem, word, u64 expected, u64 desired, u64 *old, bool *posted) */
static int swap_begin(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	u64 managed = lite_lockword(LITE_LOCKWORD_MANAGED);

	*(bool **)instance->data = (void *)regs_get_kernel_argument(regs, 5);
	return !READ_ONCE(lose) || (regs_get_kernel_argument(regs, 2) != managed &&
				    regs_get_kernel_argument(regs, 3) != managed);
}

static int swap_end(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	uint n = READ_ONCE(lose);

	if (!n || (int)regs_return_value(regs) || cmpxchg(&lose, n, n - 1) != n)
		return 0;
	**(bool **)instance->data = true;
	regs_set_return_value(regs, -EHOSTDOWN);
	lost++;
	return 0;
}

/* A post handler keeps a probe from becoming a jump, which ignores the new instruction pointer. */
static void no_jump(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe ask_probe = {
	.symbol_name = "lite_kcall",
	.pre_handler = ask,
};

static struct kprobe connect_probe = {
	.symbol_name = "lite_conn_connect",
	.pre_handler = connect,
	.post_handler = no_jump,
};

static struct kprobe accept_probe = {
	.symbol_name = "lite_auth_check_connect",
	.pre_handler = accept,
};

static struct kprobe dispatch_probe = {
	.symbol_name = "lite_kcall_dispatch",
	.pre_handler = dispatch,
	.post_handler = no_jump,
};

static struct kprobe attach_probe = {
	.symbol_name = "lite_cluster_attach",
	.pre_handler = attach,
	.post_handler = no_jump,
};

static struct kprobe publish_probe = {
	.symbol_name = "lite_peer_publish",
	.pre_handler = publish,
	.post_handler = no_jump,
};

static struct kprobe *probes[] = { &ask_probe, &connect_probe, &accept_probe, &dispatch_probe,
				   &attach_probe, &publish_probe };

static struct kretprobe random_probe = {
	.kp.symbol_name = "get_random_bytes",
	.entry_handler = random_begin,
	.handler = random_end,
	.data_size = sizeof(void *),
};

static struct kretprobe swap_probe = {
	.kp.symbol_name = "lite_word_cmp_swap",
	.entry_handler = swap_begin,
	.handler = swap_end,
	.data_size = sizeof(void *),
};

static struct kretprobe *returns[] = { &random_probe, &swap_probe };

static int __init hostile_init(void)
{
	int err = register_kprobes(probes, ARRAY_SIZE(probes));

	if (err)
		return err;
	err = register_kretprobes(returns, ARRAY_SIZE(returns));
	if (err)
		unregister_kprobes(probes, ARRAY_SIZE(probes));
	return err;
}
module_init(hostile_init);

static void __exit hostile_exit(void)
{
	unregister_kretprobes(returns, ARRAY_SIZE(returns));
	unregister_kprobes(probes, ARRAY_SIZE(probes));
	WRITE_ONCE(over, true);
	wake_up_all(&waiting);
	wait_event(waiting, !atomic_read(&inside));
	/* The last one may have to return from leave() yet. */
	synchronize_rcu_tasks();
}
module_exit(hostile_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Nodes that do what no peer may, for tests");
