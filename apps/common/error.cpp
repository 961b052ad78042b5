// SPDX-License-Identifier: MIT

#include "error.hpp"

#include <system_error>

namespace tools {

std::string system_text(int error) { return std::generic_category().message(error); }

}  // namespace tools
