// SPDX-License-Identifier: GPL-2.0
/*
 * Many operations in one call: LITE_IOC_VECTOR and lite_lmr_vector().
 *
 * The user's array is processed in waves: each is copied in, written to (so that it is known to be
 * writable) and executed, and its results are copied out. So the kernel memory for a call is
 * bounded, and nothing is executed that cannot be reported.
 */
#include <linux/export.h>
#include <linux/uaccess.h>

#include "memory/batch/vector.h"
#include "command.h"

static void __user *lite_op_user(const struct lite_ioc_vector *c, u32 i)
{
	return u64_to_user_ptr(c->ops) + (size_t)(c->n_done + i) * c->op_size;
}

/* Read the @n operations that follow the first n_done. */
static int lite_ops_read(const struct lite_ioc_vector *c, struct lite_op *ops, u32 n)
{
	u32 i;
	int err;

	if (c->op_size == sizeof(*ops))
		return copy_from_user(ops, lite_op_user(c, 0), n * sizeof(*ops)) ? -EFAULT : 0;
	for (i = 0; i < n; i++) {
		err = copy_struct_from_user(&ops[i], sizeof(ops[i]), lite_op_user(c, i),
					    c->op_size);
		if (err)
			return err;
		ops[i].size = ops[i].size == c->op_size ? sizeof(ops[i]) : 0;
	}
	return 0;
}

static int lite_ops_write(const struct lite_ioc_vector *c, const struct lite_op *ops, u32 n)
{
	void __user *first = lite_op_user(c, 0);
	u32 i;

	if (!user_write_access_begin(first, (size_t)n * c->op_size))
		return -EFAULT;
	for (i = 0; i < n; i++) {
		struct lite_op __user *user = first + (size_t)i * c->op_size;

		unsafe_put_user(ops[i].error, &user->error, fault);
		unsafe_put_user(ops[i].result, &user->result, fault);
	}
	user_write_access_end();
	return 0;

fault:
	user_write_access_end();
	return -EFAULT;
}

/* Do the next wave. The gate is left while user memory is accessed. */
static int lite_vector_step(struct lite_ioc_vector *c, struct lite_vector *v,
			    struct lite_gate *gate)
{
	u32 n = min_t(u32, c->n_ops - c->n_done, LITE_WAVE_OPS);
	struct lite_op *ops = lite_vector_ops(v);
	u32 i, failed = 0;
	int err;

	lite_gate_leave(gate);
	err = lite_ops_read(c, ops, n) ?: lite_ops_write(c, ops, n);
	if (!lite_gate_enter(gate))
		return err ?: -ENODEV;
	if (err)
		return err;
	err = lite_vector_run(v, ops, n, c->n_failed);
	for (i = 0; i < n; i++)
		failed += !!ops[i].error;
	if (gate->in)
		lite_gate_leave(gate);
	if (lite_ops_write(c, ops, n)) {
		err = -EFAULT;
	} else {
		c->n_done += n;
		c->n_failed += failed;
	}
	if (!lite_gate_enter(gate))
		return err ?: -ENODEV;
	return err;
}

int lite_ioc_vector(struct lite_command *cmd, void *arg)
{
	struct lite_ioc_vector *c = arg;
	struct lite_vector *v;
	int err = 0;

	c->n_done = 0;
	c->n_failed = 0;
	if (c->flags)
		return -EOPNOTSUPP;
	if (!c->n_ops || c->n_ops > LITE_VECTOR_MAX ||
	    c->op_size < offsetofend(struct lite_op, result))
		return -EINVAL;
	if (c->op_size > PAGE_SIZE)
		return -E2BIG;
	v = lite_vector_get(cmd->ctx, &cmd->gate, true);
	if (!v)
		return -ENOMEM;
	while (!err && c->n_done < c->n_ops)
		err = lite_vector_step(c, v, &cmd->gate);
	lite_vector_put(v);
	return err;
}

int lite_lmr_vector(struct lite_ctx *ctx, struct lite_op *ops, u32 n)
{
	struct lite_node *node;
	struct lite_vector *v;
	u32 i, j, some, failed = 0;
	struct lite_op *own;
	int err = 0;

	if (!n || n > INT_MAX)
		return -EINVAL;
	node = lite_kapi_enter(ctx);
	if (!node)
		return -ENODEV;
	v = lite_vector_get(ctx, NULL, false);
	if (!v) {
		lite_node_exit(node);
		return -ENOMEM;
	}
	own = lite_vector_ops(v);
	for (i = 0; i < n && !err; i += some) {
		some = min_t(u32, n - i, LITE_WAVE_OPS);
		/* A copy, because the client may change its array after the checks. */
		memcpy(own, ops + i, some * sizeof(*own));
		err = lite_vector_run(v, own, some, failed);
		for (j = 0; j < some; j++) {
			ops[i + j].error = own[j].error;
			ops[i + j].result = own[j].result;
			failed += !!own[j].error;
		}
	}
	failed += n - i;
	for (; i < n; i++) {
		ops[i].error = err;
		ops[i].result = 0;
	}
	lite_vector_put(v);
	lite_node_exit(node);
	return failed;
}
EXPORT_SYMBOL_GPL(lite_lmr_vector);
