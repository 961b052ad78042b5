// SPDX-License-Identifier: MIT
//
// Loading the kernel module.
#pragma once

namespace tools {

// Runs "modprobe lite". Throws failure with what modprobe said, and with how to
// load the module by hand.
void load_module();

}  // namespace tools
