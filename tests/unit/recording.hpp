// SPDX-License-Identifier: MIT
//
// A device that shows a test the library's exact requests to the kernel.
#pragma once

#include "device.hpp"

#include <lite/lite.h>

#include <cstring>
#include <memory>

// A device that records the last request and gives a fixed answer.
template <typename T>
class recorder final : public lite::internal::device {
  public:
    explicit recorder(T& last, unsigned long& request, int result, const T& answer)
        : m_last(last), m_request(request), m_result(result), m_answer(answer) {}

    int control(unsigned long request, void* arg) noexcept override {
        m_request = request;
        std::memcpy(&m_last, arg, sizeof(T));
        std::memcpy(arg, &m_answer, sizeof(T));
        return m_result;
    }

    int fd() const noexcept override { return 7; }

  private:
    T& m_last;
    unsigned long& m_request;
    int m_result;
    T m_answer;
};

// One context on such a device.
template <typename T>
struct recording {
    explicit recording(const T& answer = {}, int result = 0)
        : ctx(lite::internal::make_context(
              std::make_unique<recorder<T>>(last, request, result, answer))) {}
    recording(const recording&) = delete;
    recording& operator=(const recording&) = delete;
    ~recording() { lite_close(ctx); }

    T last{};
    unsigned long request = 0;
    lite_ctx* ctx;
};
