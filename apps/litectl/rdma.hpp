// SPDX-License-Identifier: MIT
//
// Which RDMA device, and which address, a node is to be started on.
#pragma once

#include "common/endpoint.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tools {

// An RDMA device and the network interfaces that belong to it.
struct rdma_device {
    std::string name;
    std::vector<std::string> netdevs;
};

// An address of a network interface.
struct interface_address {
    std::string netdev;
    ip_address address;
};

// The RDMA devices that sysfs knows, by name. @root: where sysfs lists them.
std::vector<rdma_device> rdma_devices(const std::filesystem::path& root);

// The addresses of this machine, in the kernel's order. Throws failure.
std::vector<interface_address> local_addresses();

struct place {
    std::string device;
    ip_address address;
};

// Fills in what the user left open:
// - neither: there must be one device only; then as if it had been named;
// - a device: the first address of its interfaces that is neither loopback nor
//   link-local, IPv4 before IPv6;
// - an address: the device on whose interface it is, if there is one only;
// - both: are taken as they are, the kernel will say if they do not match.
// Throws failure, with a text that says what to do.
place choose_place(const std::vector<rdma_device>& devices,
                   const std::vector<interface_address>& addresses,
                   const std::optional<std::string>& device,
                   const std::optional<ip_address>& address);

}  // namespace tools
