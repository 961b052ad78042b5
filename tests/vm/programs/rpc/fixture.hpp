// SPDX-License-Identifier: MIT
// A server and its callers: on one node, and on two of this machine if there are two.
#pragma once

#include "../common/env.hpp"
#include "../common/process.hpp"

#include <lite/lite.h>

#include "../common/catch.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace lite_test {

using Bytes = std::vector<std::byte>;

// The errno of a call; prints as its name.
struct Result {
    int value = 0;
    friend bool operator==(const Result&, const Result&) = default;
};
std::ostream& operator<<(std::ostream& out, const Result& r);

inline constexpr Result success{};
inline constexpr Result failed(int err) { return {-err}; }

class Context {
  public:
    explicit Context(unsigned index);
    lite_ctx* get() const { return ctx_.get(); }
    operator lite_ctx*() const { return ctx_.get(); }
    void close() { ctx_.reset(); }
    std::uint32_t node_id() const;

  private:
    struct Close {
        void operator()(lite_ctx* ctx) const { lite_close(ctx); }
    };
    std::unique_ptr<lite_ctx, Close> ctx_;
};

lite_rpc_params params_of(std::uint32_t max = 4096, std::uint32_t mode = 0600);

// What a request can ask of serve(): its first byte.
enum class Wish : unsigned char {
    echo = 'e',
    hold = 'h',    // take it and do not answer
    die = 'd',     // exit
    longer = 'l',  // answer with as many bytes as the next four say
};

Bytes request_of(Wish wish, std::size_t size, std::uint64_t seed = 1);
// The answer of serve() to an echo.
Bytes answer_to(const Bytes& request);

// Serves until the context ends, or @more returns false.
void serve(
    lite_ctx* ctx, std::size_t max, const std::function<bool()>& more = [] { return true; });

// A server in threads of this process.
class Serving {
  public:
    Serving(lite_ctx* ctx, std::size_t max, int threads = 1) {
        for (int i = 0; i < threads; i++)
            threads_.emplace_back([this, ctx, max] { serve(ctx, max, [this] { return !end_; }); });
    }
    ~Serving() {
        end_ = true;
        for (auto& thread : threads_)
            thread.join();
    }

  private:
    std::atomic<bool> end_ = false;
    std::vector<std::thread> threads_;
};

// A server's place: this node or another one.
struct Place {
    std::string label;
    unsigned client;
    unsigned server;
};
std::vector<Place> places();

class RpcFixture {
  public:
    RpcFixture();

    Result call(std::uint32_t function, const Bytes& request, Bytes* reply,
                std::size_t room = 65536, int timeout_ms = patience_ms(),
                std::uint32_t* status = nullptr, std::size_t* length = nullptr);
    // Registers a function at the server's node; returns its number.
    std::uint32_t enroll(lite_ctx* ctx, const lite_rpc_params& params);
    // A default that suits slow hosts, unlike LITE_TIMEOUT_DEFAULT.
    static int patience_ms() { return static_cast<int>(patience().count()); }

    Place where;
    Context client;
    Context server;
    std::uint32_t node;
};

std::chrono::milliseconds since(std::chrono::steady_clock::time_point begun);

}  // namespace lite_test
