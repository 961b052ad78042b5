# SPDX-License-Identifier: GPL-2.0
"""Virtual clusters for testing LITE: see ../README.md."""

from .agent import Process, Result
from .cluster import Cluster
from .errors import CommandFailed, CommandTimeout, ComplaintError, LabError, NodeDied, Skip
from .kernel import ROOT, Kernel, get_kernel
from .node import Node

__all__ = ["ROOT", "Cluster", "CommandFailed", "CommandTimeout", "ComplaintError", "Kernel", "LabError", "Node",
           "NodeDied", "Process", "Result", "Skip", "get_kernel"]
