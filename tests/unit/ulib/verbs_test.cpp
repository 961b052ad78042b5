// SPDX-License-Identifier: MIT
//
// The rules of liblite-verbs.so that need neither a device nor LITE.

#include "memory/cover.hpp"
#include "memory/keys.hpp"
#include "memory/table.hpp"
#include "queues/order.hpp"

#include "catch.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

using namespace lite::verbs;

TEST_CASE("a key says what it is") {
    const uint32_t key = make_key(4095, 16383, 31);
    CHECK(key == 0xffffffff);
    CHECK(is_own_key(make_key(0, 0, 0)));
    CHECK_FALSE(is_own_key(0x7fffffff));
    CHECK(process_of(make_key(5, 6, 7)) == 5);
    CHECK(slot_of(make_key(5, 6, 7)) == 6);
}

TEST_CASE("keys are unique, and come back late and changed") {
    key_maker maker(9);
    std::vector<uint32_t> keys;
    while (const auto key = maker.take())
        keys.push_back(*key);
    CHECK(keys.size() == slots_max - slots_kept);
    CHECK(std::set<uint32_t>(keys.begin(), keys.end()).size() == keys.size());
    CHECK(std::all_of(keys.begin(), keys.end(), [](uint32_t k) { return process_of(k) == 9; }));

    // One key is given back and taken again all the time; the others stay.
    std::set<uint32_t> seen;
    uint32_t key = keys[17];
    for (uint32_t i = 0; i < slots_kept * generations; i++) {
        maker.give(key);
        const auto again = maker.take();
        REQUIRE(again);
        CHECK(seen.insert(key = *again).second);
    }
    CHECK_FALSE(maker.take());
}

TEST_CASE("an entry of the table is known to be whole") {
    table_entry entry = {};
    entry.key = make_key(1, 2, 3);
    entry.access = 2;
    entry.n_parts = 1;
    entry.length = 4096;
    entry.parts[0].length = 4096;
    entry.check = check_of(entry);
    CHECK(is_entry_of(entry, entry.key));
    CHECK_FALSE(is_entry_of(entry, entry.key ^ 1));
    entry.parts[3].length = 1;
    CHECK_FALSE(is_entry_of(entry, entry.key));
    entry.check = check_of(entry);
    CHECK(is_entry_of(entry, entry.key));
    entry.length = 4097;
    entry.check = check_of(entry);
    CHECK_FALSE(is_entry_of(entry, entry.key));
    entry.length = 4095;
    entry.check = check_of(entry);
    CHECK_FALSE(is_entry_of(entry, entry.key));
    entry.length = 4096;
    entry.n_parts = parts_max + 1;
    entry.check = check_of(entry);
    CHECK_FALSE(is_entry_of(entry, entry.key));
    CHECK(entry_offset(make_key(1, 2, 3)) == 4096 + 2 * sizeof(table_entry));
}

TEST_CASE("a range is covered by the LMRs that are there, and new ones") {
    cover c(1000);
    c.add(1, 100, 200);
    c.add(2, 300, 400);

    auto pieces = c.pieces(150, 350);
    REQUIRE(pieces.size() == 3);
    CHECK(pieces[0].id == 1);
    CHECK(pieces[0].begin == 150);
    CHECK(pieces[0].end == 200);
    CHECK(pieces[0].lmr_begin == 100);
    CHECK(pieces[1].id == 0);
    CHECK(pieces[1].begin == 200);
    CHECK(pieces[1].end == 300);
    CHECK(pieces[2].id == 2);
    CHECK(pieces[2].end == 350);

    CHECK(c.pieces(120, 130).size() == 1);
    CHECK(c.pieces(200, 300)[0].id == 0);
    CHECK(c.pieces(0, 100).size() == 1);
    // No piece is longer than an LMR may be.
    CHECK(c.pieces(400, 2900).size() == 3);

    c.use(1);
    CHECK_FALSE(c.is_last(1));
    CHECK_FALSE(c.release(1));
    CHECK(c.is_last(1));
    CHECK(c.release(1));
    CHECK(c.pieces(150, 160)[0].id == 0);
    CHECK(c.release(2));
    CHECK(c.empty());
}

TEST_CASE("any registrations leave nothing behind") {
    std::mt19937 random(7);
    cover c(64);
    uint32_t last = 0;
    std::vector<std::vector<uint32_t>> users;
    for (int i = 0; i < 3000; i++) {
        if (random() % 2 && !users.empty()) {
            const auto at = users.begin() + static_cast<long>(random() % users.size());
            for (const uint32_t id : *at)
                c.release(id);
            users.erase(at);
            continue;
        }
        const uint64_t begin = random() % 500;
        const uint64_t end = begin + 1 + random() % 100;
        std::vector<uint32_t> used;
        uint64_t reached = begin;
        for (const piece& p : c.pieces(begin, end)) {
            REQUIRE(p.begin == reached);
            REQUIRE(p.end > p.begin);
            REQUIRE(p.lmr_begin <= p.begin);
            reached = p.end;
            if (p.id)
                c.use(p.id);
            else
                c.add(++last, p.begin, p.end);
            used.push_back(p.id ? p.id : last);
        }
        REQUIRE(reached == end);
        users.push_back(used);
    }
    for (const auto& used : users) {
        for (const uint32_t id : used)
            c.release(id);
    }
    CHECK(c.empty());
}

TEST_CASE("what LITE executes waits for the device, and not the other way round") {
    send_order o(8);
    CHECK(o.next() == send_step::none);
    o.post(wr_kind::real);
    o.post(wr_kind::real);
    o.post(wr_kind::lite);
    o.post(wr_kind::real);
    CHECK(o.next() == send_step::post);
    o.start();
    CHECK(o.next() == send_step::post);
    o.start();
    CHECK(o.next() == send_step::wait);
    o.finish();
    CHECK(o.next() == send_step::wait);
    o.finish();
    CHECK(o.next() == send_step::run);
    CHECK(o.upcoming() == 2);
    o.start();
    o.finish();
    CHECK(o.next() == send_step::post);
    o.start();
    CHECK(o.next() == send_step::none);
    CHECK(o.in_flight());
}

TEST_CASE("after a failure the rest is flushed, behind what is in flight") {
    send_order o(4);
    o.post(wr_kind::real);
    o.post(wr_kind::lite);
    o.post(wr_kind::real);
    o.start();
    o.fail();
    CHECK(o.next() == send_step::wait);
    o.finish();
    CHECK(o.next() == send_step::flush);
    o.start();
    o.finish();
    CHECK(o.next() == send_step::flush);
    o.start();
    o.finish();
    CHECK(o.next() == send_step::none);
    o.post(wr_kind::lite);
    CHECK(o.next() == send_step::flush);
    o.reset();
    CHECK(o.next() == send_step::none);
    CHECK_FALSE(o.failed());
}

TEST_CASE("a place is free when the program knows of a completion behind it") {
    send_order o(3);
    for (int i = 0; i < 3; i++) {
        CHECK(o.room());
        o.post(wr_kind::lite);
        o.start();
        o.finish();
    }
    CHECK_FALSE(o.room());
    o.free_up_to(1);
    o.post(wr_kind::lite);
    o.post(wr_kind::lite);
    CHECK_FALSE(o.room());
    o.free_up_to(0);  // an older one frees nothing
    CHECK_FALSE(o.room());
}
