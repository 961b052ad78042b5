// SPDX-License-Identifier: MIT
#include "generate.hpp"

#include <algorithm>

#include "model.hpp"

namespace lin {

namespace {

std::uint64_t below(std::uint64_t limit, std::mt19937_64& random) {
    return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random);
}

/// Lets an operation happen now, with the right answer.
void happen(Operation& operation, State& state) {
    if (of_lock(operation.kind)) {
        const bool takes = operation.kind != Kind::unlock && operation.kind != Kind::unlock_shared;
        for (const Answer answer :
             {Answer::done, takes ? Answer::owner_dead : Answer::not_owner, Answer::busy}) {
            operation.answer = answer;
            if (apply(operation, state))
                break;
        }
    } else {
        operation.result = state.value;
    }
    state = *apply(operation, state);
}

class Generator {
  public:
    Generator(const Shape& shape, std::mt19937_64& random)
        : shape_(shape), random_(random), running_(shape.processes) {
        for (Running& running : running_)
            running.process = names_++;
    }

    std::vector<Operation> run() {
        while (begun_ < shape_.operations || std::ranges::any_of(running_, &Running::active))
            step(running_[below(running_.size(), random_)]);
        return std::move(history_);
    }

  private:
    struct Running {
        std::uint32_t process = 0;
        bool active = false;
        bool happened = false;
        Operation operation;
    };

    void step(Running& running) {
        time_++;
        const bool shares = state_.readers >> running.process % readers_max & 1;
        const bool holds = shares || state_.value == std::uint64_t{running.process} + 1;
        const Kind kind = running.operation.kind;
        if (!running.active) {
            if (begun_ < shape_.operations || (holds && of_lock(kind)))
                begin(running, holds);
        } else if (!running.happened && below(2, random_)) {
            // The caller waits for a lock.
            if ((kind == Kind::lock || kind == Kind::lock_shared) && !holds && must_wait(running))
                return;
            happen(running.operation, state_);
            running.happened = true;
        } else if (std::bernoulli_distribution(shape_.lost)(random_)) {
            lose(running);
        } else if (running.happened) {
            running.operation.end = time_;
            history_.push_back(running.operation);
            running.active = false;
        }
    }

    bool must_wait(const Running& running) const {
        return state_.value || (running.operation.kind == Kind::lock && state_.readers);
    }

    void begin(Running& running, bool holds) {
        begun_++;
        running.active = true;
        running.happened = false;
        running.operation = {};
        running.operation.process = running.process;
        running.operation.kind = shape_.kinds[below(shape_.kinds.size(), random_)];
        if (holds && of_lock(running.operation.kind))
            running.operation.kind = state_.value ? Kind::unlock : Kind::unlock_shared;
        running.operation.a = below(shape_.values, random_);
        running.operation.b = below(shape_.values, random_);
        running.operation.begin = time_;
    }

    // After a lost lock operation the caller dies; after one on a word it goes on.
    void lose(Running& running) {
        Operation& operation = running.operation;
        operation.answer = Answer::unknown;
        operation.result = 0;
        history_.push_back(operation);
        running.active = false;
        if (!of_lock(operation.kind))
            return;
        operation.kind = Kind::die;
        operation.begin = time_;
        history_.push_back(operation);
        state_ = *apply(operation, state_);
        running.process = names_++;
    }

    const Shape& shape_;
    std::mt19937_64& random_;
    std::vector<Running> running_;
    std::vector<Operation> history_;
    State state_;
    Time time_ = 0;
    std::size_t begun_ = 0;
    std::uint32_t names_ = 0;
};

class BruteForce {
  public:
    explicit BruteForce(const std::vector<Operation>& operations)
        : operations_(operations), happened_(operations.size()) {
        for (Operation& operation : operations_) {
            const Operation* death = death_of(operation);
            if (death && operation.optional())
                operation.end = std::min(operation.end, death->end);
        }
    }

    bool run(State state) {  // NOLINT(misc-no-recursion)
        bool all = true;
        for (std::size_t i = 0; i < operations_.size(); i++)
            all = all && (happened_[i] || operations_[i].optional());
        if (all)
            return true;
        for (std::size_t i = 0; i < operations_.size(); i++) {
            if (happened_[i] || !possible(i))
                continue;
            const auto after = apply(operations_[i], state);
            if (!after)
                continue;
            happened_[i] = true;
            if (run(*after))
                return true;
            happened_[i] = false;
        }
        return false;
    }

  private:
    const Operation* death_of(const Operation& operation) const {
        for (const Operation& other : operations_) {
            if (other.kind == Kind::die && other.process == operation.process &&
                &other != &operation)
                return &other;
        }
        return nullptr;
    }

    bool possible(std::size_t i) const {
        const Operation& operation = operations_[i];
        const Operation* death = death_of(operation);
        for (std::size_t j = 0; j < operations_.size(); j++) {
            const Operation& other = operations_[j];
            if (happened_[j] ? operation.end < other.begin || &other == death
                             : !other.optional() && other.end < operation.begin)
                return false;
        }
        return true;
    }

    std::vector<Operation> operations_;
    std::vector<bool> happened_;
};

}  // namespace

std::vector<Operation> right_history(const Shape& shape, std::mt19937_64& random) {
    return Generator(shape, random).run();
}

std::vector<Operation> any_history(std::size_t operations, bool lock, std::mt19937_64& random) {
    const Kind first = lock ? Kind::lock : Kind::read;
    const Kind last = lock ? Kind::die : Kind::fetch_or;
    std::vector<Operation> history;
    std::vector<bool> dead(3);
    while (history.size() < operations) {
        Operation operation;
        operation.kind = static_cast<Kind>(
            static_cast<unsigned>(first) +
            below(static_cast<unsigned>(last) - static_cast<unsigned>(first) + 1, random));
        operation.process = static_cast<std::uint32_t>(below(3, random));
        operation.a = below(3, random);
        operation.b = below(3, random);
        operation.result = below(3, random);
        operation.begin = below(10, random);
        operation.end = operation.begin + below(8, random);
        if (operation.kind == Kind::die) {
            if (dead[operation.process])
                continue;
            dead[operation.process] = true;
        } else if (lock && below(3, random) == 0) {
            operation.answer =
                operation.kind == Kind::unlock || operation.kind == Kind::unlock_shared
                    ? Answer::not_owner
                : below(2, random) ? Answer::busy
                                   : Answer::owner_dead;
        }
        if (below(4, random) == 0) {
            operation.answer = Answer::unknown;
            if (below(2, random))
                operation.end = never;
        }
        history.push_back(operation);
    }
    // No process acts after its death has ended.
    std::erase_if(history, [death = history](const Operation& operation) {
        return std::ranges::any_of(death, [&](const Operation& other) {
            return other.kind == Kind::die && other.process == operation.process &&
                   other.end < (operation.optional() ? operation.begin : operation.end);
        });
    });
    return history;
}

bool brute_force(const std::vector<Operation>& operations) {
    return BruteForce(operations).run({});
}

}  // namespace lin
