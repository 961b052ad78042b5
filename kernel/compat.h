/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the kernels that LITE builds for: code is written to the
 * newest API, and what older kernels lack is made up for here and nowhere else.
 */
#ifndef _LITE_COMPAT_H
#define _LITE_COMPAT_H

#include <linux/version.h>

#endif /* _LITE_COMPAT_H */
