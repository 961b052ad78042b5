// SPDX-License-Identifier: MIT
// Longer and shorter LMRs, in use and not.
#include "fixture.hpp"

using namespace lite_test;

namespace {

constexpr std::uint64_t kResizedLength = 300000;

struct Resize : ChangeEverywhere {
    NamedLmr lmr{dev, kResizedLength, where.nodes, 0666};

    std::vector<std::byte> read(std::size_t i, std::uint64_t lh, std::uint64_t offset,
                                std::uint64_t length) const {
        std::vector<std::byte> bytes(length, std::byte{0xee});
        node(i).read(lh, offset, bytes);
        return bytes;
    }

    // Every node finds this length, through old and new handles.
    void check_length(const std::vector<std::uint64_t>& lhs, std::uint64_t length) const {
        // Room for all bytes that could come if the end were not respected.
        std::vector<std::byte> byte(length + kResizedLength * 4);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            INFO("node " << i);
            CHECK(node(i).stat(lmr.name()).length == length);
            auto map = map_args(lmr.name(), kR);
            CHECK(node(i)(map) == ok);
            CHECK(map.length == length);
            for (const auto lh : {lhs[i], std::uint64_t{map.lh}}) {
                CHECK(node(i)(read_args(lh, length - 1, byte.data(), 1)) == ok);
                CHECK(node(i)(read_args(lh, length, byte.data(), 1)) == err(ERANGE));
                CHECK(node(i)(read_args(lh, 0, byte.data(), length + 1)) == err(ERANGE));
            }
            node(i).unmap(map.lh);
        }
    }

    std::vector<std::uint64_t> map_everywhere() const {
        std::vector<std::uint64_t> lhs;
        for (const auto& each : nodes)
            lhs.push_back(each.map(lmr.name()));
        return lhs;
    }
};

}  // namespace

TEST_CASE_METHOD(Resize, "resize: longer and shorter, seen by all", "[resize]") {
    INFO(where.label);
    const auto lhs = map_everywhere();
    dev.write(lmr.lh(), 0, make_pattern(kResizedLength, 1));
    std::uint64_t kept = kResizedLength;
    for (const std::uint64_t length :
         {std::uint64_t{kResizedLength + 1}, std::uint64_t{kResizedLength * 3},
          std::uint64_t{kResizedLength * 3}, std::uint64_t{kResizedLength},
          std::uint64_t{kResizedLength - 1}, std::uint64_t{8192}, std::uint64_t{8191},
          std::uint64_t{kResizedLength * 2}, std::uint64_t{1}, std::uint64_t{kPage + 1}}) {
        INFO("length " << length);
        node(length).resize(lmr.name(), length);
        kept = std::min(kept, length);
        check_length(lhs, length);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            CHECK(find_mismatch(read(i, lhs[i], 0, kept), 1) == std::nullopt);
            if (length > kept)
                CHECK(all_are(read(i, lhs[i], kept, length - kept), std::byte{}));
        }
        if (all_here())
            CHECK(used() == whole_pages(length));
    }
}

TEST_CASE_METHOD(Resize, "resize: what was cut off does not come back", "[resize]") {
    INFO(where.label);
    const auto lhs = map_everywhere();
    for (const std::uint64_t cut : {std::uint64_t{kResizedLength - 100}, std::uint64_t{100},
                                    std::uint64_t{12288}, std::uint64_t{12289}}) {
        INFO("cut at " << cut);
        node(cut).write(lhs[cut % lhs.size()], 0, make_pattern(kResizedLength, cut));
        dev.resize(lmr.lh(), cut);
        dev.resize(lmr.lh(), kResizedLength);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            CHECK(find_mismatch(read(i, lhs[i], 0, cut), cut) == std::nullopt);
            CHECK(all_are(read(i, lhs[i], cut, kResizedLength - cut), std::byte{}));
        }
    }
}

TEST_CASE_METHOD(Resize, "resize: grown memory can be used at once, everywhere", "[resize]") {
    INFO(where.label);
    const auto lhs = map_everywhere();
    for (std::size_t i = 0; i < nodes.size() * 2; ++i) {
        const auto from = kResizedLength + i * 10000;
        node(i).resize(lmr.name(), from + 10000);
        const auto& writer = node(i + 1);
        writer.write(lhs[(i + 1) % lhs.size()], from, make_pattern(10000, i));
        CHECK(find_mismatch(read(i, lhs[i % lhs.size()], from, 10000), i) == std::nullopt);
        const auto word = (from + 7) / 8 * 8;
        const auto before = node(i).fetch_add(lhs[i % lhs.size()], word, 1);
        CHECK(writer.fetch_add(lhs[(i + 1) % lhs.size()], word, 0) == before + 1);
    }
}

TEST_CASE_METHOD(Resize, "resize: refused resizes change nothing", "[resize]") {
    INFO(where.label);
    const auto lhs = map_everywhere();
    dev.write(lmr.lh(), 0, make_pattern(kResizedLength, 9));
    CHECK(dev(resize_args(lmr.name(), 0)) == err(EINVAL));
    CHECK(dev(resize_args(lmr.name(), LITE_LMR_SIZE_MAX + 1)) == err(EFBIG));
    const auto e = dev(resize_args(lmr.name(), LITE_LMR_SIZE_MAX));
    CHECK((e == err(ENOSPC) || e == err(ENOMEM) || e == err(EDQUOT)));
    CHECK(call_as(kBob, [&] { return dev(resize_args(lmr.name(), 1)); }) == err(EPERM));
    const auto bobs = map_as(kBob, dev, lmr.name(), kRWA);
    CHECK(is_refusal(call_as(kBob, [&] { return dev(resize_args(bobs, 1)); })));
    CHECK(dev(resize_args(std::string_view("no-such-lmr"), 1)) == err(ENOENT));
    CHECK(dev(resize_args(std::uint64_t{12345}, 1)) == err(EBADF));
    check_length(lhs, kResizedLength);
    CHECK(find_mismatch(read(0, lmr.lh(), 0, kResizedLength), 9) == std::nullopt);
    if (all_here())
        CHECK(used() == whole_pages(kResizedLength));
    const auto lh = dev.map(lmr.name(), kM);
    dev.free(lmr.lh());
    CHECK(dev(resize_args(lh, 1)) == err(EIDRM));
}

TEST_CASE_METHOD(ChangeSomewhere, "resize: while it is used by all nodes", "[resize]") {
    INFO(where.label);
    // The users' slots never go away; one more process on each node works at the edge.
    const auto plan = slots_for(6, 40 * kPage);
    NamedLmr lmr(dev, plan.length, where.nodes, 0666);
    SlotUsers users(lmr.name(), plan);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        users.add([&, i](SlotUsers& all) {
            const Device own(env().indexes[i % env().indexes.size()]);
            const auto lh = own.map(lmr.name());
            std::vector<std::byte> data(3 * kPage, std::byte{0xff});
            all.begun();
            while (!all.over()) {
                for (const std::uint64_t at :
                     {std::uint64_t{0}, std::uint64_t{5000}, std::uint64_t{40000}}) {
                    const auto wrote = own(write_args(lh, plan.length + at, data.data(), 9000));
                    expect(wrote == ok || wrote == err(ERANGE), "write at the edge");
                    const auto read = own(read_args(lh, plan.length + at, data.data(), 9000));
                    expect(read == ok || read == err(ERANGE), "read at the edge");
                    expect(std::all_of(data.begin(), data.end(),
                                       [](std::byte b) {
                                           return b == std::byte{} || b == std::byte{0xff};
                                       }),
                           "what is beyond the end came from elsewhere");
                    data.assign(data.size(), std::byte{0xff});
                }
            }
        });
    }
    users.await_start();
    for (std::size_t round = 0; round < env().scaled(40, 10); ++round)
        node(round).resize(lmr.name(), plan.length + mix(round) % 60000);
    node(1).resize(lmr.name(), plan.length);
    std::uint64_t counted = 0;
    REQUIRE_NOTHROW(counted = users.stop());
    CHECK(dev.fetch_add(lmr.lh(), SlotUser::kCounterAt, 0) == counted);
    if (all_here())
        CHECK(used() == whole_pages(plan.length));
}
