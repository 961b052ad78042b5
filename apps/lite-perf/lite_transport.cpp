// SPDX-License-Identifier: MIT
//
// The LITE arm: anonymous LMRs on the other node, and one call of liblite per request. Echoes are
// calls of a function that "lite-perf serve" serves there.
#include <fmt/format.h>
#include <lite/lite.h>

#include <stdexcept>

#include "lite_server.hpp"
#include "memory.hpp"
#include "transport.hpp"

namespace perf {

namespace {

void check(int error, std::string_view what) {
    if (error)
        throw std::runtime_error(fmt::format("LITE: {}: {}", what, lite_strerror(error)));
}

class LiteTransport final : public Transport {
  public:
    explicit LiteTransport(const Target& target)
        : region_(target.buffer_bytes()), echoed_(echo_max), node_(target.node) {
        lite_ctx* context = nullptr;
        check(lite_open(static_cast<int>(target.lite_index), &context),
              fmt::format("/dev/lite{}", target.lite_index));
        context_.reset(context);

        lite_ioc_query query;
        check(lite_query(context, &query), "query");
        atomics_ = query.features & LITE_FEATURE_ATOMICS;

        // Without "lite-perf serve" at the other end there are no echoes; all else needs no server.
        lite_ioc_rpc_find find{};
        if (!lite_rpc_find(context, target.node, lite_echo_name, &find))
            function_ = find.function;

        lite_alloc_params params{};
        params.size = sizeof params;
        params.length = target.bytes;
        params.nodes = &target.node;
        params.n_nodes = 1;
        params.mode = 0600;
        handles_.resize(target.regions);
        for (lite_lh_t& handle : handles_)
            check(lite_alloc(context, &params, &handle),
                  fmt::format("allocating {} bytes on node {}", target.bytes, target.node));
    }

    std::string_view name() const override { return "lite"; }
    std::span<std::byte> buffer() override { return region_.bytes(); }
    std::span<std::byte> echoed() override { return echoed_.bytes(); }
    bool supports(Op op) const override {
        return op == Op::echo ? function_ != 0 : op != Op::fetch_add || atomics_;
    }
    unsigned max_window() const override { return 1; }

    void post(std::span<const Request> requests) override {
        for (const Request& request : requests)
            carry_out(request);
    }

    std::uint64_t collect() override { return old_; }

  private:
    struct Close {
        void operator()(lite_ctx* context) const { lite_close(context); }
    };

    void carry_out(const Request& request) {
        const lite_lh_t handle = handles_[request.region];
        std::byte* local = region_.bytes().data() + request.local;
        switch (request.op) {
            case Op::read:
                check(lite_read(context_.get(), handle, request.offset, local, request.length),
                      "read");
                break;
            case Op::write:
                check(lite_write(context_.get(), handle, request.offset, local, request.length),
                      "write");
                break;
            case Op::fetch_add:
                check(lite_fetch_add(context_.get(), handle, request.offset, 1, &old_),
                      "fetch-add");
                break;
            case Op::echo:
                echo(local, request.length);
                break;
        }
    }

    void echo(const std::byte* data, std::size_t length) {
        std::size_t got = 0;
        check(lite_rpc_call(context_.get(), node_, function_, data, length, echoed_.bytes().data(),
                            echoed_.bytes().size(), &got, -1, nullptr),
              "call");
        if (got != length)
            throw std::runtime_error("LITE: the reply is too short");
    }

    Region region_;
    Region echoed_;
    std::uint32_t node_;
    std::uint32_t function_ = 0;  // 0: there is none
    std::unique_ptr<lite_ctx, Close> context_;
    std::vector<lite_lh_t> handles_;
    bool atomics_ = false;
    std::uint64_t old_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_lite_transport(const Target& target) {
    return std::make_unique<LiteTransport>(target);
}

}  // namespace perf
