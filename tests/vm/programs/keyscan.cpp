// SPDX-License-Identifier: MIT
// Looks for numbers, the node's global keys, in everything that a program can get from LITE and the
// kernel: the answers of ioctls and netlink, the kernel's log, /proc, /sys, tracefs.
//
//   keyscan bump DEVICE COUNT   registers and drops memory regions of an RDMA device, so that its
//                               next key is an unusual one
//   keyscan scan                reads the keys from standard input; prints a line for each place
//                               where one was found, and in which form
//
// A number can be anywhere by chance. The calling test repeats the scan with other keys, and
// believes a place only if it has the right number every time.
#include "common/data/pattern.hpp"
#include "common/env.hpp"
#include "common/genl.hpp"
#include "common/raw.hpp"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/netlink.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace lite_test;

namespace fs = std::filesystem;

namespace {

// --- What to look for ----------------------------------------------------------------------------

class Needle {
  public:
    explicit Needle(std::uint32_t key) : text_(spellings(key)) {
        for (int shift = 0; shift < 32; shift += 8)
            little_.push_back(static_cast<char>(key >> shift));
        big_.assign(little_.rbegin(), little_.rend());
    }

    // The form in which the number is in @bytes, or "".
    std::string find(std::string_view bytes) const {
        if (bytes.find(little_) != bytes.npos)
            return "binary, little-endian";
        if (bytes.find(big_) != bytes.npos)
            return "binary, big-endian";
        return find_text(bytes);
    }

    // Only as a complete number: "12345" is not in "123456".
    std::string find_text(std::string_view bytes) const {
        for (const auto& spelling : text_) {
            for (auto at = bytes.find(spelling); at != bytes.npos;
                 at = bytes.find(spelling, at + 1)) {
                const bool begins =
                    at == 0 || !std::isxdigit(static_cast<unsigned char>(bytes[at - 1]));
                const auto end = at + spelling.size();
                const bool ends =
                    end == bytes.size() || !std::isxdigit(static_cast<unsigned char>(bytes[end]));
                if (begins && ends)
                    return "text: " + spelling;
            }
        }
        return "";
    }

  private:
    static std::vector<std::string> spellings(std::uint32_t key) {
        std::vector<std::string> all;
        for (const char* format : {"%u", "%x", "%X", "%08x", "%08X", "%016x"}) {
            std::array<char, 32> text{};
            std::snprintf(text.data(), text.size(), format, key);
            if (std::find(all.begin(), all.end(), text.data()) == all.end())
                all.emplace_back(text.data());
        }
        return all;
    }

    std::vector<std::string> text_;
    std::string little_;
    std::string big_;
};

class Report {
  public:
    explicit Report(const std::vector<Needle>& needles) : needles_(needles) {}

    void look(const std::string& place, std::string_view bytes) {
        ++looked_;
        for (const Needle& needle : needles_)
            say(place, needle.find(bytes));
    }
    void look_at_text(const std::string& place, std::string_view bytes) {
        ++looked_;
        for (const Needle& needle : needles_)
            say(place, needle.find_text(bytes));
    }
    template <typename T>
    void look_at(const std::string& place, const T& object) {
        look(place, {reinterpret_cast<const char*>(&object), sizeof(object)});
    }
    std::size_t looked() const { return looked_; }

  private:
    static void say(const std::string& place, const std::string& form) {
        if (!form.empty())
            std::printf("found\t%s\t%s\n", place.c_str(), form.c_str());
    }

    const std::vector<Needle>& needles_;
    std::size_t looked_ = 0;
};

// --- Where to look -------------------------------------------------------------------------------

// Looks at the results of calls, and at what they leave in a buffer that is larger than needed.
void scan_ioctls(Report& report) {
    const Device dev(env().indexes.front());
    report.look_at("ioctl QUERY", dev.query());
    for (const auto& where : env().placements()) {
        const auto name = unique_name("keyscan");
        auto alloc = alloc_args(name, 100000);
        set_nodes(alloc, where.nodes);
        if (dev(alloc) != ok)
            throw std::runtime_error("cannot make an LMR");
        report.look_at("ioctl ALLOC", alloc);
        auto map = map_args(name, LITE_RIGHT_READ | LITE_RIGHT_WRITE | LITE_RIGHT_ATOMIC);
        if (dev(map) != ok)
            throw std::runtime_error("cannot map an LMR");
        report.look_at("ioctl MAP", map);
        std::vector<std::byte> contents(100000);
        auto read = read_args(map.lh, 0, contents.data(), contents.size());
        (void)dev(read);
        report.look_at("ioctl OP", read);
        report.look("contents of a fresh LMR",
                    {reinterpret_cast<const char*>(contents.data()), contents.size()});
        auto bad = read_args(map.lh, 99999, contents.data(), 2);
        (void)dev(bad);
        report.look_at("ioctl OP, refused", bad);
        auto stat = stat_args(name);
        (void)dev(stat);
        report.look_at("ioctl STAT", stat);
        std::array<lite_lmr_info, 16> infos{};
        auto list = list_args(infos);
        (void)dev(list);
        report.look_at("ioctl LIST", list);
        report.look_at("ioctl LIST, entries", infos);
        auto freed = free_args(name);
        (void)dev(freed);
        report.look_at("ioctl FREE", freed);
    }
}

void scan_netlink(Report& report) {
    GenlSocket socket;
    const auto look = [&](const std::string& place, const GenlAnswer& answer) {
        for (const auto& message : answer.messages)
            report.look(place, {reinterpret_cast<const char*>(message.data()), message.size()});
        report.look(place + ", text", answer.text);
    };
    look("netlink family", socket.family());
    const std::map<std::string, std::uint8_t> dumps{{"NODE_GET", LITE_CMD_NODE_GET},
                                                    {"PEER_GET", LITE_CMD_PEER_GET},
                                                    {"STATS_GET", LITE_CMD_STATS_GET}};
    for (const auto& [name, command] : dumps)
        look("netlink " + name,
             socket.ask(
                 GenlRequest(command, NLM_F_DUMP).put_value(LITE_A_INDEX, env().indexes.front())));
    look(
        "netlink JOIN, refused",
        socket.ask(GenlRequest(LITE_CMD_NODE_JOIN).put_value(LITE_A_INDEX, env().indexes.front())));
}

void scan_log(Report& report) {
    const int fd = ::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        throw std::runtime_error("cannot open /dev/kmsg");
    std::array<char, 8192> line;
    for (;;) {
        const auto n = ::read(fd, line.data(), line.size());
        if (n < 0 && errno == EPIPE)
            continue;  // overwritten meanwhile
        if (n <= 0)
            break;
        // Without the prefix: sequence numbers and times may have any value.
        const std::string_view text(line.data(), static_cast<std::size_t>(n));
        report.look_at_text("kernel log", text.substr(std::min(text.find(';'), text.size() - 1)));
    }
    ::close(fd);
}

// Of the hundreds of numbered entries of an RDMA device's tables, all but the first.
bool is_further_entry(const std::string& path) {
    constexpr unsigned long kFirst = 16;
    const auto name = path.substr(path.rfind('/') + 1);
    return path.find("/gid") != path.npos && !name.empty() &&
           std::isdigit(static_cast<unsigned char>(name[0])) &&
           std::strtoul(name.c_str(), nullptr, 10) >= kFirst;
}

// Memory itself, endless or harmful files, and thousands of files that are alike: figures of the
// kernel's allocator, types and the other place of tracefs.
bool left_out(const std::string& path) {
    static const std::set<std::string> exact{"/proc/kcore",
                                             "/proc/kmsg",
                                             "/proc/sysrq-trigger",
                                             "/sys/kernel/debug/kmemleak",
                                             "/sys/kernel/debug/tracing",
                                             "/sys/kernel/slab",
                                             "/sys/kernel/btf"};
    for (const std::string_view part :
         {"/trace_pipe", "/mem", "/pagemap", "/kpage", "/clear_refs", "/trace_pipe_raw",
          "/snapshot_raw", "/vmcore", "/events/", "/available_"}) {
        if (path.find(part) != path.npos)
            return true;
    }
    return exact.count(path) != 0 || is_further_entry(path);
}

std::string read_file(const std::string& path) {
    constexpr std::size_t kEnough = 4 << 20;
    const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    std::string content;
    if (fd < 0)
        return content;
    std::array<char, 64 << 10> chunk;
    while (content.size() < kEnough) {
        const auto n = ::read(fd, chunk.data(), chunk.size());
        if (n <= 0)
            break;
        content.append(chunk.data(), static_cast<std::size_t>(n));
    }
    ::close(fd);
    return content;
}

// Other processes have nothing of LITE that this process does not have.
bool is_other_process(const fs::path& path) {
    const auto name = path.filename().string();
    return path.parent_path() == "/proc" && !name.empty() &&
           std::isdigit(static_cast<unsigned char>(name[0])) && name != std::to_string(::getpid());
}

void scan_tree(Report& report, const std::string& root) {
    std::error_code ignored;
    for (auto it = fs::recursive_directory_iterator(
             root, fs::directory_options::skip_permission_denied, ignored);
         it != fs::recursive_directory_iterator(); it.increment(ignored)) {
        const auto path = it->path().string();
        if (left_out(path) || is_other_process(it->path()) || it.depth() > 12) {
            it.disable_recursion_pending();
            continue;
        }
        // A file name can contain a number as well.
        report.look_at_text("name of " + path, it->path().filename().string());
        struct stat status {};
        if (::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
            (status.st_mode & 0444))
            report.look_at_text(path, read_file(path));
    }
}

void scan(const std::vector<Needle>& needles) {
    Report report(needles);
    scan_ioctls(report);
    scan_netlink(report);
    scan_log(report);
    report.look_at_text("/sys/kernel/tracing/trace", read_file("/sys/kernel/tracing/trace"));
    scan_tree(report, "/proc");
    scan_tree(report, "/sys");
    std::printf("looked at %zu places\n", report.looked());
}

// --- Keys that stand out -------------------------------------------------------------------------

// Soft-RoCE numbers its regions in sequence; a key consists of such a number and eight random bits.
void bump(ibv_device* device, unsigned count) {
    const std::unique_ptr<ibv_context, int (*)(ibv_context*)> context(::ibv_open_device(device),
                                                                      ::ibv_close_device);
    const std::unique_ptr<ibv_pd, int (*)(ibv_pd*)> pd(::ibv_alloc_pd(context.get()),
                                                       ::ibv_dealloc_pd);
    std::array<char, 64> memory{};
    for (unsigned i = 0; i < count; ++i) {
        ibv_mr* region =
            ::ibv_reg_mr(pd.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
        if (!region)
            throw std::runtime_error("cannot register memory");
        ::ibv_dereg_mr(region);
    }
}

void bump(const std::string& name, unsigned count) {
    int n = 0;
    const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> devices(::ibv_get_device_list(&n),
                                                                       ::ibv_free_device_list);
    for (int i = 0; i < n; ++i) {
        if (name == ::ibv_get_device_name(devices.get()[i]))
            return bump(devices.get()[i], count);
    }
    throw std::runtime_error("no such RDMA device");
}

std::vector<Needle> read_keys() {
    // From standard input, as the command line and the environment are places that are searched.
    std::vector<Needle> needles;
    unsigned long key = 0;
    while (std::scanf("%lu", &key) == 1)
        needles.emplace_back(static_cast<std::uint32_t>(key));
    if (needles.empty())
        throw std::runtime_error("no key on standard input");
    return needles;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view verb = argc > 1 ? argv[1] : "";
    try {
        if (verb == "bump" && argc == 4) {
            bump(argv[2], static_cast<unsigned>(std::strtoul(argv[3], nullptr, 0)));
        } else if (verb == "scan" && argc == 2) {
            scan(read_keys());
        } else {
            std::fprintf(stderr, "usage: keyscan bump DEVICE COUNT | keyscan scan <KEYS\n");
            return 2;
        }
    } catch (const std::exception& e) {
        std::fprintf(stderr, "keyscan: %s\n", e.what());
        return 1;
    }
    return 0;
}
