// SPDX-License-Identifier: MIT
//
// Extended QPs: work requests that a program builds between ibv_wr_start() and ibv_wr_complete().

#include "queues/builder.hpp"

#include "call.hpp"
#include "queues/queue.hpp"

#include <cerrno>
#include <new>
#include <utility>

namespace lite::verbs {
namespace {

builder& builder_of(ibv_qp_ex* qp) { return queue_pair::find(&qp->qp_base)->building(); }

ibv_send_wr& start(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
    ibv_send_wr& wr = builder_of(qp).add();
    wr.wr_id = qp->wr_id;
    wr.send_flags = qp->wr_flags;
    wr.opcode = opcode;
    return wr;
}

void add_rdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, __be32 imm) {
    ibv_send_wr& wr = start(qp, opcode);
    wr.imm_data = imm;
    wr.wr.rdma.remote_addr = addr;
    wr.wr.rdma.rkey = rkey;
}

void add_atomic(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, uint64_t first,
                uint64_t second) {
    ibv_send_wr& wr = start(qp, opcode);
    wr.wr.atomic.remote_addr = addr;
    wr.wr.atomic.rkey = rkey;
    wr.wr.atomic.compare_add = first;
    wr.wr.atomic.swap = second;
}

}  // namespace

// These functions cannot tell the program that memory has run out: finish() does.
template <typename F>
void builder::attempt(F&& body) {
    try {
        if (!m_has_failed)
            std::forward<F>(body)();
    } catch (const std::bad_alloc&) {
        m_has_failed = true;
    }
}

ibv_send_wr& builder::add() {
    m_last = &m_spare;
    attempt([this] { m_last = &m_parts.emplace_back(); });
    return m_last->wr;
}

void builder::add_sge(const ibv_sge* list, size_t n) {
    attempt([=, this] { m_last->list.assign(list, list + n); });
}

void builder::add_inline(const ibv_data_buf* list, size_t n) {
    m_last->wr.send_flags |= IBV_SEND_INLINE;
    attempt([=, this] {
        for (size_t i = 0; i < n; i++) {
            const char* from = static_cast<const char*>(list[i].addr);
            m_last->data.insert(m_last->data.end(), from, from + list[i].length);
        }
    });
}

ibv_send_wr* builder::finish() {
    if (m_has_failed)
        throw std::bad_alloc();
    for (size_t i = 0; i < m_parts.size(); i++) {
        part& p = m_parts[i];
        if (!p.data.empty())
            p.list.assign(1, {reinterpret_cast<uintptr_t>(p.data.data()),
                              static_cast<uint32_t>(p.data.size()), 0});
        p.wr.sg_list = p.list.data();
        p.wr.num_sge = static_cast<int>(p.list.size());
        p.wr.next = i + 1 < m_parts.size() ? &m_parts[i + 1].wr : nullptr;
    }
    return m_parts.empty() ? nullptr : &m_parts[0].wr;
}

bool builder::is_possible(uint64_t operations) {
    return !(operations & ~uint64_t{IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                    IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                    IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD});
}

void builder::take_over(ibv_qp_ex* qp) {
    qp->wr_start = [](ibv_qp_ex* q) { builder_of(q).begin(); };
    qp->wr_abort = [](ibv_qp_ex* q) { builder_of(q).end(); };
    qp->wr_complete = [](ibv_qp_ex* q) {
        const auto pair = queue_pair::find(&q->qp_base);
        const int err = call(ENOMEM, [&pair] {
            ibv_send_wr* wr = pair->building().finish();
            ibv_send_wr* bad = nullptr;
            return wr ? pair->post_send(wr, &bad, true) : 0;
        });
        pair->building().end();
        return err;
    };
    qp->wr_send = [](ibv_qp_ex* q) { start(q, IBV_WR_SEND); };
    qp->wr_send_imm = [](ibv_qp_ex* q, __be32 imm) {
        start(q, IBV_WR_SEND_WITH_IMM).imm_data = imm;
    };
    qp->wr_rdma_write = [](ibv_qp_ex* q, uint32_t rkey, uint64_t addr) {
        add_rdma(q, IBV_WR_RDMA_WRITE, rkey, addr, 0);
    };
    qp->wr_rdma_write_imm = [](ibv_qp_ex* q, uint32_t rkey, uint64_t addr, __be32 imm) {
        add_rdma(q, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
    };
    qp->wr_rdma_read = [](ibv_qp_ex* q, uint32_t rkey, uint64_t addr) {
        add_rdma(q, IBV_WR_RDMA_READ, rkey, addr, 0);
    };
    qp->wr_atomic_cmp_swp = [](ibv_qp_ex* q, uint32_t rkey, uint64_t addr, uint64_t compare,
                               uint64_t swap) {
        add_atomic(q, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
    };
    qp->wr_atomic_fetch_add = [](ibv_qp_ex* q, uint32_t rkey, uint64_t addr, uint64_t value) {
        add_atomic(q, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, value, 0);
    };
    qp->wr_set_ud_addr = [](ibv_qp_ex* q, ibv_ah* ah, uint32_t qpn, uint32_t qkey) {
        ibv_send_wr& wr = builder_of(q).last();
        wr.wr.ud.ah = ah;
        wr.wr.ud.remote_qpn = qpn;
        wr.wr.ud.remote_qkey = qkey;
    };
    qp->wr_set_sge = [](ibv_qp_ex* q, uint32_t lkey, uint64_t addr, uint32_t length) {
        const ibv_sge sge = {addr, length, lkey};
        builder_of(q).add_sge(&sge, 1);
    };
    qp->wr_set_sge_list = [](ibv_qp_ex* q, size_t n, const ibv_sge* list) {
        builder_of(q).add_sge(list, n);
    };
    qp->wr_set_inline_data = [](ibv_qp_ex* q, void* addr, size_t length) {
        const ibv_data_buf data = {addr, length};
        builder_of(q).add_inline(&data, 1);
    };
    qp->wr_set_inline_data_list = [](ibv_qp_ex* q, size_t n, const ibv_data_buf* list) {
        builder_of(q).add_inline(list, n);
    };
}

}  // namespace lite::verbs
