// SPDX-License-Identifier: MIT
#include "env.hpp"

#include "raw.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string_view>

namespace lite_test {
namespace {

constexpr std::uint64_t kDefaultSeed = 20171028;  // the first day of SOSP'17

std::string_view variable(const char* name) {
    const char* text = std::getenv(name);
    return text ? text : "";
}

template <typename T>
T number(std::string_view text, const char* name) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
        throw std::runtime_error(std::string(name) + ": not a number: " + std::string(text));
    return value;
}

template <typename T>
std::vector<T> numbers(const char* name) {
    std::vector<T> values;
    std::string_view text = variable(name);
    while (!text.empty()) {
        const auto comma = std::min(text.find(','), text.size());
        values.push_back(number<T>(text.substr(0, comma), name));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return values;
}

template <typename T>
T number_or(const char* name, T otherwise) {
    const auto text = variable(name);
    return text.empty() ? otherwise : number<T>(text, name);
}

std::uint32_t node_id(unsigned index) { return Device(index).query().node_id; }

Env read_env() {
    Env e;
    e.indexes = numbers<unsigned>("LITE_TEST_INDEXES");
    if (e.indexes.empty())
        e.indexes = {0};
    e.self = node_id(e.indexes.front());
    e.remote = numbers<std::uint32_t>("LITE_TEST_REMOTE");
    if (e.remote.empty())
        std::transform(e.indexes.begin() + 1, e.indexes.end(), std::back_inserter(e.remote),
                       node_id);
    e.scale = number_or("LITE_TEST_SCALE", 1.0);
    e.slowness = number_or("LITE_TEST_SLOWNESS", 1);
    e.seed = number_or("LITE_TEST_SEED", kDefaultSeed);
    e.timeout_s = number_or("LITE_TEST_TIMEOUT", 120U);
    return e;
}

}  // namespace

std::uint32_t Env::peer() const {
    if (remote.empty())
        throw std::runtime_error(
            "needs another node: set LITE_TEST_REMOTE or more LITE_TEST_INDEXES");
    return remote.front();
}

std::size_t Env::scaled(std::size_t count, std::size_t least) const {
    return std::max(least, static_cast<std::size_t>(static_cast<double>(count) * scale));
}

std::vector<Placement> Env::placements() const {
    std::vector<Placement> all{{"local", {self}}};
    if (!remote.empty()) {
        all.push_back({"remote", {remote[0]}});
        all.push_back({"spread over self and peer", {self, remote[0]}});
        all.push_back({"spread over peer and self", {remote[0], self}});
    }
    if (remote.size() > 1)
        all.push_back({"spread over three", {remote[1], self, remote[0]}});
    return all;
}

std::vector<Placement> Env::some_placements(const std::string& test) const {
    auto all = placements();
    if (!in_few_places())
        return all;
    std::seed_seq mixed(test.begin(), test.end());
    std::array<std::uint32_t, 1> salt{};
    mixed.generate(salt.begin(), salt.end());
    std::mt19937_64 random(seed + salt[0]);
    std::shuffle(all.begin(), all.end(), random);
    std::vector<Placement> some;
    for (const bool spread : {false, true}) {
        const auto first = std::find_if(all.begin(), all.end(), [&](const Placement& each) {
            return (each.nodes.size() > 1) == spread;
        });
        if (first != all.end())
            some.push_back(*first);
    }
    return some;
}

const Env& env() {
    static const Env e = read_env();
    return e;
}

std::string unique_name(const std::string& stem) {
    // Pids repeat between machines, hence the random part. It only makes names unique and need not
    // be reproducible.
    static const auto salt = std::random_device{}();
    static std::atomic<unsigned> counter = 0;
    return stem + "-" + std::to_string(getpid()) + "-" + std::to_string(salt) + "-" +
           std::to_string(counter++);
}

}  // namespace lite_test
