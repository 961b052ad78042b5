// SPDX-License-Identifier: MIT
#include "model.hpp"

#include <fmt/format.h>

namespace lin {

namespace {

const char* name(Kind kind) {
    switch (kind) {
        case Kind::read:
            return "read";
        case Kind::write:
            return "write";
        case Kind::fetch_add:
            return "fetch-add";
        case Kind::cmp_swap:
            return "cmp-swap";
        case Kind::swap:
            return "swap";
        case Kind::fetch_and:
            return "fetch-and";
        case Kind::fetch_or:
            return "fetch-or";
        case Kind::lock:
            return "lock";
        case Kind::trylock:
            return "trylock";
        case Kind::unlock:
            return "unlock";
        case Kind::lock_shared:
            return "lock-shared";
        case Kind::unlock_shared:
            return "unlock-shared";
        case Kind::die:
            return "die";
    }
    return "?";
}

std::string operands(const Operation& operation) {
    switch (operation.kind) {
        case Kind::cmp_swap:
            return fmt::format(" {:#x} by {:#x}", operation.a, operation.b);
        case Kind::write:
        case Kind::fetch_add:
        case Kind::swap:
        case Kind::fetch_and:
        case Kind::fetch_or:
            return fmt::format(" {:#x}", operation.a);
        default:
            return "";
    }
}

std::string answer(const Operation& operation) {
    switch (operation.answer) {
        case Answer::done:
            if (of_lock(operation.kind) || operation.kind == Kind::write)
                return "done";
            return fmt::format("{:#x}", operation.result);
        case Answer::owner_dead:
            return "owner dead";
        case Answer::busy:
            return "busy";
        case Answer::not_owner:
            return "not owner";
        case Answer::unknown:
            return "unknown";
    }
    return "?";
}

/// The value of the word after the operation.
std::uint64_t value_after(const Operation& operation, std::uint64_t value) {
    switch (operation.kind) {
        case Kind::write:
        case Kind::swap:
            return operation.a;
        case Kind::fetch_add:
            return value + operation.a;
        case Kind::cmp_swap:
            return value == operation.a ? operation.b : value;
        case Kind::fetch_and:
            return value & operation.a;
        case Kind::fetch_or:
            return value | operation.a;
        default:
            return value;
    }
}

std::uint64_t bit(const Operation& operation) {
    return std::uint64_t{1} << operation.process % readers_max;
}

bool holds(const Operation& operation, State state) {
    return operation.kind == Kind::unlock_shared
               ? state.readers & bit(operation)
               : state.value == std::uint64_t{operation.process} + 1;
}

std::optional<State> take(const Operation& operation, State state) {
    const bool shared = operation.kind == Kind::lock_shared;
    const bool taken = state.value || (shared ? state.readers & bit(operation) : state.readers);
    switch (operation.answer) {
        case Answer::busy:
            // A shared taker may be refused although others only share the lock, because a waiting
            // exclusive taker goes first.
            if (!state.value && !state.readers)
                return {};
            return state;
        case Answer::unknown:
            // A taker that finds the lock taken and gives up changes nothing.
            if (taken)
                return state;
            break;
        case Answer::done:
        case Answer::owner_dead:
            if (taken || state.orphaned != (operation.answer == Answer::owner_dead))
                return {};
            break;
        default:
            return {};
    }
    if (shared)
        state.readers |= bit(operation);
    else
        state = {std::uint64_t{operation.process} + 1};
    return state;
}

std::optional<State> give_back(const Operation& operation, State state) {
    const bool has = holds(operation, state);
    switch (operation.answer) {
        case Answer::not_owner:
            if (has)
                return {};
            return state;
        case Answer::unknown:
            if (!has)
                return state;
            break;
        case Answer::done:
            if (!has)
                return {};
            break;
        default:
            return {};
    }
    if (operation.kind == Kind::unlock_shared)
        state.readers &= ~bit(operation);
    else
        state.value = 0;
    return state;
}

State without(const Operation& death, State state) {
    state.readers &= ~bit(death);
    if (state.value == std::uint64_t{death.process} + 1)
        state = {0, true};
    return state;
}

}  // namespace

bool of_lock(Kind kind) { return kind >= Kind::lock; }

std::optional<State> apply(const Operation& operation, State state) {
    switch (operation.kind) {
        case Kind::lock:
        case Kind::trylock:
        case Kind::lock_shared:
            return take(operation, state);
        case Kind::unlock:
        case Kind::unlock_shared:
            return give_back(operation, state);
        case Kind::die:
            return without(operation, state);
        default:
            break;
    }
    if (operation.answer == Answer::done && operation.kind != Kind::write &&
        operation.result != state.value)
        return {};
    return State{value_after(operation, state.value)};
}

std::string to_string(State state, bool lock) {
    if (!lock)
        return fmt::format("{:#x}", state.value);
    if (state.value)
        return fmt::format("process {}", state.value - 1);
    if (state.readers)
        return fmt::format("{}shared by {:#x}", state.orphaned ? "orphaned, " : "", state.readers);
    return state.orphaned ? "orphaned" : "free";
}

std::string to_string(const Operation& operation) {
    const std::string end = operation.end == never ? "never" : fmt::to_string(operation.end);
    return fmt::format("[{}, {}] process {}: {}{} -> {}", operation.begin, end, operation.process,
                       name(operation.kind), operands(operation), answer(operation));
}

}  // namespace lin
