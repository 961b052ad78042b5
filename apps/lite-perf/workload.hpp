// SPDX-License-Identifier: MIT
//
// What is measured. A workload names the contestants and executes their turns; the runner makes
// them alternate and evaluates the samples.
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
#include "slice.hpp"
#include "transport.hpp"
#include "workloads/crew.hpp"

namespace perf {

class Workload;

struct Choice {
    std::vector<std::uint32_t> sizes;
    std::vector<unsigned> windows{1};
    std::vector<unsigned> threads{1};
    std::vector<unsigned> processes{1};
    std::vector<std::uint32_t> counts{1};    ///< of LMRs
    std::vector<std::uint64_t> lmr_sizes{};  ///< in bytes
    // For the workloads qos-*:
    std::vector<std::string> modes{};  ///< of LITE's scheduling
    std::uint64_t stream_bytes = 0;    ///< size of a large operation
    unsigned streams = 1;              ///< large operations in flight in one process
    // For the workloads file*:
    std::vector<std::uint64_t> file_sizes{};  ///< in bytes
    std::vector<unsigned> pipes{1};           ///< parts of a file moved at a time
    std::vector<unsigned> pages{1};           ///< of a part
    std::string directory{};                  ///< of the files
};

/// A participant of a workload: an arm with a variable parameter.
struct Contestant {
    std::string arm;
    std::string label;
    unsigned width;  ///< requests, threads or processes at once
    std::function<std::vector<double>(const Slice&)> run;  ///< returns a turn's samples
    std::string against{};  ///< label of the contestant to compare with; empty: the baseline
    /// Figures other than samples, known after the last turn.
    std::function<std::map<std::string, double>()> facts{};
};

/// The arms of a run. Expensive objects are made on first use.
class Field {
  public:
    /// Forks the processes that @workloads need. Nothing may have been opened before.
    Field(std::span<const std::string> arms, const Target& target, const Choice& choice,
          std::span<const Workload* const> workloads);

    const Choice& choice() const { return choice_; }
    const Target& target() const { return target_; }
    /// In the order of the command line.
    std::span<const std::string> arms() const { return arms_; }
    /// Connected and verified.
    Transport& transport(std::string_view arm);
    std::vector<std::string> able(Op op);
    /// The connection of thread @i; 0 is transport(). Others are for transfers of up to echo_max.
    Transport& caller(std::string_view arm, unsigned i);
    Crew& crew(std::string_view arm);
    /// Processes that stream large operations. @arm: lite, tcp or, for all native ones, verbs.
    Crew& streamers(std::string_view arm);
    /// Time in ns from before a process is forked until it has its first bytes (first_byte.hpp).
    double first_byte(std::string_view arm);
    /// The same for a process that does nothing.
    double process_alone(std::string_view arm);

  private:
    struct Entry {
        std::unique_ptr<Transport> transport;
        std::vector<std::unique_ptr<Transport>> callers;
        std::optional<Crew> crew;
        std::optional<Child> nursery;
    };

    void add_streamers();

    std::vector<std::string> arms_;
    Target target_;
    Choice choice_;
    std::string first_name_;  ///< name of the LMR for first_byte()
    std::map<std::string, Entry, std::less<>> entries_;
    std::map<std::string, Crew, std::less<>> streamers_;
    std::shared_ptr<void> first_lmr_;
};

class Workload {
  public:
    virtual ~Workload() = default;

    virtual std::string_view name() const = 0;
    /// Title of the table: what one sample is.
    virtual std::string_view title() const = 0;
    virtual std::string_view unit() const = 0;
    virtual bool lower_is_better() const = 0;

    virtual std::vector<std::uint64_t> sizes(const Choice& choice) const = 0;
    /// Bytes needed in an arm's buffer and region.
    virtual std::uint64_t bytes(const Choice&) const { return 0; }
    /// Measured only on request: needs much time, much memory of the other node, or root.
    virtual bool on_request() const { return false; }
    /// Needs Field::crew(), first_byte() or streamers(): processes forked before all else.
    virtual bool processes() const { return false; }
    virtual bool new_processes() const { return false; }
    virtual bool streaming_processes() const { return false; }

    /// The contestants for this size. They refer to @field.
    virtual std::vector<Contestant> contestants(Field& field, std::uint64_t size) const = 0;
};

/// In the order of runs and tables.
std::span<const Workload* const> workloads();

std::vector<std::uint64_t> sizes_within(const Choice& choice, std::uint32_t least,
                                        std::uint32_t most);

/// "lite", "lite x16".
std::string label_of(std::string_view arm, unsigned width);

std::vector<const Workload*> operation_workloads();
std::vector<const Workload*> crowd_workloads();
std::vector<const Workload*> memory_workloads();
std::vector<const Workload*> arena_workloads();
std::vector<const Workload*> qos_workloads();
std::vector<const Workload*> file_workloads();

}  // namespace perf
