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
    /// @name: if empty, a unique one is made.
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

/// Opens LITE, maps an LMR by name and reads a few bytes. Returns the time of their arrival.
Clock::time_point first_byte_of_lite(unsigned index, const std::string& name);

/// The same for another arm: connects and reads a few bytes.
Clock::time_point first_byte_of(std::string_view arm, const Target& target);

/// Makes memory usable across machines, repeatedly. map() undoes it, too, but returns only the time
/// of making it usable, in microseconds.
class Mapper {
  public:
    virtual ~Mapper() = default;
    virtual double map() = 0;
};

/// Maps an LMR of @bytes by name. @cold: each time one that this node has not mapped.
std::unique_ptr<Mapper> make_lite_mapper(const Target& target, std::uint64_t bytes, bool cold);

/// Registers @bytes of local memory and exchanges the key with the other machine by TCP.
std::unique_ptr<Mapper> make_verbs_mapper(const Target& target, std::uint64_t bytes);

}  // namespace perf
