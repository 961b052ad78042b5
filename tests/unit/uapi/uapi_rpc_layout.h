/* SPDX-License-Identifier: MIT */
/* The structures of uapi/lite_rpc.h. uapi_layout.h includes this. */

SIZE(struct lite_ioc_rpc_register, 96);
AT(struct lite_ioc_rpc_register, size, 0);
AT(struct lite_ioc_rpc_register, flags, 4);
AT(struct lite_ioc_rpc_register, function, 8);
AT(struct lite_ioc_rpc_register, mode, 12);
AT(struct lite_ioc_rpc_register, max_request, 16);
AT(struct lite_ioc_rpc_register, max_reply, 20);
AT(struct lite_ioc_rpc_register, ring_size, 24);
AT(struct lite_ioc_rpc_register, reserved, 28);
AT(struct lite_ioc_rpc_register, name, 32);

SIZE(struct lite_ioc_rpc_unregister, 16);
AT(struct lite_ioc_rpc_unregister, size, 0);
AT(struct lite_ioc_rpc_unregister, flags, 4);
AT(struct lite_ioc_rpc_unregister, function, 8);
AT(struct lite_ioc_rpc_unregister, reserved, 12);

SIZE(struct lite_ioc_rpc_find, 104);
AT(struct lite_ioc_rpc_find, size, 0);
AT(struct lite_ioc_rpc_find, flags, 4);
AT(struct lite_ioc_rpc_find, node, 8);
AT(struct lite_ioc_rpc_find, function, 12);
AT(struct lite_ioc_rpc_find, uid, 16);
AT(struct lite_ioc_rpc_find, gid, 20);
AT(struct lite_ioc_rpc_find, mode, 24);
AT(struct lite_ioc_rpc_find, max_request, 28);
AT(struct lite_ioc_rpc_find, max_reply, 32);
AT(struct lite_ioc_rpc_find, reserved, 36);
AT(struct lite_ioc_rpc_find, name, 40);

SIZE(struct lite_ioc_rpc_call, 64);
AT(struct lite_ioc_rpc_call, size, 0);
AT(struct lite_ioc_rpc_call, flags, 4);
AT(struct lite_ioc_rpc_call, node, 8);
AT(struct lite_ioc_rpc_call, function, 12);
AT(struct lite_ioc_rpc_call, request, 16);
AT(struct lite_ioc_rpc_call, reply, 24);
AT(struct lite_ioc_rpc_call, request_len, 32);
AT(struct lite_ioc_rpc_call, reply_room, 36);
AT(struct lite_ioc_rpc_call, reply_len, 40);
AT(struct lite_ioc_rpc_call, status, 44);
AT(struct lite_ioc_rpc_call, timeout_ms, 48);
AT(struct lite_ioc_rpc_call, group, 52);
AT(struct lite_ioc_rpc_call, cookie, 56);

SIZE(struct lite_ioc_rpc_collect, 56);
AT(struct lite_ioc_rpc_collect, size, 0);
AT(struct lite_ioc_rpc_collect, flags, 4);
AT(struct lite_ioc_rpc_collect, reply, 8);
AT(struct lite_ioc_rpc_collect, reply_room, 16);
AT(struct lite_ioc_rpc_collect, reply_len, 20);
AT(struct lite_ioc_rpc_collect, timeout_ms, 24);
AT(struct lite_ioc_rpc_collect, error, 28);
AT(struct lite_ioc_rpc_collect, status, 32);
AT(struct lite_ioc_rpc_collect, node, 36);
AT(struct lite_ioc_rpc_collect, function, 40);
AT(struct lite_ioc_rpc_collect, group, 44);
AT(struct lite_ioc_rpc_collect, cookie, 48);

SIZE(struct lite_ioc_rpc_recv, 80);
AT(struct lite_ioc_rpc_recv, size, 0);
AT(struct lite_ioc_rpc_recv, flags, 4);
AT(struct lite_ioc_rpc_recv, token, 8);
AT(struct lite_ioc_rpc_recv, reply, 16);
AT(struct lite_ioc_rpc_recv, reply_len, 24);
AT(struct lite_ioc_rpc_recv, status, 28);
AT(struct lite_ioc_rpc_recv, buf, 32);
AT(struct lite_ioc_rpc_recv, buf_len, 40);
AT(struct lite_ioc_rpc_recv, timeout_ms, 44);
AT(struct lite_ioc_rpc_recv, function, 48);
AT(struct lite_ioc_rpc_recv, length, 52);
AT(struct lite_ioc_rpc_recv, node, 56);
AT(struct lite_ioc_rpc_recv, uid, 60);
AT(struct lite_ioc_rpc_recv, gid, 64);
AT(struct lite_ioc_rpc_recv, req_flags, 68);
AT(struct lite_ioc_rpc_recv, reply_room, 72);
AT(struct lite_ioc_rpc_recv, answered, 76);

/* Structures of the library. */
SIZE(struct lite_rpc_params, 40);
AT(struct lite_rpc_params, size, 0);
AT(struct lite_rpc_params, flags, 4);
AT(struct lite_rpc_params, name, 8);
AT(struct lite_rpc_params, function, 16);
AT(struct lite_rpc_params, mode, 20);
AT(struct lite_rpc_params, max_request, 24);
AT(struct lite_rpc_params, max_reply, 28);
AT(struct lite_rpc_params, ring_size, 32);
AT(struct lite_rpc_params, reserved, 36);

SIZE(struct lite_rpc_request, 40);
AT(struct lite_rpc_request, token, 0);
AT(struct lite_rpc_request, function, 8);
AT(struct lite_rpc_request, length, 12);
AT(struct lite_rpc_request, node, 16);
AT(struct lite_rpc_request, uid, 20);
AT(struct lite_rpc_request, gid, 24);
AT(struct lite_rpc_request, flags, 28);
AT(struct lite_rpc_request, reply_room, 32);
AT(struct lite_rpc_request, reserved, 36);

SIZE(struct lite_rpc_result, 32);
AT(struct lite_rpc_result, cookie, 0);
AT(struct lite_rpc_result, error, 8);
AT(struct lite_rpc_result, status, 12);
AT(struct lite_rpc_result, length, 16);
AT(struct lite_rpc_result, node, 20);
AT(struct lite_rpc_result, function, 24);
AT(struct lite_rpc_result, reserved, 28);

CHECK(LITE_IOC_RPC_REGISTER == 0xE710, "number of LITE_IOC_RPC_REGISTER");
CHECK(LITE_IOC_RPC_UNREGISTER == 0xE711, "number of LITE_IOC_RPC_UNREGISTER");
CHECK(LITE_IOC_RPC_FIND == 0xE712, "number of LITE_IOC_RPC_FIND");
CHECK(LITE_IOC_RPC_CALL == 0xE713, "number of LITE_IOC_RPC_CALL");
CHECK(LITE_IOC_RPC_COLLECT == 0xE714, "number of LITE_IOC_RPC_COLLECT");
CHECK(LITE_IOC_RPC_RECV == 0xE715, "number of LITE_IOC_RPC_RECV");
CHECK(LITE_RPC_SHARED == 1, "flags of REGISTER");
CHECK(LITE_RPC_NOWAIT == 1 && LITE_RPC_ONEWAY == 2 && LITE_RPC_ASYNC == 4, "flags of CALL");
CHECK(LITE_RPC_REPLY == 2 && LITE_RPC_REPLY_ONLY == 4 && LITE_RPC_DROP == 8, "flags of RECV");
CHECK(LITE_RPC_REQ_ONEWAY == 1, "flags of requests");
CHECK(LITE_FUNCTION_MAX == 65535 && LITE_FUNCTION_ROOT_MAX == 1023, "numbers of functions");
CHECK(LITE_RPC_BYTES_MAX == 65536 && LITE_TIMEOUT_MAX == 86400000, "limits of calls");
CHECK(LITE_FUNCTION_NAME_SIZE == LITE_FUNCTION_NAME_MAX + 1, "room for the NUL");
