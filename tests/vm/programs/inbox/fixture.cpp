// SPDX-License-Identifier: MIT
#include "fixture.hpp"

namespace lite_test {

namespace {

sigjmp_buf fault_exit;
volatile std::sig_atomic_t fault_expected = 0;

void on_fault(int signal) {
    if (!fault_expected) {
        ::signal(signal, SIG_DFL);
        ::raise(signal);
    }
    siglongjmp(fault_exit, signal);
}

}  // namespace

int signal_of(const std::function<void()>& body) {
    struct sigaction action {};
    action.sa_handler = on_fault;
    ::sigaction(SIGBUS, &action, nullptr);
    ::sigaction(SIGSEGV, &action, nullptr);
    const int got = sigsetjmp(fault_exit, 1);
    if (!got) {
        fault_expected = 1;
        body();
    }
    fault_expected = 0;
    return got;
}

Echoing::Echoing(lite_inbox* inbox, int threads) {
    for (int i = 0; i < threads; i++)
        threads_.start([this, inbox] {
            lite_rpc_request request{};
            const void* data = nullptr;
            Bytes reply;
            std::uint32_t status = 0;
            while (!end_) {
                const int err = lite_inbox_reply_next(inbox, &request, &data, status, reply.data(),
                                                      reply.size(), 100);
                if (err == -ETIMEDOUT)
                    continue;
                if (err == -ENOENT && !request.token)
                    return;
                expect_equal(err, 0, "serve");
                const auto* first = static_cast<const std::byte*>(data);
                reply = answer_to(Bytes(first, first + request.length));
                status = request.length;
            }
            if (request.token)
                expect_equal(
                    lite_inbox_reply(inbox, request.token, status, reply.data(), reply.size()), 0,
                    "the last answer");
        });
}

Echoing::~Echoing() {
    end_ = true;
    threads_.join();
}

}  // namespace lite_test
