/* SPDX-License-Identifier: GPL-2.0 */
/* Counters for stats.h, with their names in "litectl stats", an interface: append, never rename. */
/* gauges */
STAT(FILES, "files")
STAT(PEERS, "peers")
STAT(CTXS, "ctxs")
STAT(HANDLES, "handles")
STAT(MAPPINGS, "mappings")
STAT(LMRS, "lmrs")
STAT(LMR_BYTES, "lmr_bytes")
STAT(COUNTED_BYTES, "counted_bytes")
STAT(ALLOCS, "allocs")
STAT(NAMES, "names")
STAT(DMA_PAGES, "dma_mapped_pages")
STAT(PINNED_PAGES, "pinned_pages")
STAT(OPS_INFLIGHT, "ops_inflight")
STAT(SLOTS_BUSY, "slots_busy")
STAT(CALLS_INFLIGHT, "calls_inflight")
STAT(CONNS, "conns")
STAT(MMAPS, "mmaps")
STAT(LOCKS, "locks")
STAT(LOCK_CLAIMS, "lock_claims")
/* counters */
STAT(READS, "reads")
STAT(WRITES, "writes")
STAT(ATOMICS, "atomics")
STAT(READ_BYTES, "read_bytes")
STAT(WRITE_BYTES, "write_bytes")
STAT(OP_ERRORS, "op_errors")
STAT(CALLS, "calls")
STAT(CALLS_SERVED, "calls_served")
STAT(REVOKES, "revokes")
STAT(FENCES, "fences")
STAT(CONNECTS, "connects")
STAT(REFUSED, "refused")
STAT(MEMOPS, "memops")
STAT(MEMOP_BYTES, "memop_bytes")
STAT(PACKED, "packed")
/* of functions: gauges, then counters */
STAT(FUNCTIONS, "functions")
STAT(RINGS, "rings")
STAT(RING_BYTES, "ring_bytes")
STAT(RPCS_INFLIGHT, "rpcs_inflight")
STAT(REQUESTS, "rpc_requests")
STAT(RPCS, "rpcs")
STAT(RPCS_SERVED, "rpcs_served")
STAT(RPC_CANCELS, "rpc_cancels")
STAT(LOCKS_TAKEN, "locks_taken")
STAT(LOCK_WAITS, "lock_waits")
STAT(LOCK_GRANTS, "lock_grants")
STAT(BULK_BYTES, "rpc_bulk_bytes") /* gauge */
/* ends of sessions, in the order of enum lite_end_cause */
STAT(ENDS_SILENCE, "ends_silence")
STAT(ENDS_OP_TIMEOUT, "ends_op_timeout")
STAT(ENDS_TRANSPORT, "ends_transport")
STAT(ENDS_REVOKE, "ends_revoke")
STAT(ENDS_CALL, "ends_call")
STAT(ENDS_MESSAGE, "ends_message")
STAT(ENDS_DEVICE, "ends_device")
STAT(ENDS_PEER, "ends_peer")
STAT(ENDS_FENCE, "ends_fence")
STAT(ENDS_REPLACED, "ends_replaced")
STAT(ENDS_LEAVE, "ends_leave")
STAT(FLUSHES, "flushes")
STAT(FENCES_FAILED, "fences_failed")
STAT(ARENAS, "arenas") /* gauge */
STAT(KEPT_PAGES, "arena_kept_pages") /* gauge */
STAT(QUARANTINED, "quarantined_pages") /* gauge that never goes down */
STAT(CHUNKS, "chunks") /* of unpinned LMRs, at their home: gauge */
STAT(CHUNK_FAULTS, "chunk_faults")
STAT(CHUNK_ENDS, "chunk_ends") /* because the process's memory changed */
STAT(CHUNK_WAIT, "chunk_wait_us") /* time that these changes waited */
STAT(LEASED_PAGES, "leased_pages") /* gauge */
