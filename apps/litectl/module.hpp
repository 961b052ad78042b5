// SPDX-License-Identifier: MIT
//
// Loads the kernel module.
#pragma once

namespace tools {

// Runs "modprobe lite". Throws failure with modprobe's message, and a hint to load the module by
// hand.
void load_module();

}  // namespace tools
