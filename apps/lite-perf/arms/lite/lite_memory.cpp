// SPDX-License-Identifier: MIT
#include "arms/lite/lite_memory.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace perf {

void check_lite(int error, std::string_view what) {
    if (error)
        throw std::runtime_error(fmt::format("LITE: {}: {}", what, lite_strerror(error)));
}

LiteMemory::LiteMemory(const Target& target)
    : region_(target.buffer_bytes()), context_(open_context(target.lite_index)) {
    lite_ioc_query query;
    check_lite(lite_query(context(), &query), "query");
    atomics_ = query.features & LITE_FEATURE_ATOMICS;

    lite_alloc_params params{};
    params.size = sizeof params;
    params.length = target.bytes;
    params.nodes = &target.node;
    params.n_nodes = 1;
    params.mode = 0600;
    handles_.resize(target.regions);
    for (lite_lh_t& handle : handles_)
        check_lite(lite_alloc(context(), &params, &handle),
                   fmt::format("allocating {} bytes on node {}", target.bytes, target.node));
}

lite_op LiteMemory::operation(const Request& request) const {
    lite_op op{};
    op.lh = handle(request);
    op.offset = request.offset;
    op.length = request.length;
    switch (request.op) {
        case Op::read:
            op.opcode = LITE_OP_READ;
            break;
        case Op::write:
            op.opcode = LITE_OP_WRITE;
            break;
        case Op::fetch_add:
            op.opcode = LITE_OP_FETCH_ADD;
            op.operand = 1;
            return op;
        case Op::echo:
            throw std::logic_error("LITE: this transport makes no calls");
    }
    op.buf = reinterpret_cast<std::uintptr_t>(local(request));
    return op;
}

}  // namespace perf
