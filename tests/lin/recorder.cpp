// SPDX-License-Identifier: MIT
#include "recorder.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <type_traits>

namespace lin {

static_assert(std::is_trivially_copyable_v<Operation> &&
              std::atomic<std::size_t>::is_always_lock_free);

Time now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<Time>(time.tv_sec) * 1'000'000'000 + static_cast<Time>(time.tv_nsec);
}

Recorder::Recorder(std::size_t parts, std::size_t room)
    : bytes_(parts * (sizeof(Part) + room * sizeof(Operation))) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED)
        throw std::system_error(errno, std::generic_category(), "mmap");
    auto* first = static_cast<Part*>(memory_);
    std::uninitialized_default_construct_n(first, parts);
    parts_ = {first, parts};
    auto* operations = reinterpret_cast<Operation*>(first + parts);
    for (Part& part : parts_) {
        part.operations_ = std::uninitialized_default_construct_n(operations, room) - room;
        part.room_ = room;
        operations += room;
    }
}

Recorder::~Recorder() { munmap(memory_, bytes_); }

// The count is stored last: a process that is killed before has not begun the operation.
void Recorder::Part::begin(Operation operation) {
    const std::size_t i = count_.load(std::memory_order_relaxed);
    if (i == room_)
        throw std::length_error("no room for more operations");
    operation.answer = Answer::unknown;
    operation.end = never;
    operation.begin = now();
    operations_[i] = operation;
    count_.store(i + 1, std::memory_order_release);
}

void Recorder::Part::end(Answer answer, std::uint64_t result) {
    Operation& operation = operations_[count_.load(std::memory_order_relaxed) - 1];
    if (answer == Answer::unknown)
        return;
    operation.end = now();
    operation.result = result;
    // The answer is stored last: if the process is killed before, history() drops the end.
    std::atomic_thread_fence(std::memory_order_release);
    operation.answer = answer;
}

void Recorder::Part::cancel() {
    count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
}

std::vector<Operation> Recorder::history() const {
    std::vector<Operation> all;
    for (const Part& part : parts_) {
        const std::size_t count = part.count_.load(std::memory_order_acquire);
        all.insert(all.end(), part.operations_, part.operations_ + count);
    }
    for (Operation& operation : all) {
        if (operation.answer == Answer::unknown)
            operation.end = never;
    }
    return all;
}

}  // namespace lin
