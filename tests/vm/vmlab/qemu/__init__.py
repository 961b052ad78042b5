# SPDX-License-Identifier: GPL-2.0
"""What runs a machine: the accelerator, the clock, the control connection, and machines that are saved."""
