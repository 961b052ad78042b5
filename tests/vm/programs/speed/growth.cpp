// SPDX-License-Identifier: MIT
// The costs of making, listing and freeing named LMRs.
//
//   growth INDEX COUNT     makes COUNT named LMRs through /dev/lite<INDEX>, lists all LMRs as
//                          often, and frees them; prints "create", "list" and "free" with the
//                          microseconds of each
#include <lite/lite.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void succeed(int result, const char* what) {
    if (result >= 0)
        return;
    std::fprintf(stderr, "%s: %s\n", what, std::strerror(-result));
    std::exit(1);
}

template <typename Step>
void time_each(const char* what, int count, Step step) {
    std::printf("%s", what);
    for (int i = 0; i < count; i++) {
        const auto begun = std::chrono::steady_clock::now();
        step("growth " + std::to_string(i));
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - begun;
        std::printf(" %.0f", took.count());
    }
    std::printf("\n");
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3)
        return 2;
    const int count = std::atoi(argv[2]);
    lite_ctx* ctx = nullptr;
    succeed(lite_open(std::atoi(argv[1]), &ctx), "open");
    time_each("create", count, [&](const std::string& name) {
        lite_alloc_params params{};
        params.size = sizeof(params);
        params.flags = LITE_ALLOC_NO_HANDLE;
        params.name = name.c_str();
        params.length = 1;
        params.mode = 0600;
        succeed(lite_alloc(ctx, &params, nullptr), "alloc");
    });
    time_each("list", count, [&](const std::string&) {
        std::array<lite_lmr_info, 64> infos{};
        std::uint64_t cursor = 0;
        do
            succeed(lite_list(ctx, &cursor, infos.data(), infos.size()), "list");
        while (cursor);
    });
    time_each("free", count,
              [&](const std::string& name) { succeed(lite_free_name(ctx, name.c_str()), "free"); });
    lite_close(ctx);
    return 0;
}
