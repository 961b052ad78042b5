// SPDX-License-Identifier: MIT
//
// The arm grpc, in a library: a unary call of raw bytes with the synchronous API, as generated code
// would make it, but without the cost of protocol buffers.
#include "arms/tcp/grpc_plugin.hpp"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/method_handler.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace perf {

namespace {

constexpr const char* method = "/lite.Perf/Echo";
constexpr std::chrono::seconds patience{10};

class EchoService final : public grpc::Service {
  public:
    EchoService() {
        using Handler =
            grpc::internal::RpcMethodHandler<EchoService, grpc::ByteBuffer, grpc::ByteBuffer,
                                             grpc::ByteBuffer, grpc::ByteBuffer>;
        AddMethod(new grpc::internal::RpcServiceMethod(
            method, grpc::internal::RpcMethod::NORMAL_RPC,
            new Handler(
                [](EchoService*, grpc::ServerContext*, const grpc::ByteBuffer* request,
                   grpc::ByteBuffer* reply) {
                    *reply = *request;  // shares the data
                    return grpc::Status::OK;
                },
                this)));
    }
};

struct Server {
    EchoService service;
    std::unique_ptr<grpc::Server> server;
};

struct Client {
    std::shared_ptr<grpc::Channel> channel;
    grpc::internal::RpcMethod echo;
};

void say(const std::exception& error, char* text, std::size_t room) {
    fmt::format_to_n(text, room - 1, "{}{}", error.what(), '\0');
    text[room - 1] = 0;
}

void* serve(const char* address, std::uint16_t port, char* error, std::size_t room) {
    try {
        auto server = std::make_unique<Server>();
        grpc::ServerBuilder builder;
        builder.AddListeningPort(fmt::format("{}:{}", *address ? address : "0.0.0.0", port),
                                 grpc::InsecureServerCredentials());
        builder.RegisterService(&server->service);
        server->server = builder.BuildAndStart();
        if (!server->server)
            throw std::runtime_error(fmt::format("gRPC: cannot listen on port {}", port));
        return server.release();
    } catch (const std::exception& e) {
        say(e, error, room);
        return nullptr;
    }
}

void stop(void* raw) {
    const std::unique_ptr<Server> server(static_cast<Server*>(raw));
    server->server->Shutdown(std::chrono::system_clock::now());
}

void* connect(const char* host, std::uint16_t port, char* error, std::size_t room) {
    try {
        grpc::ChannelArguments arguments;
        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        auto channel = grpc::CreateCustomChannel(fmt::format("{}:{}", host, port),
                                                 grpc::InsecureChannelCredentials(), arguments);
        if (!channel->WaitForConnected(std::chrono::system_clock::now() + patience))
            throw std::runtime_error(
                fmt::format("gRPC: {} does not answer on port {}", host, port));
        return new Client{channel, {method, grpc::internal::RpcMethod::NORMAL_RPC, channel}};
    } catch (const std::exception& e) {
        say(e, error, room);
        return nullptr;
    }
}

void close(void* client) { delete static_cast<Client*>(client); }

std::int64_t call(void* raw, const void* data, std::size_t length, void* reply_data,
                  std::size_t reply_room, char* error, std::size_t room) {
    auto& client = *static_cast<Client*>(raw);
    try {
        const grpc::Slice out(data, length);
        const grpc::ByteBuffer request(&out, 1);
        grpc::ByteBuffer reply;
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + patience);
        const grpc::Status status =
            grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
                client.channel.get(), client.echo, &context, request, &reply);
        if (!status.ok())
            throw std::runtime_error(fmt::format("gRPC: {}", status.error_message()));
        if (reply.Length() > reply_room)
            throw std::runtime_error("gRPC: the reply is too long");
        std::vector<grpc::Slice> slices;
        if (const grpc::Status dumped = reply.Dump(&slices); !dumped.ok())
            throw std::runtime_error("gRPC: the reply cannot be read");
        auto* at = static_cast<std::byte*>(reply_data);
        for (const grpc::Slice& slice : slices) {
            std::memcpy(at, slice.begin(), slice.size());
            at += slice.size();
        }
        return at - static_cast<std::byte*>(reply_data);
    } catch (const std::exception& e) {
        say(e, error, room);
        return -1;
    }
}

}  // namespace

}  // namespace perf

extern "C" __attribute__((visibility("default"))) const perf::GrpcPlugin lite_perf_grpc_plugin{
    perf::serve, perf::stop, perf::connect, perf::close, perf::call};
