// SPDX-License-Identifier: MIT
//
// The arm grpc. grpc_plugin.hpp says why most of it is in a library.
#include "arms/tcp/grpc_arm.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "memory.hpp"
#include "transport.hpp"

namespace perf {

namespace {

constexpr const char* plugin_file = "lite-perf-grpc.so";

/// Loads the library for good, from beside this program or as installed; null if not found.
const GrpcPlugin* find_plugin(std::string& why) {
    std::error_code error;
    const auto here =
        std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / plugin_file;
    const std::array candidates{here.string(), std::string(LITE_PERF_PLUGINS) + "/" + plugin_file};
    for (const std::string& path : candidates) {
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library)
            return static_cast<const GrpcPlugin*>(dlsym(library, grpc_plugin_symbol));
        why = dlerror();  // NOLINT(concurrency-mt-unsafe)
    }
    return nullptr;
}

const GrpcPlugin& plugin() {
    std::string why;
    static const GrpcPlugin* const found = find_plugin(why);
    if (!found)
        throw std::runtime_error(fmt::format("the arm grpc is not there: {}", why));
    return *found;
}

using Text = std::array<char, 256>;

class GrpcTransport final : public Transport {
  public:
    explicit GrpcTransport(const Target& target)
        : plugin_(plugin()), region_(echo_max), echoed_(echo_max), client_(nullptr, plugin_.close) {
        Text error{};
        client_.reset(plugin_.connect(target.server.c_str(), grpc_port(target.port), error.data(),
                                      error.size()));
        if (!client_)
            throw std::runtime_error(error.data());
    }

    std::string_view name() const override { return "grpc"; }
    std::span<std::byte> buffer() override { return region_.bytes(); }
    std::span<std::byte> echoed() override { return echoed_.bytes(); }
    bool supports(Op op) const override { return op == Op::echo; }
    unsigned max_window() const override { return 1; }

    void post(std::span<const Request> requests) override {
        for (const Request& request : requests)
            echo(request);
    }

    std::uint64_t collect() override { return 0; }

  private:
    void echo(const Request& request) {
        Text error{};
        const std::int64_t length = plugin_.call(
            client_.get(), region_.bytes().data() + request.local, request.length,
            echoed_.bytes().data(), echoed_.bytes().size(), error.data(), error.size());
        if (length < 0)
            throw std::runtime_error(error.data());
        if (length != request.length)
            throw std::runtime_error("gRPC: the reply is too short");
    }

    const GrpcPlugin& plugin_;
    Region region_;
    Region echoed_;
    std::unique_ptr<void, void (*)(void*)> client_;
};

}  // namespace

GrpcServer::GrpcServer(const std::string& address, std::uint16_t port)
    : server_(nullptr, plugin().stop) {
    Text error{};
    server_.reset(plugin().serve(address.c_str(), grpc_port(port), error.data(), error.size()));
    if (!server_)
        throw std::runtime_error(error.data());
}

std::unique_ptr<Transport> make_grpc_transport(const Target& target) {
    return std::make_unique<GrpcTransport>(target);
}

}  // namespace perf
