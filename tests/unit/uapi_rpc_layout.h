/* SPDX-License-Identifier: MIT */
/* As uapi_layout.h, which includes it: the structures of uapi/lite_rpc.h. */

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
AT(struct lite_ioc_rpc_call, reserved, 52);
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
AT(struct lite_ioc_rpc_collect, reserved, 44);
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

SIZE(struct lite_ioc_rpc_leg, 32);
AT(struct lite_ioc_rpc_leg, node, 0);
AT(struct lite_ioc_rpc_leg, function, 4);
AT(struct lite_ioc_rpc_leg, reply, 8);
AT(struct lite_ioc_rpc_leg, reply_room, 16);
AT(struct lite_ioc_rpc_leg, reply_len, 20);
AT(struct lite_ioc_rpc_leg, status, 24);
AT(struct lite_ioc_rpc_leg, error, 28);

SIZE(struct lite_ioc_rpc_multicall, 56);
AT(struct lite_ioc_rpc_multicall, size, 0);
AT(struct lite_ioc_rpc_multicall, flags, 4);
AT(struct lite_ioc_rpc_multicall, function, 8);
AT(struct lite_ioc_rpc_multicall, n_legs, 12);
AT(struct lite_ioc_rpc_multicall, legs, 16);
AT(struct lite_ioc_rpc_multicall, request, 24);
AT(struct lite_ioc_rpc_multicall, request_len, 32);
AT(struct lite_ioc_rpc_multicall, leg_size, 36);
AT(struct lite_ioc_rpc_multicall, quorum, 40);
AT(struct lite_ioc_rpc_multicall, timeout_ms, 44);
AT(struct lite_ioc_rpc_multicall, n_ok, 48);
AT(struct lite_ioc_rpc_multicall, reserved, 52);

CHECK(LITE_IOC_RPC_REGISTER == _IO(LITE_IOC_TYPE, 0x10) &&
          LITE_IOC_RPC_RECV == _IO(LITE_IOC_TYPE, 0x15) &&
          LITE_IOC_RPC_MULTICALL == _IO(LITE_IOC_TYPE, 0x16),
      "numbers of ioctls");
CHECK(LITE_FUNCTION_NAME_SIZE == LITE_FUNCTION_NAME_MAX + 1, "room for the NUL");
