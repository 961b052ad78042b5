// SPDX-License-Identifier: MIT
//
// The LITE arm: one call of liblite per request. Echoes call "lite-perf serve" on the other node.
#include <lite/lite.h>
#include <lite/order.h>

#include <stdexcept>

#include "arms/lite/lite_memory.hpp"
#include "arms/lite/lite_server.hpp"
#include "memory.hpp"
#include "transport.hpp"

namespace perf {

namespace {

class LiteTransport final : public Transport {
  public:
    explicit LiteTransport(const Target& target)
        : memory_(target), echoed_(echo_max), node_(target.node) {
        // Without "lite-perf serve" the arm has no echoes.
        lite_ioc_rpc_find find{};
        if (!lite_rpc_find(memory_.context(), target.node, lite_echo_name, &find))
            function_ = find.function;
    }

    std::string_view name() const override { return "lite"; }
    std::span<std::byte> buffer() override { return memory_.buffer(); }
    std::span<std::byte> echoed() override { return echoed_.bytes(); }
    bool supports(Op op) const override {
        return op == Op::echo ? function_ != 0 : memory_.supports(op);
    }
    unsigned max_window() const override { return 1; }
    void set_urgent() override {
        check_lite(lite_set_priority(memory_.context(), LITE_PRIORITY(1)), "priority 1");
    }

    void post(std::span<const Request> requests) override {
        for (const Request& request : requests)
            carry_out(request);
    }

    std::uint64_t collect() override { return old_; }

  private:
    void carry_out(const Request& request) {
        lite_ctx* context = memory_.context();
        const lite_lh_t handle = memory_.handle(request);
        std::byte* local = memory_.local(request);
        switch (request.op) {
            case Op::read:
                check_lite(lite_read(context, handle, request.offset, local, request.length),
                           "read");
                break;
            case Op::write:
                check_lite(lite_write(context, handle, request.offset, local, request.length),
                           "write");
                break;
            case Op::fetch_add:
                check_lite(lite_fetch_add(context, handle, request.offset, 1, &old_), "fetch-add");
                break;
            case Op::echo:
                echo(local, request.length);
                break;
        }
    }

    void echo(const std::byte* data, std::size_t length) {
        std::size_t got = 0;
        check_lite(
            lite_rpc_call(memory_.context(), node_, function_, data, length, echoed_.bytes().data(),
                          echoed_.bytes().size(), &got, LITE_TIMEOUT_DEFAULT, nullptr),
            "call");
        if (got != length)
            throw std::runtime_error("LITE: the reply is too short");
    }

    LiteMemory memory_;
    Region echoed_;
    std::uint32_t node_;
    std::uint32_t function_ = 0;  // 0: none
    std::uint64_t old_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_lite_transport(const Target& target) {
    return std::make_unique<LiteTransport>(target);
}

}  // namespace perf
