// SPDX-License-Identifier: MIT
// What calls return on a node that has left its cluster or was stopped. These tests do that to the
// first node. Their tags are hidden: they only run on request, one at a time, on a node that is not
// used afterwards.
#include "fixture.hpp"

#include <string>

using namespace lite_test;

namespace {

void litectl(const std::string& verb) {
    run_program({"litectl", verb, "--index", std::to_string(env().indexes.front())});
}

// All calls but QUERY fail with @e.
void check_all_calls(const Device& dev, std::uint64_t lh, Errno e) {
    std::array<std::byte, 8> buf{};
    std::array<lite_lmr_info, 1> infos{};
    CHECK(dev(alloc_args("", kPage)) == e);
    CHECK(dev(alloc_args(unique_name("late"), kPage)) == e);
    CHECK(dev(map_args("anything", LITE_RIGHT_READ)) == e);
    CHECK(dev(free_args("anything")) == e);
    CHECK(dev(stat_args("anything")) == e);
    CHECK(dev(list_args(infos)) == e);
    if (e == err(ENODEV)) {
        CHECK(dev(read_args(lh, 0, buf.data(), buf.size())) == e);
        CHECK(dev(write_args(lh, 0, buf.data(), buf.size())) == e);
        CHECK(dev(fetch_add_args(lh, 0, 1)) == e);
        CHECK(dev(stat_args(lh)) == e);
        CHECK(dev(free_args(lh)) == e);
    }
}

}  // namespace

TEST_CASE_METHOD(Abi, "states: after leaving the cluster calls are ENOTCONN", "[.][leave]") {
    const auto own = dev.alloc(kPage);
    NamedLmr far(dev, kPage, std::array{env().peer()});
    std::array<std::byte, 8> buf{};
    litectl("leave");

    const auto q = dev.query();
    CHECK(q.state == LITE_NODE_IDLE);
    CHECK(q.node_id == 0);
    CHECK(q.nodes_up == 0);
    CHECK(q.mem_used == 0);
    check_all_calls(dev, 0, err(ENOTCONN));
    // Earlier handles refer to LMRs that are gone or out of reach; in any case they do not work.
    for (const auto lh : {own, far.lh()}) {
        const auto e = dev(read_args(lh, 0, buf.data(), buf.size()));
        INFO("read after leave: " << e);
        CHECK((e == err(EIDRM) || e == err(ENOTCONN)));
        CHECK(dev(unmap_args(lh)) == ok);
    }
}

TEST_CASE_METHOD(AbiWithLmr, "states: after the node was stopped calls are ENODEV", "[.][stop]") {
    litectl("stop");
    check_all_calls(dev, lh, err(ENODEV));
    CHECK_THROWS(Device(env().indexes.front()));  // its /dev/liteN is gone
    auto q = query_args();
    const auto e = dev(q);
    CHECK((e == ok || e == err(ENODEV)));
    if (e == ok)
        CHECK(q.state == LITE_NODE_STOPPED);
}
