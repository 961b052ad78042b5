// SPDX-License-Identifier: MIT
//
// What it takes until memory of another machine can be used, by each arm that has a notion of it.
#pragma once

#include <lite/lite.h>

#include <memory>
#include <string>

#include "transport.hpp"

namespace perf {

/// A LITE context, closed with its owner.
struct CloseContext {
    void operator()(lite_ctx* context) const { lite_close(context); }
};
using Context = std::unique_ptr<lite_ctx, CloseContext>;

Context open_context(unsigned index);

/// An LMR with a name, on the node to measure to. Freed with its owner.
class NamedLmr {
  public:
    /// @name: empty: one that no other has.
    NamedLmr(const Target& target, std::uint64_t bytes, std::string name = {});
    ~NamedLmr();
    NamedLmr(const NamedLmr&) = delete;
    NamedLmr& operator=(const NamedLmr&) = delete;

    const std::string& name() const { return name_; }
    /// Close the only handle. Afterwards nobody of this node knows the LMR.
    void forget();

  private:
    std::string name_;
    Context context_;
    lite_lh_t handle_ = 0;
};

/// Open LITE, find an LMR by its name, and read a few of its bytes. Returns when they were there,
/// which is before all is closed again.
Clock::time_point first_byte_of_lite(unsigned index, const std::string& name);

/// Connect an arm and read a few bytes: likewise.
Clock::time_point first_byte_of(std::string_view arm, const Target& target);

/// Makes memory of another node usable, again and again. A sample is a time in microseconds; what
/// is done to undo it is not in it.
class Mapper {
  public:
    virtual ~Mapper() = default;
    virtual double map() = 0;
};

/// Map an LMR of so many bytes by its name. @cold: nobody of this node knows it yet.
std::unique_ptr<Mapper> make_lite_mapper(const Target& target, std::uint64_t bytes, bool cold);

/// Register as much memory and exchange its key with the other machine.
std::unique_ptr<Mapper> make_verbs_mapper(const Target& target, std::uint64_t bytes);

}  // namespace perf
