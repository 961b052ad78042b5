# SPDX-License-Identifier: MIT
"""Shared by tests of modules/hostile, which makes nodes do what no peer may do."""

import subprocess

from litelab import USER_BUILD

PARAMETERS = "/sys/module/hostile/parameters"


def make(vm, **values):
    """Makes the nodes of a machine hostile: sets parameters of the module."""
    vm.run(f"cd {PARAMETERS}; " + "; ".join(f"echo {value} >{name}" for name, value in values.items()))


def made(vm, name):
    """The value of a parameter that is a number."""
    return int(vm.read(f"{PARAMETERS}/{name}"))


def requests():
    """A well-formed request of every kind: [(name, number, payload)]."""
    text = subprocess.run([USER_BUILD / "tests/unit/core/wire-requests"], check=True, capture_output=True, text=True).stdout
    return [line.split(" ") for line in text.splitlines()]
