// SPDX-License-Identifier: GPL-2.0
/* Commands of functions and calls (include/uapi/lite_rpc.h), and their table. */
#include "command.h"

static int lite_ioc_rpc_register(struct lite_command *cmd, void *arg)
{
	return lite_func_register(&cmd->node->service, cmd->lf->rpc, NULL, lite_cmd_user(cmd), arg);
}

static void lite_ioc_undo_rpc_register(struct lite_command *cmd, void *arg)
{
	lite_func_unregister(cmd->lf->rpc, ((struct lite_ioc_rpc_register *)arg)->function, false);
}

static int lite_ioc_rpc_unregister(struct lite_command *cmd, void *arg)
{
	const struct lite_ioc_rpc_unregister *u = arg;

	return lite_func_unregister(cmd->lf->rpc, u->function, false);
}

static int lite_ioc_rpc_find(struct lite_command *cmd, void *arg)
{
	return lite_file_find(cmd->lf->rpc, arg);
}

static int lite_ioc_rpc_call(struct lite_command *cmd, void *arg)
{
	return lite_file_call(cmd->lf->rpc, arg, lite_cmd_user(cmd), &cmd->gate,
			      READ_ONCE(cmd->ctx->prio));
}

static int lite_ioc_rpc_collect(struct lite_command *cmd, void *arg)
{
	return lite_file_collect(cmd->lf->rpc, arg, &cmd->gate);
}

static int lite_ioc_rpc_recv(struct lite_command *cmd, void *arg)
{
	return lite_file_recv(cmd->lf->rpc, arg, &cmd->gate, READ_ONCE(cmd->ctx->prio));
}

static void lite_ioc_undo_rpc_recv(struct lite_command *cmd, void *arg)
{
	struct lite_ioc_rpc_recv *r = arg;

	if (r->token)
		lite_file_untake(cmd->lf->rpc, r->token);
}

static int lite_ioc_priority(struct lite_command *cmd, void *arg)
{
	const struct lite_ioc_priority *p = arg;

	return lite_ctx_set_prio(cmd->ctx, p->priority, !cmd->lf);
}

/* Vectors (ioc_vector.c), priorities, files and arenas have numbers among those of calls. */
const struct lite_ioc lite_iocs_rpc[LITE_IOC_GROUP] = {
	LITE_IOC_ENTRY(LITE_IOC_RPC_REGISTER, lite_ioc_rpc_register, name, .flags = LITE_IOC_FLAGS,
		       .fn = lite_ioc_rpc_register, .out = true,
		       .undo = lite_ioc_undo_rpc_register),
	LITE_IOC_ENTRY(LITE_IOC_RPC_UNREGISTER, lite_ioc_rpc_unregister, reserved,
		       LITE_IOC_ZERO(lite_ioc_rpc_unregister), .fn = lite_ioc_rpc_unregister),
	LITE_IOC_ENTRY(LITE_IOC_RPC_FIND, lite_ioc_rpc_find, name, .flags = LITE_IOC_FLAGS,
		       .fn = lite_ioc_rpc_find, .out = true, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_RPC_CALL, lite_ioc_rpc_call, cookie, .flags = LITE_IOC_FLAGS,
		       .fn = lite_ioc_rpc_call, .out = true, .always = true),
	LITE_IOC_ENTRY(LITE_IOC_RPC_COLLECT, lite_ioc_rpc_collect, cookie, .flags = LITE_IOC_FLAGS,
		       .quick = LITE_RPC_NOWAIT, .fn = lite_ioc_rpc_collect, .out = true,
		       .always = true),
	LITE_IOC_ENTRY(LITE_IOC_RPC_RECV, lite_ioc_rpc_recv, answered, .flags = LITE_IOC_FLAGS,
		       .quick = LITE_RPC_NOWAIT | LITE_RPC_REPLY_ONLY, .fn = lite_ioc_rpc_recv,
		       .out = true, .always = true, .undo = lite_ioc_undo_rpc_recv),
	LITE_IOC_ENTRY(LITE_IOC_VECTOR, lite_ioc_vector, n_failed, .flags = LITE_IOC_FLAGS,
		       .fn = lite_ioc_vector, .out = true, .always = true, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_PRIORITY, lite_ioc_priority, reserved,
		       LITE_IOC_ZERO(lite_ioc_priority), .fn = lite_ioc_priority, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_SENDFILE, lite_ioc_file, moved, LITE_IOC_ZERO(lite_ioc_file),
		       .flags = LITE_FILE_POSITION, .fn = lite_ioc_sendfile, .out = true,
		       .always = true, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_RECVFILE, lite_ioc_file, moved, LITE_IOC_ZERO(lite_ioc_file),
		       .flags = LITE_FILE_POSITION, .fn = lite_ioc_recvfile, .out = true,
		       .always = true, .looks = true),
	LITE_IOC_ENTRY(LITE_IOC_ARENA, lite_ioc_arena, addr,
		       .flags = LITE_ARENA_EAGER | LITE_ARENA_ZERO, .fn = lite_ioc_arena,
		       .out = true, .unwind = lite_ioc_unwind_arena),
};
