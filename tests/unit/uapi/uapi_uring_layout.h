/* SPDX-License-Identifier: MIT */
/* The structure of uapi/lite_uring.h. uapi_layout.h includes this. */

SIZE(struct lite_uring_cmd, 16);
AT(struct lite_uring_cmd, arg, 0);
AT(struct lite_uring_cmd, reserved, 8);
