// SPDX-License-Identifier: MIT
#include "cgroup.hpp"

#include "common/error.hpp"
#include "common/text/parse.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include <sys/stat.h>

namespace tools {
namespace {

// A file that every control group of version 2 has, and no other directory.
constexpr auto mark = "cgroup.controllers";

std::uint64_t inode(const std::filesystem::path& path) {
    struct stat st {};
    return ::stat(path.c_str(), &st) ? 0 : st.st_ino;
}

}  // namespace

cgroups::cgroups(const std::filesystem::path& root) : m_root(root) {
    std::error_code ignored;
    if (!std::filesystem::exists(root / mark, ignored) &&
        std::filesystem::exists(root / "unified" / mark, ignored))
        m_root = root / "unified";
}

std::uint64_t cgroups::number(const std::string& name) const {
    if (name.starts_with('#'))
        return parse_number(name.substr(1), 1);
    if (!exists(name))
        throw failure(fmt::format("{}: there is no such control group", (m_root / name).string()));
    return inode(m_root / name);
}

bool cgroups::exists(const std::string& name) const {
    std::error_code ignored;
    return name.starts_with('#') || std::filesystem::exists(m_root / name / mark, ignored);
}

// Groups may be removed meanwhile: an error ends only the search in that directory.
std::string cgroups::name(std::uint64_t number) const {
    std::error_code ignored;
    std::vector<std::filesystem::path> left{m_root};
    while (!left.empty()) {
        std::filesystem::directory_iterator at(left.back(), ignored);
        left.pop_back();
        for (; at != std::filesystem::directory_iterator(); at.increment(ignored)) {
            if (at->symlink_status(ignored).type() != std::filesystem::file_type::directory)
                continue;
            if (inode(at->path()) == number)
                return at->path().lexically_relative(m_root).string();
            left.push_back(at->path());
        }
    }
    return fmt::format("#{}", number);
}

std::string cgroups::path(const std::string& name) const {
    if (exists(name))
        return this->name(number(name));
    auto path = (m_root / name).lexically_normal();
    if (!path.has_filename())
        path = path.parent_path();
    return path.lexically_relative(m_root).string();
}

}  // namespace tools
