/* SPDX-License-Identifier: MIT */
/*
 * The layout of the ABI, as published: sizes and offsets never change, fields are only appended.
 * Compiled as C and as C++, which must agree. The includer defines CHECK(condition, text) as a
 * static assertion.
 */

#define SIZE(type, size) CHECK(sizeof(type) == (size), "size of " #type)
#define AT(type, field, offset) \
    CHECK(offsetof(type, field) == (offset), "offset of " #field " in " #type)

SIZE(struct lite_ioc_query, 72);
AT(struct lite_ioc_query, size, 0);
AT(struct lite_ioc_query, flags, 4);
AT(struct lite_ioc_query, uapi_version, 8);
AT(struct lite_ioc_query, features, 12);
AT(struct lite_ioc_query, index, 16);
AT(struct lite_ioc_query, node_id, 20);
AT(struct lite_ioc_query, state, 24);
AT(struct lite_ioc_query, nodes_up, 28);
AT(struct lite_ioc_query, incarnation, 32);
AT(struct lite_ioc_query, lmr_size_max, 40);
AT(struct lite_ioc_query, mem_limit, 48);
AT(struct lite_ioc_query, mem_used, 56);
AT(struct lite_ioc_query, handles_max, 64);
AT(struct lite_ioc_query, reserved, 68);

SIZE(struct lite_ioc_alloc, 296);
AT(struct lite_ioc_alloc, size, 0);
AT(struct lite_ioc_alloc, flags, 4);
AT(struct lite_ioc_alloc, length, 8);
AT(struct lite_ioc_alloc, nodes, 16);
AT(struct lite_ioc_alloc, n_nodes, 24);
AT(struct lite_ioc_alloc, mode, 28);
AT(struct lite_ioc_alloc, lh, 32);
AT(struct lite_ioc_alloc, name, 40);

SIZE(struct lite_ioc_map, 288);
AT(struct lite_ioc_map, size, 0);
AT(struct lite_ioc_map, flags, 4);
AT(struct lite_ioc_map, rights, 8);
AT(struct lite_ioc_map, reserved, 12);
AT(struct lite_ioc_map, lh, 16);
AT(struct lite_ioc_map, length, 24);
AT(struct lite_ioc_map, name, 32);

SIZE(struct lite_ioc_unmap, 16);
AT(struct lite_ioc_unmap, size, 0);
AT(struct lite_ioc_unmap, flags, 4);
AT(struct lite_ioc_unmap, lh, 8);

SIZE(struct lite_ioc_free, 272);
AT(struct lite_ioc_free, size, 0);
AT(struct lite_ioc_free, flags, 4);
AT(struct lite_ioc_free, lh, 8);
AT(struct lite_ioc_free, name, 16);

SIZE(struct lite_ioc_mmap, 48);
AT(struct lite_ioc_mmap, size, 0);
AT(struct lite_ioc_mmap, flags, 4);
AT(struct lite_ioc_mmap, lh, 8);
AT(struct lite_ioc_mmap, offset, 16);
AT(struct lite_ioc_mmap, length, 24);
AT(struct lite_ioc_mmap, prot, 32);
AT(struct lite_ioc_mmap, reserved, 36);
AT(struct lite_ioc_mmap, addr, 40);

SIZE(struct lite_ioc_register, 296);
AT(struct lite_ioc_register, size, 0);
AT(struct lite_ioc_register, flags, 4);
AT(struct lite_ioc_register, addr, 8);
AT(struct lite_ioc_register, length, 16);
AT(struct lite_ioc_register, mode, 24);
AT(struct lite_ioc_register, reserved, 28);
AT(struct lite_ioc_register, lh, 32);
AT(struct lite_ioc_register, name, 40);

SIZE(struct lite_op, 72);
AT(struct lite_op, size, 0);
AT(struct lite_op, opcode, 4);
AT(struct lite_op, priority, 6);
AT(struct lite_op, reserved0, 7);
AT(struct lite_op, flags, 8);
AT(struct lite_op, reserved1, 12);
AT(struct lite_op, error, 12);
AT(struct lite_op, lh, 16);
AT(struct lite_op, offset, 24);
AT(struct lite_op, length, 32);
AT(struct lite_op, buf, 40);
AT(struct lite_op, operand, 48);
AT(struct lite_op, swap, 56);
AT(struct lite_op, result, 64);

SIZE(struct lite_lmr_info, 304);
AT(struct lite_lmr_info, id, 0);
AT(struct lite_lmr_info, length, 8);
AT(struct lite_lmr_info, home, 16);
AT(struct lite_lmr_info, uid, 20);
AT(struct lite_lmr_info, gid, 24);
AT(struct lite_lmr_info, mode, 28);
AT(struct lite_lmr_info, n_extents, 32);
AT(struct lite_lmr_info, n_nodes, 36);
AT(struct lite_lmr_info, n_mappers, 40);
AT(struct lite_lmr_info, reserved, 44);
AT(struct lite_lmr_info, name, 48);

SIZE(struct lite_ioc_stat, 336);
AT(struct lite_ioc_stat, size, 0);
AT(struct lite_ioc_stat, flags, 4);
AT(struct lite_ioc_stat, lh, 8);
AT(struct lite_ioc_stat, nodes, 16);
AT(struct lite_ioc_stat, n_nodes, 24);
AT(struct lite_ioc_stat, reserved, 28);
AT(struct lite_ioc_stat, info, 32);

SIZE(struct lite_ioc_list, 32);
AT(struct lite_ioc_list, size, 0);
AT(struct lite_ioc_list, flags, 4);
AT(struct lite_ioc_list, cursor, 8);
AT(struct lite_ioc_list, infos, 16);
AT(struct lite_ioc_list, n_infos, 24);
AT(struct lite_ioc_list, info_size, 28);

SIZE(struct lite_grant, 16);
AT(struct lite_grant, uid, 0);
AT(struct lite_grant, node, 4);
AT(struct lite_grant, rights, 8);
AT(struct lite_grant, reserved, 12);

SIZE(struct lite_ioc_grant, 288);
AT(struct lite_ioc_grant, size, 0);
AT(struct lite_ioc_grant, flags, 4);
AT(struct lite_ioc_grant, lh, 8);
AT(struct lite_ioc_grant, grant, 16);
AT(struct lite_ioc_grant, name, 32);

SIZE(struct lite_ioc_grants, 288);
AT(struct lite_ioc_grants, size, 0);
AT(struct lite_ioc_grants, flags, 4);
AT(struct lite_ioc_grants, lh, 8);
AT(struct lite_ioc_grants, grants, 16);
AT(struct lite_ioc_grants, n_grants, 24);
AT(struct lite_ioc_grants, grant_size, 28);
AT(struct lite_ioc_grants, name, 32);

SIZE(struct lite_ioc_setattr, 288);
AT(struct lite_ioc_setattr, size, 0);
AT(struct lite_ioc_setattr, flags, 4);
AT(struct lite_ioc_setattr, lh, 8);
AT(struct lite_ioc_setattr, uid, 16);
AT(struct lite_ioc_setattr, gid, 20);
AT(struct lite_ioc_setattr, mode, 24);
AT(struct lite_ioc_setattr, reserved, 28);
AT(struct lite_ioc_setattr, name, 32);

SIZE(struct lite_ioc_rename, 528);
AT(struct lite_ioc_rename, size, 0);
AT(struct lite_ioc_rename, flags, 4);
AT(struct lite_ioc_rename, lh, 8);
AT(struct lite_ioc_rename, name, 16);
AT(struct lite_ioc_rename, to, 272);

SIZE(struct lite_ioc_resize, 280);
AT(struct lite_ioc_resize, size, 0);
AT(struct lite_ioc_resize, flags, 4);
AT(struct lite_ioc_resize, lh, 8);
AT(struct lite_ioc_resize, length, 16);
AT(struct lite_ioc_resize, name, 24);

SIZE(struct lite_ioc_move, 304);
AT(struct lite_ioc_move, size, 0);
AT(struct lite_ioc_move, flags, 4);
AT(struct lite_ioc_move, lh, 8);
AT(struct lite_ioc_move, offset, 16);
AT(struct lite_ioc_move, length, 24);
AT(struct lite_ioc_move, moved, 32);
AT(struct lite_ioc_move, node, 40);
AT(struct lite_ioc_move, reserved, 44);
AT(struct lite_ioc_move, name, 48);

/* A structure of the library, on machines with 8-byte pointers. */
#ifdef __LP64__
SIZE(struct lite_alloc_params, 40);
AT(struct lite_alloc_params, size, 0);
AT(struct lite_alloc_params, flags, 4);
AT(struct lite_alloc_params, name, 8);
AT(struct lite_alloc_params, length, 16);
AT(struct lite_alloc_params, nodes, 24);
AT(struct lite_alloc_params, n_nodes, 32);
AT(struct lite_alloc_params, mode, 36);
#endif

CHECK(LITE_IOC_QUERY == 0xE700, "number of LITE_IOC_QUERY");
CHECK(LITE_IOC_ALLOC == 0xE701, "number of LITE_IOC_ALLOC");
CHECK(LITE_IOC_MAP == 0xE702, "number of LITE_IOC_MAP");
CHECK(LITE_IOC_UNMAP == 0xE703, "number of LITE_IOC_UNMAP");
CHECK(LITE_IOC_FREE == 0xE704, "number of LITE_IOC_FREE");
CHECK(LITE_IOC_OP == 0xE705, "number of LITE_IOC_OP");
CHECK(LITE_IOC_STAT == 0xE706, "number of LITE_IOC_STAT");
CHECK(LITE_IOC_LIST == 0xE707, "number of LITE_IOC_LIST");

CHECK(LITE_IOC_GRANT == 0xE708, "number of LITE_IOC_GRANT");
CHECK(LITE_IOC_GRANTS == 0xE709, "number of LITE_IOC_GRANTS");
CHECK(LITE_IOC_SETATTR == 0xE70A, "number of LITE_IOC_SETATTR");
CHECK(LITE_IOC_RENAME == 0xE70B, "number of LITE_IOC_RENAME");
CHECK(LITE_IOC_RESIZE == 0xE70C, "number of LITE_IOC_RESIZE");
CHECK(LITE_IOC_MOVE == 0xE70D, "number of LITE_IOC_MOVE");

SIZE(struct lite_ioc_lock, 40);
AT(struct lite_ioc_lock, size, 0);
AT(struct lite_ioc_lock, flags, 4);
AT(struct lite_ioc_lock, lh, 8);
AT(struct lite_ioc_lock, offset, 16);
AT(struct lite_ioc_lock, owner, 24);
AT(struct lite_ioc_lock, timeout_ms, 32);
AT(struct lite_ioc_lock, reserved, 36);
SIZE(struct lite_ioc_unlock, 32);
AT(struct lite_ioc_unlock, size, 0);
AT(struct lite_ioc_unlock, flags, 4);
AT(struct lite_ioc_unlock, lh, 8);
AT(struct lite_ioc_unlock, offset, 16);
AT(struct lite_ioc_unlock, owner, 24);
SIZE(struct lite_ioc_barrier, 32);
AT(struct lite_ioc_barrier, size, 0);
AT(struct lite_ioc_barrier, flags, 4);
AT(struct lite_ioc_barrier, lh, 8);
AT(struct lite_ioc_barrier, offset, 16);
AT(struct lite_ioc_barrier, n, 24);
AT(struct lite_ioc_barrier, timeout_ms, 28);
CHECK(LITE_IOC_BARRIER == 0xE723, "number of LITE_IOC_BARRIER");
CHECK(LITE_IOC_LOCK == 0xE720, "number of LITE_IOC_LOCK");
CHECK(LITE_IOC_UNLOCK == 0xE721, "number of LITE_IOC_UNLOCK");
CHECK(LITE_IOC_CONSISTENT == 0xE722, "number of LITE_IOC_CONSISTENT");
CHECK(LITE_LOCK_SHARED == 1 && LITE_LOCK_TRY == 2, "flags of LOCK");
CHECK(LITE_BARRIER_MAX == 4096, "limit of BARRIER");

SIZE(struct lite_ioc_vector, 32);
AT(struct lite_ioc_vector, size, 0);
AT(struct lite_ioc_vector, flags, 4);
AT(struct lite_ioc_vector, ops, 8);
AT(struct lite_ioc_vector, n_ops, 16);
AT(struct lite_ioc_vector, op_size, 20);
AT(struct lite_ioc_vector, n_done, 24);
AT(struct lite_ioc_vector, n_failed, 28);
CHECK(LITE_IOC_VECTOR == 0xE71A, "number of LITE_IOC_VECTOR");
CHECK(LITE_VECTOR_MAX == 1024, "limit of VECTOR");

SIZE(struct lite_ioc_file, 64);
AT(struct lite_ioc_file, size, 0);
AT(struct lite_ioc_file, flags, 4);
AT(struct lite_ioc_file, lh, 8);
AT(struct lite_ioc_file, offset, 16);
AT(struct lite_ioc_file, length, 24);
AT(struct lite_ioc_file, file_offset, 32);
AT(struct lite_ioc_file, fd, 40);
AT(struct lite_ioc_file, reserved, 44);
AT(struct lite_ioc_file, pages, 48);
AT(struct lite_ioc_file, sets, 52);
AT(struct lite_ioc_file, moved, 56);
CHECK(LITE_IOC_SENDFILE == 0xE71C, "number of LITE_IOC_SENDFILE");
CHECK(LITE_IOC_RECVFILE == 0xE71D, "number of LITE_IOC_RECVFILE");
CHECK(LITE_FILE_POSITION == 1, "flag of SENDFILE and RECVFILE");

SIZE(struct lite_ioc_arena, 24);
AT(struct lite_ioc_arena, size, 0);
AT(struct lite_ioc_arena, flags, 4);
AT(struct lite_ioc_arena, length, 8);
AT(struct lite_ioc_arena, addr, 16);
CHECK(LITE_IOC_ARENA == 0xE71E, "number of LITE_IOC_ARENA");
CHECK(LITE_ARENA_EAGER == 1, "flag of ARENA");
CHECK(LITE_ARENA_ZERO == 2, "flag of ARENA");
CHECK(LITE_ARENA_BLOCK == 2097152 && LITE_ARENA_KEPT_MAX == 32, "constants of ARENA");

SIZE(struct lite_ioc_priority, 16);
AT(struct lite_ioc_priority, size, 0);
AT(struct lite_ioc_priority, flags, 4);
AT(struct lite_ioc_priority, priority, 8);
AT(struct lite_ioc_priority, reserved, 12);
CHECK(LITE_IOC_PRIORITY == 0xE71B, "number of LITE_IOC_PRIORITY");
CHECK(LITE_PRIORITY_MAX == LITE_PRIORITY(7), "eight classes");

CHECK(LITE_OP_READ == 1, "opcode");
CHECK(LITE_OP_WRITE == 2, "opcode");
CHECK(LITE_OP_FETCH_ADD == 3, "opcode");
CHECK(LITE_OP_CMP_SWAP == 4, "opcode");
CHECK(LITE_OP_SWAP == 5, "opcode");
CHECK(LITE_OP_FETCH_AND == 6, "opcode");
CHECK(LITE_OP_FETCH_OR == 7, "opcode");
CHECK(LITE_OP_SET == 8, "opcode");
CHECK(LITE_OP_COPY == 9, "opcode");
CHECK(LITE_OP_COMPARE == 10, "opcode");
CHECK(LITE_OP_CHECKSUM == 11, "opcode");
CHECK(LITE_OP_FENCE == 12, "opcode");

CHECK(LITE_NAME_SIZE == LITE_NAME_MAX + 1, "room for the NUL");
CHECK(LITE_RIGHT_READ == 1 && LITE_RIGHT_WRITE == 2 && LITE_RIGHT_ATOMIC == 4 &&
          LITE_RIGHT_SHARE == 8 && LITE_RIGHT_MASTER == 16 && LITE_RIGHTS_ALL == 31,
      "rights");
CHECK(LITE_GRANTS_MAX == 64 && LITE_KEEP == 0xffffffff, "constants of rights");

#include "uapi_rpc_layout.h"
#include "uapi_uring_layout.h"

#undef SIZE
#undef AT
