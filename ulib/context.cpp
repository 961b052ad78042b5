// SPDX-License-Identifier: MIT
//
// Opening and closing contexts.

#include "context.hpp"

#include "cancellation.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace lite::internal {
namespace {

// The kernel's limit of device minors.
constexpr int index_limit = 1 << 20;

class file_device final : public device {
  public:
    explicit file_device(int fd) noexcept : m_fd(fd) {}
    ~file_device() override {
        const no_cancellation guard;
        ::close(m_fd);
    }

    int control(unsigned long request, void* arg) noexcept override {
        const int ret = ::ioctl(m_fd, request, arg);
        return ret < 0 ? -errno : ret;
    }

    int fd() const noexcept override { return m_fd; }

  private:
    int m_fd;
};

int index_from_environment() noexcept {
    // Safe unless another thread changes the environment, which a program with threads must not do.
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    const char* text = std::getenv("LITE_INDEX");
    if (!text || !*text)
        return 0;

    int index = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, ec] = std::from_chars(text, end, index);
    if (ec != std::errc{} || stop != end || index < 0 || index >= index_limit)
        return -EINVAL;
    return index;
}

int open_node(int index, int access) noexcept {
    char path[32];
    std::snprintf(path, sizeof(path), "/dev/lite%d", index);

    const no_cancellation guard;
    const int fd = ::open(path, access | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    // ENXIO: the device file is left over from a node that is gone.
    return errno == ENOENT || errno == ENXIO ? -ENODEV : -errno;
}

}  // namespace

lite_ctx* make_context(std::unique_ptr<device> dev) noexcept {
    auto* ctx = new (std::nothrow) lite_ctx;
    if (ctx)
        ctx->dev = std::move(dev);
    return ctx;
}

int node_index(int index) noexcept {
    if (index == -1)
        index = index_from_environment();
    return index < 0 || index >= index_limit ? -EINVAL : index;
}

int copy_name(char (&field)[LITE_NAME_SIZE], const char* name) noexcept {
    if (!name || !*name)
        return -EINVAL;

    const size_t length = ::strnlen(name, sizeof(field));
    if (length == sizeof(field))
        return -ENAMETOOLONG;
    std::memcpy(field, name, length + 1);
    return 0;
}

}  // namespace lite::internal

namespace {

int open_context(int index, int access, struct lite_ctx** out) noexcept {
    using namespace lite::internal;

    const no_cancellation guard;
    index = node_index(index);
    if (index < 0)
        return index;

    const int fd = open_node(index, access);
    if (fd < 0)
        return fd;

    std::unique_ptr<device> dev(new (std::nothrow) file_device(fd));
    if (!dev) {
        ::close(fd);
        return -ENOMEM;
    }
    lite_ctx* ctx = make_context(std::move(dev));
    if (!ctx)
        return -ENOMEM;

    // The device may be another driver's: fail here rather than in the first operation.
    struct lite_ioc_query query;
    int err = lite_query(ctx, &query);
    if (!err && query.uapi_version != LITE_UAPI_VERSION)
        err = -EPROTONOSUPPORT;
    if (err) {
        lite_close(ctx);
        return err == -ENOTTY ? -ENODEV : err;
    }
    *out = ctx;
    return 0;
}

}  // namespace

int lite_open(int index, struct lite_ctx** out) noexcept {
    return open_context(index, O_RDWR, out);
}

int lite_open_readonly(int index, struct lite_ctx** out) noexcept {
    return open_context(index, O_RDONLY, out);
}

void lite_close(struct lite_ctx* ctx) noexcept {
    if (ctx)
        ctx->backing.end(ctx);
    delete ctx;
}

int lite_fd(const struct lite_ctx* ctx) noexcept { return ctx->dev->fd(); }

int lite_query(struct lite_ctx* ctx, struct lite_ioc_query* out) noexcept {
    struct lite_ioc_query query = {};
    const int err = lite::internal::control(ctx, LITE_IOC_QUERY, query);
    if (!err)
        *out = query;
    return err;
}
