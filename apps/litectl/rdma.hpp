// SPDX-License-Identifier: MIT
//
// Chooses the RDMA device and the address to start a node on.
#pragma once

#include "common/endpoint.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tools {

struct rdma_device {
    std::string name;
    std::vector<std::string> netdevs;
};

struct interface_address {
    std::string netdev;
    ip_address address;
};

// The RDMA devices in sysfs, by name. @root: their directory there. Interfaces only if
// @with_netdevs: a device of RoCE names one in a file for each of its GIDs, of which it may have a
// thousand.
std::vector<rdma_device> rdma_devices(const std::filesystem::path& root, bool with_netdevs = true);

// The addresses of this machine, in the kernel's order. Throws failure.
std::vector<interface_address> local_addresses();

struct place {
    std::string device;
    ip_address address;
};

// Fills in what the user left open:
// - neither given: the only device, taken as if given; there must not be several;
// - a device: its first address, but none of loopback or link-local, IPv4 before IPv6;
// - an address: the device of its interface, if there is only one;
// - both: taken as they are, the kernel reports a mismatch.
// Throws failure, with a text that says what to do.
place choose_place(const std::vector<rdma_device>& devices,
                   const std::vector<interface_address>& addresses,
                   const std::optional<std::string>& device,
                   const std::optional<ip_address>& address);

}  // namespace tools
