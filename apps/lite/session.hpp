// SPDX-License-Identifier: MIT
//
// The environment of the commands of "lite".
#pragma once

#include "common/error.hpp"
#include "common/io.hpp"
#include "common/program.hpp"

#include <lite/lite.hpp>
#include <lite/order.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace tools {

// The outside world; tests replace it.
struct environment {
    streams io;
    // Opens /dev/liteN; -1: the default one. Throws lite::error.
    std::function<lite::context(int index)> open = [](int index) { return lite::context(index); };
};

// Options of all commands, set when the command line is parsed.
struct session_options {
    int index = -1;
    std::uint32_t priority = LITE_PRIORITY_DEFAULT;
};

// One run of the program: its streams and its LITE node. The node is opened on first use, so that
// command-line errors are reported on machines without one, too.
class session {
  public:
    session(const environment& env, const session_options& options)
        : m_env(env), m_options(options) {}

    const streams& io() const { return m_env.io; }

    // Throws failure.
    lite::context& node();

  private:
    void open();

    const environment& m_env;
    const session_options& m_options;
    std::optional<lite::context> m_node;
};

// The whole program. Throws interrupted.
int run_lite(const arguments& words, const environment& env);

// "VERB NAME: text of the error".
failure explain(std::string_view verb, std::string_view name, const lite::error& e);

// Maps an LMR for the command @verb. Throws failure.
lite::region map_for(session& session, std::string_view verb, std::string_view name,
                     lite::rights rights);

// Bytes of a word: of an atomic operation, a lock, a barrier.
constexpr std::uint64_t word_size = 8;

// Throws failure unless @offset + @length is within an LMR of @size bytes.
void check_range(std::string_view verb, std::string_view name, std::uint64_t offset,
                 std::uint64_t length, std::uint64_t size);

}  // namespace tools
