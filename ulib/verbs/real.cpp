// SPDX-License-Identifier: MIT
//
// Finds the functions of libibverbs that this library hides.

#include "real.hpp"

#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>

namespace lite::verbs {
namespace {

template <typename F>
void find(F& function, const char* name, const char* version) {
    void* found = ::dlvsym(RTLD_NEXT, name, version);
    if (!found) {
        std::fprintf(stderr, "liblite-verbs: libibverbs has no %s@%s\n", name, version);
        std::abort();
    }
    function = reinterpret_cast<F>(found);
}

real_functions find_all() {
    real_functions r = {};
    find(r.open_device, "ibv_open_device", "IBVERBS_1.1");
    find(r.close_device, "ibv_close_device", "IBVERBS_1.1");
    find(r.dealloc_pd, "ibv_dealloc_pd", "IBVERBS_1.1");
    find(r.reg_mr_iova2, "ibv_reg_mr_iova2", "IBVERBS_1.8");
    find(r.dereg_mr, "ibv_dereg_mr", "IBVERBS_1.1");
    find(r.rereg_mr, "ibv_rereg_mr", "IBVERBS_1.1");
    find(r.create_comp_channel, "ibv_create_comp_channel", "IBVERBS_1.0");
    find(r.destroy_comp_channel, "ibv_destroy_comp_channel", "IBVERBS_1.0");
    find(r.get_cq_event, "ibv_get_cq_event", "IBVERBS_1.1");
    find(r.ack_cq_events, "ibv_ack_cq_events", "IBVERBS_1.1");
    find(r.create_cq, "ibv_create_cq", "IBVERBS_1.1");
    find(r.resize_cq, "ibv_resize_cq", "IBVERBS_1.1");
    find(r.destroy_cq, "ibv_destroy_cq", "IBVERBS_1.1");
    find(r.create_qp, "ibv_create_qp", "IBVERBS_1.1");
    find(r.modify_qp, "ibv_modify_qp", "IBVERBS_1.1");
    find(r.query_qp, "ibv_query_qp", "IBVERBS_1.1");
    find(r.destroy_qp, "ibv_destroy_qp", "IBVERBS_1.1");
    find(r.create_srq, "ibv_create_srq", "IBVERBS_1.1");
    find(r.destroy_srq, "ibv_destroy_srq", "IBVERBS_1.1");
    find(r.modify_srq, "ibv_modify_srq", "IBVERBS_1.1");
    r.reg_dmabuf_mr = reinterpret_cast<decltype(r.reg_dmabuf_mr)>(
        ::dlvsym(RTLD_NEXT, "ibv_reg_dmabuf_mr", "IBVERBS_1.12"));
    return r;
}

}  // namespace

const real_functions& real() {
    static const real_functions functions = find_all();
    return functions;
}

}  // namespace lite::verbs
