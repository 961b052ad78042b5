// SPDX-License-Identifier: MIT
//
// Records operations of real threads and processes, and checks them.
#include "recorder.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <csignal>
#include <new>
#include <stdexcept>
#include <thread>

#include "../catch.hpp"
#include "checker.hpp"

using namespace lin;

namespace {

using Word = std::atomic<std::uint64_t>;

Operation adding(std::uint32_t process) {
    Operation operation;
    operation.process = process;
    operation.kind = Kind::fetch_add;
    operation.a = 1;
    return operation;
}

}  // namespace

TEST_CASE("threads that count with an atomic") {
    constexpr std::uint32_t threads = 4;
    constexpr std::size_t rounds = 2000;
    Recorder recorder(threads, rounds);
    Word word = 0;
    {
        std::vector<std::jthread> running;
        for (std::uint32_t i = 0; i < threads; i++) {
            running.emplace_back([&, i] {
                for (std::size_t k = 0; k < rounds; k++) {
                    recorder.part(i).begin(adding(i));
                    recorder.part(i).end(Answer::done, word.fetch_add(1));
                }
            });
        }
    }
    REQUIRE(recorder.history().size() == threads * rounds);
    const Result result = check_all(recorder.history());
    CHECK(result.explanation.empty());
    CHECK(result.verdict == Verdict::linearizable);
}

TEST_CASE("wrong: threads that count without an atomic") {
    Recorder recorder(2, 1);
    Word word = 0;
    std::barrier both_have_read(2);
    {
        std::vector<std::jthread> running;
        for (std::uint32_t i = 0; i < 2; i++) {
            running.emplace_back([&, i] {
                recorder.part(i).begin(adding(i));
                const std::uint64_t old = word;
                both_have_read.arrive_and_wait();
                word = old + 1;
                recorder.part(i).end(Answer::done, old);
            });
        }
    }
    CHECK(check_all(recorder.history()).verdict == Verdict::not_linearizable);
}

TEST_CASE("a process that is killed") {
    Recorder recorder(2, 10);
    void* shared =
        mmap(nullptr, sizeof(Word), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    auto& word = *new (shared) Word(0);
    const bool took_effect = GENERATE(false, true);
    const pid_t child = fork();
    if (child == 0) {
        recorder.part(1).begin(adding(1));
        recorder.part(1).end(Answer::done, word.fetch_add(1));
        recorder.part(1).begin(adding(1));
        if (took_effect)
            word.fetch_add(1);
        raise(SIGKILL);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    recorder.part(0).begin(adding(0));
    recorder.part(0).end(Answer::done, word.fetch_add(1));
    munmap(shared, sizeof(Word));

    auto history = recorder.history();
    REQUIRE(history.size() == 3);
    CHECK(history[1].answer == Answer::done);
    CHECK(history[2].answer == Answer::unknown);
    CHECK(history[2].end == never);
    CHECK(history[0].result == (took_effect ? 2 : 1));
    CHECK(check_all(history).verdict == Verdict::linearizable);
    history[0].result = 0;
    CHECK(check_all(history).verdict == Verdict::not_linearizable);
}

TEST_CASE("a part can be full, and refused operations are not in it") {
    Recorder recorder(1, 2);
    Recorder::Part& part = recorder.part(0);
    part.begin(adding(0));
    part.cancel();
    CHECK(part.left() == 2);
    part.begin(adding(0));
    part.end(Answer::done, 0);
    part.begin(adding(0));
    part.end(Answer::unknown);
    CHECK_THROWS_AS(part.begin(adding(0)), std::length_error);
    REQUIRE(recorder.history().size() == 2);
    CHECK(recorder.history()[0].begin <= recorder.history()[0].end);
    CHECK(recorder.history()[1].end == never);
}
