// SPDX-License-Identifier: MIT
//
// A machine with "lite" and a fake cluster: shared by the tests of the commands.
#pragma once

#include "fake_node.hpp"
#include "session.hpp"
#include "terminal.hpp"

#include "catch.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

struct result {
    int status;
    std::string out;
    std::string err;
};

// A machine with "lite" on it.
class machine {
  public:
    machine() {
        env.open = [this](int index) {
            opened = index;
            return cluster.context();
        };
    }

    result operator()(const tools::arguments& words, std::string_view input = {}) {
        const capture in(input);
        const capture out;
        const capture err;
        env.io = {in.fd(), out.fd(), err.fd()};
        const int status = tools::run_lite(words, env);
        return {status, out.text(), err.text()};
    }

    // The first bytes of an LMR.
    std::string content(const std::string& name, std::size_t length) const {
        const auto found = cluster.find(name);
        return {reinterpret_cast<const char*>(found->data.data()), length};
    }

    fake::cluster cluster;
    tools::environment env;
    std::optional<int> opened;
};

// Usage errors name the mistake, and refer to --help.
inline void check_usage(const result& r, const std::string& text) {
    CHECK(r.status == 2);
    CHECK(r.out.empty());
    CHECK(r.err == "lite: " + text + "\nTry 'lite --help' for more information.\n");
}

inline void check_failure(const result& r, const std::string& text) {
    CHECK(r.status == 1);
    CHECK(r.err == "lite: " + text + "\n");
}

inline void check_silent(const result& r) {
    CHECK(r.status == 0);
    CHECK(r.out.empty());
    CHECK(r.err.empty());
}
