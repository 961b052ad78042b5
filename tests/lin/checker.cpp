// SPDX-License-Identifier: MIT
#include "checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <tuple>
#include <unordered_set>
#include <vector>

namespace lin {

namespace {

using Index = std::uint32_t;
constexpr Index none = ~Index{0};

struct Event {
    Time time;
    Index operation;
    bool end;
};

/// Bits of the open operations that have happened, by slot.
using Mask = std::vector<std::uint64_t>;

bool has(const Mask& mask, Index slot) { return mask[slot / 64] >> slot % 64 & 1; }
void set(Mask& mask, Index slot) { mask[slot / 64] |= std::uint64_t{1} << slot % 64; }
void clear(Mask& mask, Index slot) { mask[slot / 64] &= ~(std::uint64_t{1} << slot % 64); }

struct Hash {
    std::size_t operator()(const std::vector<std::uint64_t>& words) const {
        std::uint64_t hash = 0x9e3779b97f4a7c15;
        for (const std::uint64_t word : words) {
            hash ^= word;
            hash *= 0xff51afd7ed558ccd;
            hash ^= hash >> 32;
        }
        return hash;
    }
};

class Search {
  public:
    Search(std::span<const Operation> operations, State initial, std::size_t budget)
        : operations_(operations.begin(), operations.end()),
          initial_(initial),
          state_(initial),
          budget_(budget) {
        bind_to_deaths();
        order_events();
        assign_slots();
    }

    // There may be many operations of unknown end, which stay open for long. If one happened, a
    // known operation mostly follows. So the first search lets only one happen in a row, and each
    // further search twice as many.
    Result run() {
        Result result;
        for (row_limit_ = 1;; row_limit_ *= 2) {
            limited_ = false;
            result.verdict = search();
            result.configurations += seen_.size();
            if (result.verdict != Verdict::not_linearizable || !limited_)
                break;
            start_again();
        }
        if (result.verdict == Verdict::not_linearizable)
            result.explanation = explain();
        return result;
    }

  private:
    struct Choice {
        Index operation;
        State after;
        unsigned row;
    };

    /// A configuration on the path of the search, and the choices in it.
    struct Step {
        std::size_t next;
        State state;
        Mask mask;
        std::vector<Choice> choices;
        std::size_t tried;
    };

    Verdict search() {
        // Each step back goes to the last configuration that has choices left.
        while (!advance()) {
            if (seen_.size() > budget_)
                return Verdict::undecided;
            note();
            if (remember())
                path_.push_back({next_, state_, mask_, choices(), 0});
            if (!try_next())
                return Verdict::not_linearizable;
        }
        return Verdict::linearizable;
    }

    void start_again() {
        next_ = 0;
        state_ = initial_;
        row_ = 0;
        std::ranges::fill(mask_, 0);
        std::ranges::fill(open_, none);
        seen_.clear();
        furthest_ = 0;
        states_.clear();
    }

    // An operation of unknown end cannot happen after the death of its process.
    void bind_to_deaths() {
        std::map<std::uint32_t, Index> deaths;
        bool shared = false;
        std::uint32_t most = 0;
        for (Index i = 0; i < operations_.size(); i++) {
            const Operation& operation = operations_[i];
            if (operation.end < operation.begin)
                throw std::invalid_argument("ends before it begins: " + to_string(operation));
            if (operation.end == never && !operation.optional())
                throw std::invalid_argument("answered but has no end: " + to_string(operation));
            if (of_lock(operation.kind) != of_lock(operations_[0].kind))
                throw std::invalid_argument("both a word and a lock");
            shared = shared || operation.kind == Kind::lock_shared;
            most = std::max(most, operation.process);
            if (operation.kind == Kind::die && !deaths.emplace(operation.process, i).second)
                throw std::invalid_argument("dies twice: " + to_string(operation));
        }
        // Otherwise processes would share a bit, and the death of one would count for another.
        if (shared && most >= readers_max)
            throw std::invalid_argument("too many processes for a lock that is shared");
        death_.assign(operations_.size(), none);
        for (Index i = 0; i < operations_.size(); i++) {
            const auto found = deaths.find(operations_[i].process);
            if (found == deaths.end() || found->second == i)
                continue;
            const Operation& death = operations_[found->second];
            death_[i] = found->second;
            if (operations_[i].optional())
                operations_[i].end = std::min(operations_[i].end, death.end);
            if (operations_[i].begin > death.end || operations_[i].end > death.end)
                throw std::invalid_argument("acts after its death: " + to_string(operations_[i]));
        }
    }

    // At equal times begins come first, because operations that touch overlap.
    void order_events() {
        for (Index i = 0; i < operations_.size(); i++) {
            events_.push_back({operations_[i].begin, i, false});
            if (operations_[i].end != never)
                events_.push_back({operations_[i].end, i, true});
        }
        std::ranges::stable_sort(events_, {}, [&](const Event& event) {
            return std::tuple(event.time, event.end,
                              operations_[event.operation].kind == Kind::die);
        });
    }

    // An open operation has the same slot in every configuration.
    void assign_slots() {
        std::vector<Index> free;
        Index slots = 0;
        slot_.resize(operations_.size());
        for (const Event& event : events_) {
            if (event.end) {
                free.push_back(slot_[event.operation]);
            } else if (free.empty()) {
                slot_[event.operation] = slots++;
            } else {
                slot_[event.operation] = free.back();
                free.pop_back();
            }
        }
        open_.assign(slots, none);
        mask_.assign(slots / 64 + 1, 0);
    }

    // The state after the operation, if it can happen now.
    std::optional<State> outcome(Index i) const {
        const Index death = death_[i];
        if (death != none && open_[slot_[death]] == death && has(mask_, slot_[death]))
            return {};
        return apply(operations_[i], state_);
    }

    /// Advances in time to the next end of an operation that has not happened. True: none is left.
    bool advance() {
        for (;;) {
            for (; next_ < events_.size(); next_++) {
                const Index i = events_[next_].operation;
                if (!events_[next_].end) {
                    open_[slot_[i]] = i;
                    continue;
                }
                if (!has(mask_, slot_[i]))
                    break;
                clear(mask_, slot_[i]);
                open_[slot_[i]] = none;
            }
            if (next_ == events_.size())
                return true;
            if (!take_what_changes_nothing())
                return false;
        }
    }

    // An operation that changes nothing now need not be tried later, too, because its answer fixes
    // what it changes. Exceptions are a write, which may change the state later, and a death, which
    // ends the operations of its process. Returns whether time can advance now.
    bool take_what_changes_nothing() {
        for (const Index i : open_) {
            if (i == none || has(mask_, slot_[i]) || operations_[i].optional() ||
                operations_[i].kind == Kind::die || operations_[i].kind == Kind::write)
                continue;
            if (outcome(i) == state_) {
                set(mask_, slot_[i]);
                row_ = 0;
            }
        }
        return has(mask_, slot_[events_[next_].operation]);
    }

    // Returns false if this configuration was seen before.
    bool remember() {
        std::vector<std::uint64_t> key{next_, state_.value, state_.orphaned, state_.readers, row_};
        key.insert(key.end(), mask_.begin(), mask_.end());
        return seen_.insert(std::move(key)).second;
    }

    // The likeliest choices come first: the operation that ends now, then those known to have
    // happened, by their ends.
    std::vector<Choice> choices() {
        std::vector<Choice> result;
        const Index ending = events_[next_].operation;
        // The operation may never have happened.
        if (operations_[ending].optional())
            result.push_back({ending, state_, row_});
        std::set<std::tuple<Kind, std::uint64_t, std::uint64_t, std::uint32_t>> alike;
        for (const Index i : open_) {
            if (i == none || has(mask_, slot_[i]))
                continue;
            const auto after = outcome(i);
            if (!after)
                continue;
            const Operation& operation = operations_[i];
            if (operation.optional()) {
                if (*after == state_)
                    continue;
                if (row_ == row_limit_) {
                    limited_ = true;
                    continue;
                }
                // Of equal operations that stay open for ever, one is enough.
                if (operation.end == never && death_[i] == none &&
                    !alike
                         .emplace(operation.kind, operation.a, operation.b,
                                  of_lock(operation.kind) ? operation.process : 0)
                         .second)
                    continue;
            }
            result.push_back({i, *after, operation.optional() ? row_ + 1 : 0});
        }
        std::ranges::stable_sort(result, {}, [&](const Choice& choice) {
            const Operation& operation = operations_[choice.operation];
            return std::tuple(choice.operation != ending, operation.optional(), operation.end);
        });
        return result;
    }

    bool try_next() {
        while (!path_.empty()) {
            Step& step = path_.back();
            go_back(step.next);
            mask_ = step.mask;
            state_ = step.state;
            if (step.tried < step.choices.size()) {
                const Choice choice = step.choices[step.tried++];
                set(mask_, slot_[choice.operation]);
                state_ = choice.after;
                row_ = choice.row;
                return true;
            }
            path_.pop_back();
        }
        return false;
    }

    void go_back(std::size_t to) {
        while (next_ > to) {
            const Event& event = events_[--next_];
            open_[slot_[event.operation]] = event.end ? event.operation : none;
        }
    }

    // Notes the furthest point of the search, for the explanation.
    void note() {
        if (next_ < furthest_)
            return;
        if (next_ > furthest_) {
            furthest_ = next_;
            states_.clear();
            furthest_open_ = open_;
        }
        states_.insert(state_);
    }

    std::string explain() const {
        constexpr std::size_t shown = 12;
        const bool lock = of_lock(operations_[0].kind);
        const Index ending = events_[furthest_].operation;
        std::string text =
            fmt::format("cannot have happened before its end:\n  {}\nin any state then possible:",
                        to_string(operations_[ending]));
        std::size_t n = 0;
        for (const State& state : states_) {
            if (n++ == shown) {
                text += " ...";
                break;
            }
            text += " " + to_string(state, lock);
        }
        text += "\nopen at that time:";
        n = 0;
        for (const Index i : furthest_open_) {
            if (i == none || i == ending)
                continue;
            if (n++ == shown) {
                text += "\n  ...";
                break;
            }
            text += "\n  " + to_string(operations_[i]);
        }
        return text;
    }

    std::vector<Operation> operations_;
    std::vector<Index> death_;  // by operation: the death of its process, or none
    std::vector<Event> events_;
    std::vector<Index> slot_;
    State initial_;

    // The current configuration: time is before events_[next_].
    std::size_t next_ = 0;
    State state_;
    unsigned row_ = 0;  // operations of unknown answer that have happened since the last known one
    Mask mask_;
    std::vector<Index> open_;  // by slot: the operations that have begun and not ended

    std::vector<Step> path_;
    std::unordered_set<std::vector<std::uint64_t>, Hash> seen_;
    std::size_t budget_;
    unsigned row_limit_ = 1;
    bool limited_ = false;  // row_limit_ has excluded a choice

    std::size_t furthest_ = 0;
    std::set<State> states_;
    std::vector<Index> furthest_open_;
};

}  // namespace

Result check(std::span<const Operation> operations, State initial, std::size_t budget) {
    if (operations.empty())
        return {};
    return Search(operations, initial, budget).run();
}

Result check_all(std::span<const Operation> history, const std::map<std::uint64_t, State>& initial,
                 std::size_t budget) {
    std::map<std::uint64_t, std::vector<Operation>> words;
    for (const Operation& operation : history)
        words[operation.key].push_back(operation);
    Result sum;
    for (const auto& [key, operations] : words) {
        const auto found = initial.find(key);
        Result result = check(operations, found == initial.end() ? State{} : found->second, budget);
        sum.configurations += result.configurations;
        if (result.verdict == Verdict::linearizable)
            continue;
        if (sum.verdict == Verdict::linearizable || result.verdict == Verdict::not_linearizable) {
            sum.verdict = result.verdict;
            sum.explanation = fmt::format("word {:#x}: {}", key, result.explanation);
        }
        if (sum.verdict == Verdict::not_linearizable)
            break;
    }
    return sum;
}

}  // namespace lin
