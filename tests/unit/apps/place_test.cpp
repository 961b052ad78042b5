// SPDX-License-Identifier: MIT
//
// What litectl finds without options: devices, addresses, secrets, the module.

#include "module.hpp"
#include "rdma.hpp"
#include "secret.hpp"
#include "terminal.hpp"

#include "common/error.hpp"

#include "catch.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <cstdlib>

#include <sys/stat.h>
#include <unistd.h>

using namespace tools;
using namespace std::string_literals;

namespace {

ip_address ip(const char* text) { return *ip_address::from_text(text); }

const std::vector<interface_address> addresses = {
    {"lo", ip("127.0.0.1")},     {"lo", ip("::1")},        {"eth0", ip("169.254.1.1")},
    {"eth0", ip("fe80::1")},     {"eth0", ip("fd00::1")},  {"eth0", ip("10.0.0.1")},
    {"eth0", ip("10.0.0.2")},    {"eth1", ip("fe80::2")},  {"eth1", ip("fd00::2")},
    {"eth2", ip("192.168.0.1")}, {"eth3", ip("10.0.3.1")}, {"eth4", ip("fe80::4")},
};
const rdma_device rxe0{"rxe0", {"eth0"}};
const rdma_device rxe1{"rxe1", {"eth1", "eth1.5"}};
const rdma_device both0{"both0", {"eth0"}};
const rdma_device bare{"bare", {}};
const rdma_device local{"local", {"eth4"}};

std::string complaint(const auto& body) {
    try {
        body();
    } catch (const failure& e) {
        return e.what();
    }
    return {};
}

std::string text(const place& place) { return place.device + " " + place.address.to_string(); }

std::string text(const secret& secret) {
    const auto bytes = secret.bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("litectl completes device and address of a node", "[place]") {
    const std::vector devices{rxe0, rxe1};
    CHECK(text(choose_place({rxe0}, addresses, {}, {})) == "rxe0 10.0.0.1");
    CHECK(text(choose_place(devices, addresses, "rxe0", {})) == "rxe0 10.0.0.1");
    CHECK(text(choose_place(devices, addresses, "rxe1", {})) == "rxe1 fd00::2");
    CHECK(text(choose_place(devices, addresses, {}, ip("10.0.0.2"))) == "rxe0 10.0.0.2");
    CHECK(text(choose_place(devices, addresses, {}, ip("fd00::2"))) == "rxe1 fd00::2");
    // If both are given, they are taken as they are.
    CHECK(text(choose_place(devices, addresses, "rxe1", ip("9.9.9.9"))) == "rxe1 9.9.9.9");
}

TEST_CASE("a missing or ambiguous device or address is explained", "[place]") {
    const auto why = [](const std::vector<rdma_device>& devices, std::optional<std::string> device,
                        std::optional<ip_address> address) {
        return complaint([&] { choose_place(devices, addresses, device, address); });
    };
    CHECK(why({}, {}, {}).starts_with("there is no RDMA device on this machine"));
    CHECK(why({}, "rxe0", {}).starts_with("there is no RDMA device on this machine"));
    CHECK(why({}, {}, ip("10.0.0.1")).starts_with("there is no RDMA device on this machine"));
    CHECK(why({rxe0, rxe1}, {}, {}) ==
          "there are several RDMA devices (rxe0, rxe1): choose with --dev or --addr");
    CHECK(why({rxe0, rxe1}, "mlx5_0", {}) == "there is no RDMA device mlx5_0 (but rxe0, rxe1)");
    CHECK(why({rxe0, rxe1}, "mlx5_0", ip("10.0.0.1")) ==
          "there is no RDMA device mlx5_0 (but rxe0, rxe1)");
    CHECK(why({local}, {}, {}) ==
          "local is on eth4, which has no global address: give it one, or choose with --addr");
    CHECK(why({bare}, {}, {}) == "bare has no network interface: choose an address with --addr");
    CHECK(why({rxe0}, {}, ip("9.9.9.9")) == "9.9.9.9 is not an address of this machine");
    CHECK(why({rxe0}, {}, ip("192.168.0.1")) ==
          "192.168.0.1 is on eth2, on which there is no RDMA device");
    CHECK(why({both0, rxe0}, {}, ip("10.0.0.1")) ==
          "several RDMA devices (both0, rxe0) are on eth0, which has 10.0.0.1: choose with --dev");
}

TEST_CASE("RDMA devices are read from sysfs", "[place]") {
    const temporary_directory sysfs;
    CHECK(rdma_devices(sysfs / "none").empty());

    const auto make = [&](const std::string& path, const std::string& content) {
        std::filesystem::create_directories(std::filesystem::path(sysfs / path).parent_path());
        write_file(sysfs / path, content);
    };
    make("rxe0/ports/1/gid_attrs/ndevs/0", "eth0\n");
    make("rxe0/ports/1/gid_attrs/ndevs/1", "eth0\n");
    make("rxe0/ports/1/gid_attrs/ndevs/2", "");  // not in use
    make("rxe0/parent", "eth0\n");
    make("mlx5_0/ports/1/gid_attrs/ndevs/0", "ens1\n");
    make("mlx5_0/ports/2/gid_attrs/ndevs/0", "ens2\n");
    std::filesystem::create_directories(sysfs / "ib0/device/net/ibp1");
    std::filesystem::create_directories(sysfs / "ib0/ports/1");

    const auto devices = rdma_devices(sysfs.path());
    REQUIRE(devices.size() == 3);
    CHECK(devices[0].name == "ib0");
    CHECK(devices[0].netdevs == std::vector{"ibp1"s});
    CHECK(devices[1].name == "mlx5_0");
    CHECK(devices[1].netdevs == std::vector{"ens1"s, "ens2"s});
    CHECK(devices[2].netdevs == std::vector{"eth0"s});

    const auto names = rdma_devices(sysfs.path(), false);
    REQUIRE(names.size() == 3);
    CHECK(names[2].name == "rxe0");
    CHECK(names[2].netdevs.empty());
}

TEST_CASE("this machine has addresses", "[place]") {
    const auto found = local_addresses();
    CHECK(std::any_of(found.begin(), found.end(),
                      [](const auto& entry) { return entry.address.is_loopback(); }));
}

TEST_CASE("secrets", "[secret]") {
    const temporary_directory directory;
    const auto path = directory / "secret";
    const auto read = [&](const std::string& content, unsigned mode = 0600) {
        write_file(path, content, mode);
        return text(read_secret(path, -1));
    };
    CHECK(read("x") == "x");
    CHECK(read("one line\n") == "one line");
    CHECK(read("two newlines\n\n") == "two newlines\n");
    CHECK(read("a\0b\r\n"s) == "a\0b\r"s);
    CHECK(read(std::string(64, 's')) == std::string(64, 's'));
    CHECK(read(std::string(64, 's') + "\n") == std::string(64, 's'));
    CHECK(read("x", 0400) == "x");

    const auto why = [&](const std::string& content, unsigned mode = 0600) {
        return complaint([&] { read(content, mode); });
    };
    CHECK(why("") == path + ": the secret is empty");
    CHECK(why("\n") == path + ": the secret is empty");
    CHECK(why(std::string(65, 's')) == path + ": the secret is longer than 64 bytes");
    CHECK(why(std::string(65, 's') + "\n") == path + ": the secret is longer than 64 bytes");
    CHECK(why(std::string(100000, 's')) == path + ": the secret is longer than 64 bytes");
    for (const unsigned mode : {0640U, 0604U, 0620U, 0666U, 0610U})
        CHECK(why("x", mode).find("'chmod 600' it") != std::string::npos);

    CHECK(complaint([&] { read_secret(directory.path(), -1); }) ==
          directory.path() + ": the secret must be in a regular file");
    CHECK(complaint([&] { read_secret(directory / "none", -1); }) ==
          directory / "none" + ": No such file or directory");
    REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
    CHECK(complaint([&] { read_secret(directory / "fifo", -1); }) ==
          directory / "fifo" + ": the secret must be in a regular file");

    const capture in("from a pipe\n");
    CHECK(text(read_secret("-", in.fd())) == "from a pipe");
}

TEST_CASE("secrets of other users", "[secret]") {
    if (::geteuid() != 0)
        return;  // only root can change the owner of files
    const temporary_directory directory;
    const auto path = directory / "secret";
    write_file(path, "x");
    REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
    CHECK(complaint([&] { read_secret(path, -1); }) ==
          path + ": the secret belongs to uid 12345, who is neither root nor you");
}

TEST_CASE("the module is loaded by modprobe", "[module]") {
    const temporary_directory directory;
    const std::string path = std::getenv("PATH");
    const auto with = [&](const std::string& script) {
        write_file(directory / "modprobe", "#!/bin/sh\n" + script, 0755);
        ::setenv("PATH", (directory.path() + ":" + path).c_str(), 1);
        const auto text = complaint([] { load_module(); });
        ::setenv("PATH", path.c_str(), 1);
        return text;
    };
    CHECK(with("[ \"$*\" = lite ] || exit 1").empty());
    CHECK(with("exit 1") ==
          "the lite module is not loaded, and 'modprobe lite' failed; try "
          "'insmod PATH/lite.ko' as root");
    CHECK(with("echo 'FATAL: not found' >&2; echo more; exit 1") ==
          "the lite module is not loaded, and 'modprobe lite' failed (FATAL: not found); try "
          "'insmod PATH/lite.ko' as root");
    CHECK_FALSE(with("kill -9 $$").empty());
    // Long output does not block modprobe.
    CHECK(with("yes | head -c 1000000; exit 1").find("(y)") != std::string::npos);
}
