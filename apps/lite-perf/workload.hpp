// SPDX-License-Identifier: MIT
//
// What is measured. A workload says who takes part and how each of them spends its turn; how they
// alternate and what is made of the samples is the runner's business.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "child.hpp"
#include "crew.hpp"
#include "slice.hpp"
#include "transport.hpp"

namespace perf {

class Workload;

/// What of each workload's parameters is to be measured.
struct Choice {
    std::vector<std::uint32_t> sizes;
    std::vector<unsigned> windows{1};
    std::vector<unsigned> threads{1};
    std::vector<unsigned> processes{1};
    std::vector<std::uint32_t> counts{1};    ///< of LMRs
    std::vector<std::uint64_t> lmr_sizes{};  ///< in bytes
};

/// One of those who take turns: an arm, with something that varies.
struct Contestant {
    std::string arm;
    std::string label;  ///< in tables
    unsigned width;     ///< requests, threads or processes at once
    std::function<std::vector<double>(const Slice&)> run;  ///< a turn's samples
    std::string against{};  ///< label of whom it is compared with; empty: the baseline
    std::map<std::string, double> facts{};  ///< that are no samples
};

/// The arms of a run. What takes time is made when it is first asked for.
class Field {
  public:
    /// Forks what the workloads will need: nothing may have been opened yet.
    Field(std::span<const std::string> arms, const Target& target, const Choice& choice,
          std::span<const Workload* const> workloads);

    const Choice& choice() const { return choice_; }
    const Target& target() const { return target_; }
    /// In the order of the command line.
    std::span<const std::string> arms() const { return arms_; }
    /// Connected, and shown to work.
    Transport& transport(std::string_view arm);
    /// Those of the arms that can do it.
    std::vector<std::string> able(Op op);
    /// A connection of its own for each of several threads; 0 is that of transport(). They echo or
    /// move small data, and need no more memory than that takes.
    Transport& caller(std::string_view arm, unsigned i);
    Crew& crew(std::string_view arm);
    /// Time in ns from before a new process is made until it has done this; see first_byte.hpp.
    double first_byte(std::string_view arm);
    /// Until it could begin.
    double process_alone(std::string_view arm);

  private:
    struct Entry {
        std::unique_ptr<Transport> transport;
        std::vector<std::unique_ptr<Transport>> callers;
        std::optional<Crew> crew;
        std::optional<Child> nursery;
    };

    std::vector<std::string> arms_;
    Target target_;
    Choice choice_;
    std::string first_name_;  ///< of the LMR whose first byte is read
    std::map<std::string, Entry, std::less<>> entries_;
    std::shared_ptr<void> first_lmr_;
};

class Workload {
  public:
    virtual ~Workload() = default;

    /// As on the command line.
    virtual std::string_view name() const = 0;
    /// What one sample is, for the head of a table.
    virtual std::string_view title() const = 0;
    virtual std::string_view unit() const = 0;
    virtual bool lower_is_better() const = 0;

    /// Sizes to measure.
    virtual std::vector<std::uint64_t> sizes(const Choice& choice) const = 0;
    /// Memory that an arm's buffer and region must have.
    virtual std::uint64_t bytes(const Choice&) const { return 0; }
    /// Needs processes that were forked before anything else.
    virtual bool processes() const { return false; }
    virtual bool new_processes() const { return false; }

    /// Whoever takes part with this size. They live as long as @field.
    virtual std::vector<Contestant> contestants(Field& field, std::uint64_t size) const = 0;
};

/// In the order in which they are run and printed.
std::span<const Workload* const> workloads();

/// "lite", "lite x16".
std::string label_of(std::string_view arm, unsigned width);

// Those of one family, in their files.
std::vector<const Workload*> operation_workloads();
std::vector<const Workload*> crowd_workloads();
std::vector<const Workload*> memory_workloads();

}  // namespace perf
