/* SPDX-License-Identifier: MIT */
/* As uapi_layout.h, which includes it: the structure of uapi/lite_uring.h. */

SIZE(struct lite_uring_cmd, 16);
AT(struct lite_uring_cmd, arg, 0);
AT(struct lite_uring_cmd, reserved, 8);
