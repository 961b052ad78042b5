// SPDX-License-Identifier: MIT
//
// The LITE arm: an anonymous LMR on the other node, and one call of liblite per request.
#include <fmt/format.h>
#include <lite/lite.h>

#include <stdexcept>

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
    explicit LiteTransport(const Target& target) : region_(target.bytes) {
        lite_ctx* context = nullptr;
        check(lite_open(static_cast<int>(target.lite_index), &context),
              fmt::format("/dev/lite{}", target.lite_index));
        context_.reset(context);

        lite_ioc_query query;
        check(lite_query(context, &query), "query");
        atomics_ = query.features & LITE_FEATURE_ATOMICS;

        lite_alloc_params params{};
        params.size = sizeof params;
        params.length = target.bytes;
        params.nodes = &target.node;
        params.n_nodes = 1;
        params.mode = 0600;
        check(lite_alloc(context, &params, &handle_),
              fmt::format("allocating {} bytes on node {}", target.bytes, target.node));
    }

    std::string_view name() const override { return "lite"; }
    std::span<std::byte> buffer() override { return region_.bytes(); }
    bool supports(Op op) const override {
        return op != Op::echo && (op != Op::fetch_add || atomics_);
    }
    unsigned max_window() const override { return 1; }

    void issue(const Request& request) override {
        std::byte* local = region_.bytes().data() + request.offset;
        switch (request.op) {
            case Op::read:
                check(lite_read(context_.get(), handle_, request.offset, local, request.length),
                      "read");
                break;
            case Op::write:
                check(lite_write(context_.get(), handle_, request.offset, local, request.length),
                      "write");
                break;
            case Op::fetch_add:
                check(lite_fetch_add(context_.get(), handle_, request.offset, 1, &old_),
                      "fetch-add");
                break;
            case Op::echo:
                throw std::logic_error("LITE: no calls");
        }
    }

    std::uint64_t wait() override { return old_; }

  private:
    struct Close {
        void operator()(lite_ctx* context) const { lite_close(context); }
    };

    Region region_;
    std::unique_ptr<lite_ctx, Close> context_;
    lite_lh_t handle_ = 0;
    bool atomics_ = false;
    std::uint64_t old_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_lite_transport(const Target& target) {
    if (target.node == 0)
        throw std::runtime_error("LITE: the arm needs --node, the id of the node to measure to");
    return std::make_unique<LiteTransport>(target);
}

}  // namespace perf
