// SPDX-License-Identifier: MIT
//
// Time until memory of another machine can be used, for the arms that support this.
#pragma once

#include <lite/lite.h>

#include <memory>
#include <string>

#include "transport.hpp"

namespace perf {

struct CloseContext {
    void operator()(lite_ctx* context) const { lite_close(context); }
};
using Context = std::unique_ptr<lite_ctx, CloseContext>;

Context open_context(unsigned index);

/// A named LMR on the node to measure to. Freed by the destructor.
class NamedLmr {
  public:
    /// @name: empty: a unique one.
    NamedLmr(const Target& target, std::uint64_t bytes, std::string name = {});
    ~NamedLmr();
    NamedLmr(const NamedLmr&) = delete;
    NamedLmr& operator=(const NamedLmr&) = delete;

    const std::string& name() const { return name_; }
    /// Closes the only handle, so that this node no longer has the LMR mapped.
    void forget();

  private:
    std::string name_;
    Context context_;
    lite_lh_t handle_ = 0;
};

/// Opens LITE, maps an LMR by name and reads a few bytes. Returns when they arrived, before
/// anything is closed.
Clock::time_point first_byte_of_lite(unsigned index, const std::string& name);

/// The same for another arm: connects and reads a few bytes.
Clock::time_point first_byte_of(std::string_view arm, const Target& target);

/// Makes memory of another node usable, repeatedly. map() returns the time in microseconds, without
/// undoing it.
class Mapper {
  public:
    virtual ~Mapper() = default;
    virtual double map() = 0;
};

/// Maps an LMR of @bytes by name. @cold: this node does not have it mapped before.
std::unique_ptr<Mapper> make_lite_mapper(const Target& target, std::uint64_t bytes, bool cold);

/// Registers as much memory and exchanges its key with the other machine.
std::unique_ptr<Mapper> make_verbs_mapper(const Target& target, std::uint64_t bytes);

}  // namespace perf
