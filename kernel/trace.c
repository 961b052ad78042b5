// SPDX-License-Identifier: GPL-2.0
#include "fabric/fabric.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
