/* SPDX-License-Identifier: MIT */
/* As uapi_layout.h, which includes it: the structures of uapi/lite_inbox.h. */

SIZE(struct lite_inbox_entry, 64);
AT(struct lite_inbox_entry, token, 0);
AT(struct lite_inbox_entry, offset, 8);
AT(struct lite_inbox_entry, length, 16);
AT(struct lite_inbox_entry, node, 20);
AT(struct lite_inbox_entry, uid, 24);
AT(struct lite_inbox_entry, gid, 28);
AT(struct lite_inbox_entry, flags, 32);
AT(struct lite_inbox_entry, reply_room, 36);
AT(struct lite_inbox_entry, reserved, 40);

SIZE(struct lite_inbox_control, 128);
AT(struct lite_inbox_control, tail, 0);
AT(struct lite_inbox_control, reserved, 8);
AT(struct lite_inbox_control, head, 64);
AT(struct lite_inbox_control, reserved2, 72);

SIZE(struct lite_ioc_rpc_inbox, 56);
AT(struct lite_ioc_rpc_inbox, size, 0);
AT(struct lite_ioc_rpc_inbox, flags, 4);
AT(struct lite_ioc_rpc_inbox, function, 8);
AT(struct lite_ioc_rpc_inbox, depth, 12);
AT(struct lite_ioc_rpc_inbox, control, 16);
AT(struct lite_ioc_rpc_inbox, rings, 24);
AT(struct lite_ioc_rpc_inbox, control_bytes, 32);
AT(struct lite_ioc_rpc_inbox, rings_bytes, 40);
AT(struct lite_ioc_rpc_inbox, entries, 48);
AT(struct lite_ioc_rpc_inbox, reserved, 52);

SIZE(struct lite_ioc_rpc_next, 184);
AT(struct lite_ioc_rpc_next, size, 0);
AT(struct lite_ioc_rpc_next, flags, 4);
AT(struct lite_ioc_rpc_next, token, 8);
AT(struct lite_ioc_rpc_next, reply, 16);
AT(struct lite_ioc_rpc_next, reply_len, 24);
AT(struct lite_ioc_rpc_next, status, 28);
AT(struct lite_ioc_rpc_next, seen, 32);
AT(struct lite_ioc_rpc_next, function, 40);
AT(struct lite_ioc_rpc_next, timeout_ms, 44);
AT(struct lite_ioc_rpc_next, answered, 48);
AT(struct lite_ioc_rpc_next, n_done, 52);
AT(struct lite_ioc_rpc_next, done, 56);

CHECK(LITE_IOC_RPC_INBOX == _IO(LITE_IOC_TYPE, 0x18) &&
          LITE_IOC_RPC_NEXT == _IO(LITE_IOC_TYPE, 0x19),
      "numbers of ioctls");
CHECK(LITE_INBOX_CLOSED == 0x8000000000000000 && LITE_INBOX_DEPTH_MAX == 256 &&
          LITE_INBOX_DONE_MAX == 16,
      "constants of inboxes");
