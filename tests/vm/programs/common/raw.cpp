// SPDX-License-Identifier: MIT
#include "raw.hpp"

#include "env.hpp"
#include "process.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ostream>
#include <stdexcept>
#include <system_error>

namespace lite_test {
namespace {

template <typename Args>
Args sized() {
    Args args{};
    args.size = sizeof(args);
    return args;
}

template <typename Args>
Args targeted(Target target) {
    auto args = sized<Args>();
    args.lh = target.lh;
    set_name(args.name, target.name);
    return args;
}

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

void must(Errno e, const std::string& what) {
    if (e != ok)
        throw std::system_error(e.value, std::generic_category(), what);
}

lite_op op_args(lite_opcode opcode, std::uint64_t lh, std::uint64_t offset, std::uint64_t length) {
    auto args = sized<lite_op>();
    args.opcode = opcode;
    args.lh = lh;
    args.offset = offset;
    args.length = length;
    return args;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Errno& e) {
    if (e.value == 0)
        return out << "success";
    const char* name = strerrorname_np(e.value);
    return name ? out << name : out << "errno " << e.value;
}

void set_name(std::span<char, LITE_NAME_SIZE> field, std::string_view name) {
    std::fill(field.begin(), field.end(), '\0');
    std::copy_n(name.begin(), std::min(name.size(), field.size()), field.begin());
}

lite_ioc_query query_args() { return sized<lite_ioc_query>(); }

lite_ioc_alloc alloc_args(std::string_view name, std::uint64_t length, std::uint32_t mode,
                          std::uint32_t flags) {
    auto args = sized<lite_ioc_alloc>();
    args.flags = flags;
    args.length = length;
    args.mode = mode;
    set_name(args.name, name);
    return args;
}

void set_nodes(lite_ioc_alloc& args, std::span<const std::uint32_t> nodes) {
    args.nodes = address(nodes.data());
    args.n_nodes = static_cast<std::uint32_t>(nodes.size());
}

lite_ioc_map map_args(std::string_view name, std::uint32_t rights) {
    auto args = sized<lite_ioc_map>();
    args.rights = rights;
    set_name(args.name, name);
    return args;
}

lite_ioc_unmap unmap_args(std::uint64_t lh) {
    auto args = sized<lite_ioc_unmap>();
    args.lh = lh;
    return args;
}

lite_ioc_free free_args(std::uint64_t lh) {
    auto args = sized<lite_ioc_free>();
    args.lh = lh;
    return args;
}

lite_ioc_free free_args(std::string_view name) {
    auto args = sized<lite_ioc_free>();
    set_name(args.name, name);
    return args;
}

lite_ioc_stat stat_args(std::uint64_t lh) {
    auto args = sized<lite_ioc_stat>();
    args.lh = lh;
    return args;
}

lite_ioc_stat stat_args(std::string_view name) {
    auto args = sized<lite_ioc_stat>();
    set_name(args.info.name, name);
    return args;
}

lite_ioc_list list_args(std::span<lite_lmr_info> infos, std::uint64_t cursor) {
    auto args = sized<lite_ioc_list>();
    args.cursor = cursor;
    args.infos = address(infos.data());
    args.n_infos = static_cast<std::uint32_t>(infos.size());
    args.info_size = sizeof(lite_lmr_info);
    return args;
}

lite_op read_args(std::uint64_t lh, std::uint64_t offset, void* buf, std::uint64_t length) {
    auto args = op_args(LITE_OP_READ, lh, offset, length);
    args.buf = address(buf);
    return args;
}

lite_op write_args(std::uint64_t lh, std::uint64_t offset, const void* buf, std::uint64_t length) {
    auto args = op_args(LITE_OP_WRITE, lh, offset, length);
    args.buf = address(buf);
    return args;
}

lite_op fetch_add_args(std::uint64_t lh, std::uint64_t offset, std::uint64_t addend) {
    auto args = op_args(LITE_OP_FETCH_ADD, lh, offset, sizeof(std::uint64_t));
    args.operand = addend;
    return args;
}

lite_op cmp_swap_args(std::uint64_t lh, std::uint64_t offset, std::uint64_t expected,
                      std::uint64_t desired) {
    auto args = op_args(LITE_OP_CMP_SWAP, lh, offset, sizeof(std::uint64_t));
    args.operand = expected;
    args.swap = desired;
    return args;
}

lite_ioc_grant grant_args(Target on, std::uint32_t uid, std::uint32_t node, std::uint32_t rights) {
    auto args = targeted<lite_ioc_grant>(on);
    args.grant = {uid, node, rights, 0};
    return args;
}

lite_ioc_grants grants_args(Target of, std::span<lite_grant> room) {
    auto args = targeted<lite_ioc_grants>(of);
    args.grants = address(room.data());
    args.n_grants = static_cast<std::uint32_t>(room.size());
    args.grant_size = sizeof(lite_grant);
    return args;
}

lite_ioc_setattr setattr_args(Target of, std::uint32_t uid, std::uint32_t gid, std::uint32_t mode) {
    auto args = targeted<lite_ioc_setattr>(of);
    args.uid = uid;
    args.gid = gid;
    args.mode = mode;
    return args;
}

lite_ioc_rename rename_args(Target from, std::string_view to) {
    auto args = targeted<lite_ioc_rename>(from);
    set_name(args.to, to);
    return args;
}

lite_ioc_resize resize_args(Target of, std::uint64_t length) {
    auto args = targeted<lite_ioc_resize>(of);
    args.length = length;
    return args;
}

lite_ioc_move move_args(Target of, std::uint32_t node, std::uint64_t offset, std::uint64_t length) {
    auto args = targeted<lite_ioc_move>(of);
    args.node = node;
    args.offset = offset;
    args.length = length;
    return args;
}

Device::Device(unsigned index) {
    const auto path = "/dev/lite" + std::to_string(index);
    fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd_ < 0)
        throw std::system_error(errno, std::generic_category(), path);
}

Device::~Device() { close(); }

Device& Device::operator=(Device&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

void Device::close() {
    if (fd_ >= 0)
        ::close(std::exchange(fd_, -1));
}

Errno Device::call(unsigned long request, void* argument) const {
    return Errno{::ioctl(fd_, request, argument) < 0 ? errno : 0};
}

lite_ioc_query Device::query() const {
    auto args = query_args();
    must((*this)(args), "query");
    return args;
}

std::uint64_t Device::alloc(std::uint64_t length, std::span<const std::uint32_t> nodes,
                            std::string_view name, std::uint32_t mode) const {
    auto args = alloc_args(name, length, mode);
    set_nodes(args, nodes);
    must((*this)(args), "alloc " + std::string(name));
    return args.lh;
}

std::uint64_t Device::map(std::string_view name, std::uint32_t rights) const {
    auto args = map_args(name, rights);
    must((*this)(args), "map " + std::string(name));
    return args.lh;
}

void Device::unmap(std::uint64_t lh) const { must((*this)(unmap_args(lh)), "unmap"); }

void Device::free(std::uint64_t lh) const { must((*this)(free_args(lh)), "free"); }

void Device::free(std::string_view name) const {
    must((*this)(free_args(name)), "free " + std::string(name));
}

void Device::read(std::uint64_t lh, std::uint64_t offset, std::span<std::byte> into) const {
    must((*this)(read_args(lh, offset, into.data(), into.size())), "read");
}

void Device::write(std::uint64_t lh, std::uint64_t offset, std::span<const std::byte> from) const {
    must((*this)(write_args(lh, offset, from.data(), from.size())), "write");
}

std::uint64_t Device::fetch_add(std::uint64_t lh, std::uint64_t offset,
                                std::uint64_t addend) const {
    auto args = fetch_add_args(lh, offset, addend);
    must((*this)(args), "fetch-add");
    return args.result;
}

std::uint64_t Device::cmp_swap(std::uint64_t lh, std::uint64_t offset, std::uint64_t expected,
                               std::uint64_t desired) const {
    auto args = cmp_swap_args(lh, offset, expected, desired);
    must((*this)(args), "compare-and-swap");
    return args.result;
}

lite_lmr_info Device::stat(std::string_view name) const {
    auto args = stat_args(name);
    must((*this)(args), "stat " + std::string(name));
    return args.info;
}

std::vector<lite_lmr_info> Device::list(std::uint32_t at_a_time) const {
    std::vector<lite_lmr_info> all;
    std::vector<lite_lmr_info> some(at_a_time);
    std::uint64_t cursor = 0;
    do {
        auto args = list_args(some, cursor);
        must((*this)(args), "list");
        if (args.n_infos > some.size())
            throw std::runtime_error("LIST returned more entries than there was room for");
        all.insert(all.end(), some.begin(), some.begin() + args.n_infos);
        cursor = args.cursor;
    } while (cursor != 0);
    return all;
}

void Device::grant(Target on, std::uint32_t uid, std::uint32_t node, std::uint32_t rights) const {
    must((*this)(grant_args(on, uid, node, rights)), "grant");
}

std::vector<lite_grant> Device::grants(Target of) const {
    std::vector<lite_grant> all(LITE_GRANTS_MAX);
    auto args = grants_args(of, all);
    must((*this)(args), "grants");
    if (args.n_grants > all.size())
        throw std::runtime_error("GRANTS tells of more than there can be");
    all.resize(args.n_grants);
    return all;
}

void Device::chmod(Target of, std::uint32_t mode) const {
    must((*this)(setattr_args(of, LITE_KEEP, LITE_KEEP, mode)), "chmod");
}

void Device::rename(Target from, std::string_view to) const {
    must((*this)(rename_args(from, to)), "rename to " + std::string(to));
}

void Device::resize(Target of, std::uint64_t length) const {
    must((*this)(resize_args(of, length)), "resize to " + std::to_string(length));
}

void Device::move(Target of, std::uint32_t node, std::uint64_t offset, std::uint64_t length) const {
    must((*this)(move_args(of, node, offset, length)), "move to node " + std::to_string(node));
}

std::vector<std::uint32_t> Device::places(Target of) const {
    std::vector<std::uint32_t> nodes(LITE_SPREAD_MAX);
    auto args = sized<lite_ioc_stat>();
    args.lh = of.lh;
    set_name(args.info.name, of.name);
    args.nodes = address(nodes.data());
    args.n_nodes = static_cast<std::uint32_t>(nodes.size());
    must((*this)(args), "stat");
    if (args.n_nodes > nodes.size())
        throw std::runtime_error("STAT tells of more nodes than there can be");
    nodes.resize(args.n_nodes);
    return nodes;
}

void wait_until_unused(const Device& dev) {
    wait_until("no memory is in use", [&] { return dev.query().mem_used == 0; });
}

NamedLmr::NamedLmr(const Device& dev, std::uint64_t length, std::span<const std::uint32_t> nodes,
                   std::uint32_t mode, std::string_view stem)
    : name_(unique_name(std::string(stem))), lh_(dev.alloc(length, nodes, name_, mode)) {}

NamedLmr::~NamedLmr() {
    try {
        Device(env().indexes.front())(free_args(name_));
    } catch (const std::system_error&) {
        // The test has stopped the node, and the LMR is gone with it.
    }
}

}  // namespace lite_test
