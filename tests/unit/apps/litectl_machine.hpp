// SPDX-License-Identifier: MIT
//
// A machine for the tests of litectl: an RDMA device, and a fake kernel.
#pragma once

#include "administration.hpp"
#include "terminal.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace litectl_test {

using tools::message;

struct result {
    int status;
    std::string out;
    std::string err;
};

// A fake kernel: records the requests, and gives the answers that the test sets.
struct kernel_side {
    bool loaded = true;
    std::vector<message> asked;
    std::vector<bool> dumps;
    std::vector<message> answers;
    std::optional<tools::refusal> refusal;
    // The requests that it refuses if there is a refusal; empty: all.
    std::function<bool(const message&)> refuses;
    int losses = 0;
    // Answers to JOIN and NODE_GET; after these, @answers.
    std::vector<message> in_turn;
};

class fake_channel final : public tools::channel {
  public:
    explicit fake_channel(kernel_side& kernel) : m_kernel(kernel) {}

    std::vector<message> request(const message& request, bool dump) override {
        m_kernel.asked.push_back(request);
        m_kernel.dumps.push_back(dump);
        if (m_kernel.refusal && (!m_kernel.refuses || m_kernel.refuses(request)))
            throw *m_kernel.refusal;
        if (m_kernel.in_turn.empty())
            return m_kernel.answers;
        const auto next = m_kernel.in_turn.front();
        m_kernel.in_turn.erase(m_kernel.in_turn.begin());
        return {next};
    }

    bool follow(const std::function<void()>& on_ready,
                const std::function<bool(const message&)>& on_event,
                const std::function<bool()>& on_loss,
                std::optional<std::chrono::milliseconds>) override {
        on_ready();
        for (const auto& event : m_kernel.answers)
            if (!on_event(event))
                return true;
        for (int i = 0; i < m_kernel.losses; i++)
            if (!on_loss())
                return true;
        return false;
    }

  private:
    kernel_side& m_kernel;
};

// A machine with an RDMA device rxe0 on eth0, and litectl.
class machine {
  public:
    machine() {
        add_device("rxe0", "eth0");
        world.devices = devices / ".";
        world.default_secret = devices / "secret";
        world.qos_file = devices / "qos";
        world.addresses = [] {
            return std::vector<tools::interface_address>{
                {"lo", *tools::ip_address::from_text("127.0.0.1")},
                {"eth0", *tools::ip_address::from_text("10.0.0.7")}};
        };
        world.connect = [this]() -> std::unique_ptr<tools::channel> {
            if (!kernel.loaded)
                throw tools::module_missing("the lite module is not loaded");
            return std::make_unique<fake_channel>(kernel);
        };
        world.load = [this] {
            loads++;
            kernel.loaded = true;
        };
    }

    void add_device(const std::string& name, const std::string& netdev) {
        const auto ndevs = devices / (name + "/ports/1/gid_attrs/ndevs");
        std::filesystem::create_directories(ndevs);
        write_file(ndevs + "/0", netdev + "\n");
    }

    result operator()(const tools::arguments& words, std::string_view input = {}) {
        const capture in(input);
        const capture out;
        const capture err;
        world.io = {in.fd(), out.fd(), err.fd()};
        const int status = tools::run_litectl(words, world);
        return {status, out.text(), err.text()};
    }

    temporary_directory devices;
    kernel_side kernel;
    tools::surroundings world;
    int loads = 0;
};

}  // namespace litectl_test
