// SPDX-License-Identifier: MIT

#include "rdma.hpp"

#include "common/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <set>
#include <system_error>

#include <ifaddrs.h>
#include <net/if.h>

namespace tools {
namespace {

namespace fs = std::filesystem;

constexpr auto no_device =
    "there is no RDMA device on this machine ('rdma link add rxe0 type rxe netdev eth0' "
    "makes one of Soft-RoCE)";

// Entries of a directory; none if it cannot be read, since devices may come and go.
std::vector<fs::path> entries(const fs::path& directory) {
    std::vector<fs::path> found;
    std::error_code ignored;
    for (fs::directory_iterator it(directory, ignored), end; it != end; it.increment(ignored))
        found.push_back(it->path());
    return found;
}

// The first word of a file in sysfs; empty if there is none. Reading an unused GID fails.
std::string word_in(const fs::path& file) {
    std::ifstream in(file);
    std::string word;
    in >> word;
    return word;
}

std::vector<std::string> netdevs_of(const fs::path& device) {
    std::set<std::string> found;
    // RoCE: each GID names its interface, VLANs included.
    for (const auto& port : entries(device / "ports"))
        for (const auto& gid : entries(port / "gid_attrs" / "ndevs"))
            found.insert(word_in(gid));
    // InfiniBand: the IPoIB interfaces are siblings on the same PCI function.
    for (const auto& netdev : entries(device / "device" / "net"))
        found.insert(netdev.filename().string());
    // Soft-RoCE names its interface even before it has a GID.
    found.insert(word_in(device / "parent"));
    found.erase("");
    return {found.begin(), found.end()};
}

bool is_on(const rdma_device& device, const std::string& netdev) {
    return std::find(device.netdevs.begin(), device.netdevs.end(), netdev) != device.netdevs.end();
}

std::string names_of(const std::vector<rdma_device>& devices) {
    std::vector<std::string> names;
    for (const auto& device : devices)
        names.push_back(device.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

const rdma_device& find_device(const std::vector<rdma_device>& devices, const std::string& name) {
    const auto found = std::find_if(devices.begin(), devices.end(),
                                    [&](const auto& device) { return device.name == name; });
    if (found != devices.end())
        return *found;
    if (devices.empty())
        throw failure(no_device);
    throw failure(fmt::format("there is no RDMA device {} (but {})", name, names_of(devices)));
}

const rdma_device& only_device(const std::vector<rdma_device>& devices) {
    if (devices.empty())
        throw failure(no_device);
    if (devices.size() > 1)
        throw failure(fmt::format(
            "there are several RDMA devices ({}): choose with --dev or --addr", names_of(devices)));
    return devices.front();
}

ip_address global_address(const rdma_device& device,
                          const std::vector<interface_address>& addresses) {
    for (const bool v6 : {false, true})
        for (const auto& [netdev, address] : addresses)
            if (address.is_v6() == v6 && is_on(device, netdev) && !address.is_loopback() &&
                !address.is_link_local())
                return address;
    if (device.netdevs.empty())
        throw failure(
            fmt::format("{} has no network interface: choose an address with --addr", device.name));
    throw failure(
        fmt::format("{} is on {}, which has no global address: give it one, or choose "
                    "with --addr",
                    device.name, fmt::join(device.netdevs, ", ")));
}

const rdma_device& device_with(const ip_address& address, const std::vector<rdma_device>& devices,
                               const std::vector<interface_address>& addresses) {
    std::set<std::string> netdevs;
    for (const auto& local : addresses)
        if (local.address == address)
            netdevs.insert(local.netdev);
    if (netdevs.empty())
        throw failure(fmt::format("{} is not an address of this machine", address.to_string()));
    if (devices.empty())
        throw failure(no_device);

    std::vector<rdma_device> found;
    for (const auto& device : devices)
        if (std::any_of(netdevs.begin(), netdevs.end(),
                        [&](const auto& netdev) { return is_on(device, netdev); }))
            found.push_back(device);
    if (found.empty())
        throw failure(fmt::format("{} is on {}, on which there is no RDMA device",
                                  address.to_string(), fmt::join(netdevs, ", ")));
    if (found.size() > 1)
        throw failure(
            fmt::format("several RDMA devices ({}) are on {}, which has {}: choose "
                        "with --dev",
                        names_of(found), fmt::join(netdevs, ", "), address.to_string()));
    return find_device(devices, found.front().name);
}

}  // namespace

std::vector<rdma_device> rdma_devices(const fs::path& root, bool with_netdevs) {
    std::vector<rdma_device> devices;
    std::error_code ignored;
    for (const auto& device : entries(root))
        if (fs::is_directory(device, ignored))
            devices.push_back({device.filename().string(),
                               with_netdevs ? netdevs_of(device) : std::vector<std::string>()});
    std::sort(devices.begin(), devices.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return devices;
}

std::vector<interface_address> local_addresses() {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list))
        throw failure(
            fmt::format("cannot list the addresses of this machine: {}", system_text(errno)));
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> guard(list, ::freeifaddrs);

    std::vector<interface_address> addresses;
    for (const auto* entry = list; entry; entry = entry->ifa_next)
        if (const auto address = ip_address::from_sockaddr(entry->ifa_addr))
            addresses.push_back({entry->ifa_name, *address});
    return addresses;
}

place choose_place(const std::vector<rdma_device>& devices,
                   const std::vector<interface_address>& addresses,
                   const std::optional<std::string>& device,
                   const std::optional<ip_address>& address) {
    if (device && address)
        return {find_device(devices, *device).name, *address};
    if (address)
        return {device_with(*address, devices, addresses).name, *address};
    const auto& chosen = device ? find_device(devices, *device) : only_device(devices);
    return {chosen.name, global_address(chosen, addresses)};
}

}  // namespace tools
