// SPDX-License-Identifier: MIT
//
// The arms write-imm and send: the client side of native echoes.
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <stdexcept>

#include "arms/verbs/verbs_echo.hpp"
#include "transport.hpp"

namespace perf {

namespace {

class VerbsEchoTransport final : public Transport {
  public:
    VerbsEchoTransport(std::string_view name, EchoMode mode, const Target& target)
        : name_(name), channel_(make_event_channel()), echoed_(echo_max) {
        CmId id = make_cm_id(channel_.get());
        resolve_server(id.get(), target.server, echo_port(target.port), ack_timeout_patient);
        receive_cq_ = make_cq(id->verbs, EchoEnd::receives);
        end_.emplace(std::move(id), mode, receive_cq_.get());
        connect(target);
    }

    ~VerbsEchoTransport() override {
        if (connected_)
            rdma_disconnect(end_->id());
    }

    std::string_view name() const override { return name_; }
    std::span<std::byte> buffer() override { return end_->out(); }
    std::span<std::byte> echoed() override { return echoed_; }
    bool supports(Op op) const override { return op == Op::echo; }
    unsigned max_window() const override { return 1; }
    void set_crowded(bool crowded) override { yield_ = crowded; }

    void post(std::span<const Request> requests) override {
        for (const Request& request : requests)
            end_->post(end_->out().subspan(request.local, request.length));
    }

    std::uint64_t collect() override {
        const ibv_wc wc = await_completion(receive_cq_.get(), yield_);
        const auto reply = end_->received(wc);
        // Copy the reply once, the least that a caller does with it.
        std::memcpy(echoed_.data(), reply.data(), reply.size());
        return 0;
    }

  private:
    void connect(const Target& target) {
        EchoHello hello = end_->hello();
        rdma_conn_param param{};
        param.private_data = &hello;
        param.private_data_len = sizeof hello;
        const CmEvent event = connect_server(end_->id(), target.server, param);
        connected_ = true;
        const rdma_conn_param& answer = event->param.conn;
        if (!answer.private_data || answer.private_data_len < sizeof hello)
            throw std::runtime_error("verbs: the peer is not lite-perf serve of this version");
        std::memcpy(&hello, answer.private_data, sizeof hello);
        if (!hello.valid())
            throw std::runtime_error("verbs: the peer is not lite-perf serve of this version");
        end_->learn(hello);
    }

    std::string_view name_;
    bool yield_ = false;
    // In order of creation; destroyed in reverse.
    EventChannel channel_;
    CompletionQueue receive_cq_;
    std::optional<EchoEnd> end_;
    bool connected_ = false;
    std::vector<std::byte> echoed_;
};

}  // namespace

std::unique_ptr<Transport> make_write_imm_transport(const Target& target) {
    return std::make_unique<VerbsEchoTransport>("write-imm", EchoMode::write_imm, target);
}

std::unique_ptr<Transport> make_send_transport(const Target& target) {
    return std::make_unique<VerbsEchoTransport>("send", EchoMode::send, target);
}

}  // namespace perf
