// SPDX-License-Identifier: MIT
/*
 * hello NODE: memory of another machine, from C.
 *
 * Allocates a page on that node, writes a greeting into it, and reads it back.
 */
#include <lite/lite.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Unless they say otherwise, functions of liblite return 0 or a negative errno. */
static void check(int err, const char* what) {
    if (!err)
        return;
    fprintf(stderr, "hello: %s: %s\n", what, lite_strerror(err));
    exit(1);
}

int main(int argc, char** argv) {
    static const char greeting[] = "hello, remote memory";
    char answer[sizeof(greeting)];
    struct lite_alloc_params params = {0};
    struct lite_ctx* ctx;
    uint32_t node;
    uint64_t visits;
    lite_lh_t page;

    if (argc != 2 || !(node = (uint32_t)strtoul(argv[1], NULL, 10))) {
        fprintf(stderr, "usage: hello NODE\n");
        return 2;
    }
    check(lite_open(-1, &ctx), "open");

    /* Without a name the LMR belongs to this process, and ends with it. */
    params.size = sizeof(params);
    params.length = 4096;
    params.nodes = &node;
    params.n_nodes = 1;
    params.mode = 0600;
    check(lite_alloc(ctx, &params, &page), "allocate");

    check(lite_write(ctx, page, 0, greeting, sizeof(greeting)), "write");
    check(lite_read(ctx, page, 0, answer, sizeof(answer)), "read");
    check(lite_fetch_add(ctx, page, 4088, 1, &visits), "fetch-add");
    printf("node %u remembers: %s (visits before: %llu)\n", node, answer,
           (unsigned long long)visits);

    check(lite_free(ctx, page), "free");
    lite_close(ctx);
    return 0;
}
