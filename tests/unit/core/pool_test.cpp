// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <cstdint>
#include <limits>
#include <map>

using namespace lite_test;

namespace {

// A pool, and the amount that each uid has taken.
class Pool {
  public:
    explicit Pool(lite_pool_rule rule) : rule_(rule) {}

    int take(std::uint32_t uid, std::uint64_t n) {
        const int err = lite_pool_check(&rule_, used_, by_users_, has_[uid], uid == 0, n);
        if (err == 0) {
            used_ += n;
            by_users_ += uid != 0 ? n : 0;
            has_[uid] += n;
        }
        return err;
    }

    // Take one unit after the other until the pool refuses.
    std::uint64_t take_all(std::uint32_t uid) {
        std::uint64_t n = 0;
        while (take(uid, 1) == 0)
            n++;
        return n;
    }

  private:
    lite_pool_rule rule_;
    std::uint64_t used_ = 0;
    std::uint64_t by_users_ = 0;
    std::map<std::uint32_t, std::uint64_t> has_;
};

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

}  // namespace

TEST_CASE("a user of a pool leaves as much to the next user", "[pool]") {
    Pool pool({.limit = 256, .reserve = 32});

    CHECK(pool.take_all(1000) == 112);
    CHECK(pool.take(1000, 1) == -EDQUOT);
    CHECK(pool.take_all(1001) == 56);
    CHECK(pool.take_all(1002) == 28);
}

TEST_CASE("users that take in turns get equal parts of a pool", "[pool]") {
    Pool pool({.limit = 300, .reserve = 0});
    std::uint64_t a = 0;
    std::uint64_t b = 0;

    for (int i = 0; i < 300; i++) {
        a += pool.take(1000, 1) == 0;
        b += pool.take(1001, 1) == 0;
    }
    CHECK(a == 100);
    CHECK(b == 100);
}

TEST_CASE("the reserve is left when users have taken all they can", "[pool]") {
    Pool pool({.limit = 256, .reserve = 32});

    for (std::uint32_t uid = 1; uid < 1000; uid++)
        pool.take_all(uid);
    CHECK(pool.take_all(0) >= 32);
    CHECK(pool.take(0, 1) == -ENOSPC);
    CHECK(pool.take(1000, 1) == -ENOSPC);
}

TEST_CASE("root's use beyond the reserve reduces the part of users", "[pool]") {
    Pool pool({.limit = 100, .reserve = 10});

    CHECK(pool.take(0, 80) == 0);
    CHECK(pool.take_all(1000) == 10);
    CHECK(pool.take_all(1001) == 5);
}

TEST_CASE("no amount is so large that it wraps and fits a pool", "[pool]") {
    Pool pool({.limit = most, .reserve = 0});

    CHECK(pool.take(1000, most) == -EDQUOT);
    CHECK(pool.take(1000, most / 2) == 0);
    CHECK(pool.take(1000, most / 2) == -EDQUOT);
    CHECK(pool.take(0, most / 2 + 1) == 0);
    CHECK(pool.take(0, 1) == -ENOSPC);
}

TEST_CASE("nothing can be taken of a pool that is empty", "[pool]") {
    Pool pool({.limit = 0, .reserve = 0});

    CHECK(pool.take(0, 1) == -ENOSPC);
    CHECK(pool.take(1000, 1) == -ENOSPC);
}
