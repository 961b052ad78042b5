// SPDX-License-Identifier: MIT
#include "faults.hpp"

#include "../common/genl.hpp"
#include "../common/process.hpp"

#include <arpa/inet.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>

namespace lite_test {
namespace {

// A node of its own, which is started, joined to a cluster, taken out and stopped under faults.
class Membership {
  public:
    explicit Membership(const NodeAddress& a)
        : device_(a.device), own_(address(a.own)), member_(address(a.member)) {
        std::ifstream file(a.secret_file);
        if (!std::getline(file, secret_))
            throw std::runtime_error("no secret in " + a.secret_file);
    }
    ~Membership() { (void)stop(); }

    std::vector<Attempt> attempts() {
        return {
            attempt("start", Goal::absent, [this] { return start(); }),
            attempt("stop", Goal::started, [this] { return stop(); }),
            // The faults of this thread do not reach the part that a work item does for it.
            attempt("join", Goal::started, [this] { return begin_join(); }),
            attempt("leave", Goal::joined, [this] { return leave(); }),
            attempt("stop a member", Goal::joined, [this] { return stop(); }),
            attempt("ask", Goal::started, [this] { return get().error; }),
        };
    }

  private:
    static constexpr std::uint32_t kIndex = 9;
    static constexpr std::uint16_t kPort = 19999;

    enum class Goal { absent, started, joined };

    // A fresh node every time: it must be possible to stop a node in whatever state an attempt has
    // left it.
    void become(Goal goal) {
        if (get().error != err(ENODEV)) {
            const auto e = stop();
            expect(e == ok || e == err(ENODEV), "stop without a fault");
        }
        wait_until("it has stopped", [&] { return get().error == err(ENODEV); });
        if (goal == Goal::absent)
            return;
        must(start(), "start without a fault");
        if (goal == Goal::joined)
            must(join(), "join without a fault");
    }

    Attempt attempt(const std::string& label, Goal goal, std::function<Errno()> call) {
        return {label, std::move(call), [this, goal](Errno) { become(goal); },
                [this, goal] { become(goal); }};
    }

    static std::array<std::byte, 4> address(const std::string& text) {
        std::array<std::byte, 4> bytes{};
        if (::inet_pton(AF_INET, text.c_str(), bytes.data()) != 1)
            throw std::runtime_error("not an address: " + text);
        return bytes;
    }

    static void must(Errno e, const std::string& what) { expect_equal(e, ok, what); }

    Errno start() {
        GenlRequest request(LITE_CMD_NODE_START);
        request.put_value(LITE_A_INDEX, kIndex)
            .put_string(LITE_A_DEV, device_)
            .put(LITE_A_ADDR, own_)
            .put_value(LITE_A_PORT, kPort)
            .put(LITE_A_SECRET, std::as_bytes(std::span(secret_)));
        return socket_.ask(request).error;
    }
    // Waits until the join has ended.
    Errno join() {
        const auto begun = begin_join();
        if (begun != ok)
            return begun;
        Errno ended = ok;
        wait_until("the join has ended", [&] {
            const auto error = get().value<std::uint32_t>(LITE_A_JOIN_ERROR);
            if (error)
                ended = err(static_cast<int>(*error));
            return error.has_value();
        });
        return ended;
    }
    Errno begin_join() {
        GenlRequest request(LITE_CMD_NODE_JOIN);
        request.put_value(LITE_A_INDEX, kIndex)
            .put(LITE_A_ADDR, member_)
            .put_value(LITE_A_PORT, std::uint16_t{LITE_DEFAULT_PORT});
        return socket_.ask(request).error;
    }
    Errno leave() { return simple(LITE_CMD_NODE_LEAVE).error; }
    Errno stop() { return simple(LITE_CMD_NODE_STOP).error; }
    GenlAnswer get() { return simple(LITE_CMD_NODE_GET); }
    GenlAnswer simple(std::uint8_t command) {
        return socket_.ask(GenlRequest(command).put_value(LITE_A_INDEX, kIndex));
    }

    GenlSocket socket_;
    std::string device_;
    std::array<std::byte, 4> own_;
    std::array<std::byte, 4> member_;
    std::string secret_;
};

}  // namespace

void sweep_membership(FailNth& faults, const NodeAddress& address, unsigned samples) {
    Membership membership(address);
    for (const auto& attempt : membership.attempts())
        sweep(faults, attempt, samples);
}

}  // namespace lite_test
