// SPDX-License-Identifier: MIT
#include "fixture.hpp"

#include "../common/data/pattern.hpp"

#include <ostream>
#include <stdexcept>

#include <unistd.h>

namespace lite_test {

std::ostream& operator<<(std::ostream& out, const Result& r) {
    const char* name = ::strerrorname_np(-r.value);
    return r.value ? out << (name ? name : "?") : out << "success";
}

Context::Context(unsigned index) {
    lite_ctx* ctx = nullptr;
    const int err = lite_open(static_cast<int>(index), &ctx);
    if (err)
        throw std::runtime_error("lite_open: " + std::string(lite_strerror(err)));
    ctx_.reset(ctx);
}

std::uint32_t Context::node_id() const {
    lite_ioc_query query{};
    expect_equal(lite_query(ctx_.get(), &query), 0, "query");
    return query.node_id;
}

lite_rpc_params params_of(std::uint32_t max, std::uint32_t mode) {
    lite_rpc_params params{};
    params.size = sizeof(params);
    params.mode = mode;
    params.max_request = max;
    params.max_reply = max;
    return params;
}

Bytes request_of(Wish wish, std::size_t size, std::uint64_t seed) {
    Bytes request(std::max<std::size_t>(size, 1));
    fill_pattern(request, seed);
    request[0] = static_cast<std::byte>(wish);
    return request;
}

Bytes answer_to(const Bytes& request) {
    Bytes answer(request.size());
    const std::byte* from = request.data() + request.size();
    for (std::byte *to = answer.data(), *end = to + answer.size(); to != end; ++to)
        *to = static_cast<std::byte>(static_cast<unsigned char>(*--from) ^ 0x5aU);
    return answer;
}

void serve(lite_ctx* ctx, std::size_t max, const std::function<bool()>& more) {
    Bytes buffer(max);
    Bytes reply;
    lite_rpc_request request{};
    std::uint32_t status = 0;
    while (more()) {
        const int err = lite_rpc_reply_recv(ctx, &request, status, reply.data(), reply.size(), 0,
                                            buffer.data(), buffer.size(), 100);
        if (err == -ETIMEDOUT)
            continue;
        if (err)
            return;
        const Bytes data(buffer.begin(), buffer.begin() + request.length);
        switch (data.empty() ? Wish::echo : static_cast<Wish>(data[0])) {
            case Wish::hold:
                request.token = 0;
                break;
            case Wish::die:
                ::_exit(0);
            case Wish::longer: {
                std::uint32_t size = 0;
                std::memcpy(&size, data.data() + 1, sizeof(size));
                reply.assign(size, std::byte{0x77});
                break;
            }
            default:
                reply = answer_to(data);
        }
        status = static_cast<std::uint32_t>(data.size());
    }
    if (request.token)
        lite_rpc_reply(ctx, request.token, status, reply.data(), reply.size());
}

std::vector<Place> places() {
    const auto& indexes = env().indexes;
    std::vector<Place> all{{"one node", indexes[0], indexes[0]}};
    if (indexes.size() > 1)
        all.push_back({"two nodes", indexes[0], indexes[1]});
    return all;
}

RpcFixture::RpcFixture()
    : where(GENERATE(from_range(places()))),
      client(where.client),
      server(where.server),
      node(server.node_id()) {}

std::uint32_t RpcFixture::enroll(lite_ctx* ctx, const lite_rpc_params& params) {
    std::uint32_t function = 0;
    expect_equal(lite_rpc_register(ctx, &params, &function), 0, "register");
    return function;
}

Result RpcFixture::call(std::uint32_t function, const Bytes& request, Bytes* reply,
                        std::size_t room, int timeout_ms, std::uint32_t* status,
                        std::size_t* length) {
    Bytes buffer(room + 16, std::byte{0xcc});
    std::size_t n = 0;
    const int err = lite_rpc_call(client, node, function, request.data(), request.size(),
                                  buffer.data(), room, &n, timeout_ms, status);
    // Without success nothing is written, and never anything behind the room.
    const std::size_t written = err ? 0 : n;
    expect(written <= room, "the length of the reply");
    expect(all_are(std::span(buffer).subspan(written), std::byte{0xcc}),
           "a byte that was not to be written");
    if (length)
        *length = n;
    buffer.resize(written);
    if (reply)
        *reply = std::move(buffer);
    return {err};
}

std::chrono::milliseconds since(std::chrono::steady_clock::time_point begun) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 begun);
}

}  // namespace lite_test
