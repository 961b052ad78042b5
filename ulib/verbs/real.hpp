// SPDX-License-Identifier: MIT
//
// The functions of libibverbs and the operations of contexts that this library replaces.
#pragma once

#include <infiniband/verbs.h>

// They are macros, too, which choose a function by the access flags.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace lite::verbs {

struct real_functions {
    decltype(&::ibv_open_device) open_device;
    decltype(&::ibv_close_device) close_device;
    decltype(&::ibv_dealloc_pd) dealloc_pd;
    // Not ibv_reg_mr(): that one would call ibv_reg_mr_iova2() of this library.
    decltype(&::ibv_reg_mr_iova2) reg_mr_iova2;
    decltype(&::ibv_dereg_mr) dereg_mr;
    decltype(&::ibv_rereg_mr) rereg_mr;
    decltype(&::ibv_create_comp_channel) create_comp_channel;
    decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
    decltype(&::ibv_get_cq_event) get_cq_event;
    decltype(&::ibv_ack_cq_events) ack_cq_events;
    decltype(&::ibv_create_cq) create_cq;
    decltype(&::ibv_resize_cq) resize_cq;
    decltype(&::ibv_destroy_cq) destroy_cq;
    decltype(&::ibv_create_qp) create_qp;
    decltype(&::ibv_modify_qp) modify_qp;
    decltype(&::ibv_query_qp) query_qp;
    decltype(&::ibv_destroy_qp) destroy_qp;
    decltype(&::ibv_create_srq) create_srq;
    decltype(&::ibv_destroy_srq) destroy_srq;
    decltype(&::ibv_modify_srq) modify_srq;
    decltype(&::ibv_reg_dmabuf_mr) reg_dmabuf_mr;  // nullptr: libibverbs is too old
};

// Aborts the process if libibverbs lacks one of them, except reg_dmabuf_mr.
const real_functions& real();

// The device's own operations of a context that device_context::take_over() has changed.
const ibv_context_ops& real_ops(const ibv_context* context);

}  // namespace lite::verbs
