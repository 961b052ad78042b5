// SPDX-License-Identifier: MIT
//
// Counts queue pairs over netlink, like `rdma resource`.
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <rdma/rdma_netlink.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "workloads/crew.hpp"

namespace perf {

namespace {

struct FreeSocket {
    void operator()(nl_sock* socket) const { nl_socket_free(socket); }
};

/// The count in this entry if it is that of queue pairs, else 0.
std::uint64_t queue_pairs_of(nlattr* entry) {
    nlattr* name = nla_find(static_cast<nlattr*>(nla_data(entry)), nla_len(entry),
                            RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME);
    nlattr* count = nla_find(static_cast<nlattr*>(nla_data(entry)), nla_len(entry),
                             RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR);
    return name && count && !std::strcmp(nla_get_string(name), "qp") ? nla_get_u64(count) : 0;
}

/// Called for each device.
int add(nl_msg* message, void* sum) {
    nlattr* summary = nlmsg_find_attr(nlmsg_hdr(message), 0, RDMA_NLDEV_ATTR_RES_SUMMARY);
    if (!summary)
        return NL_OK;
    nlattr* entry;
    int left;
    nla_for_each_nested(entry, summary, left) * static_cast<std::uint64_t*>(sum) +=
        queue_pairs_of(entry);
    return NL_OK;
}

void check(int error) {
    if (error < 0)
        throw std::runtime_error(std::string("counting queue pairs: ") + nl_geterror(error));
}

}  // namespace

std::int64_t count_queue_pairs() {
    const std::unique_ptr<nl_sock, FreeSocket> socket(nl_socket_alloc());
    if (!socket)
        throw std::bad_alloc();
    check(nl_connect(socket.get(), NETLINK_RDMA));
    std::uint64_t sum = 0;
    nl_socket_modify_cb(socket.get(), NL_CB_VALID, NL_CB_CUSTOM, add, &sum);
    check(nl_send_simple(socket.get(), RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET),
                         NLM_F_DUMP, nullptr, 0));
    check(nl_recvmsgs_default(socket.get()));
    return static_cast<std::int64_t>(sum);
}

}  // namespace perf
