# SPDX-License-Identifier: GPL-2.0
"""The project's programs for the nodes of a virtual cluster, for scripts that do not need the tests."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
USER_BUILD = ROOT / "build/user"

# Also targets of ninja: scripts/demo has the same list.
PROGRAMS = ("apps/lite/lite", "apps/litectl/litectl", "apps/lite-perf/lite-perf", "examples/hello", "examples/hello++")

# The arm grpc of lite-perf, built only if gRPC is installed.
_GRPC = USER_BUILD / "apps/lite-perf/lite-perf-grpc.so"


def has_grpc():
    """Whether lite-perf can measure gRPC."""
    return _GRPC.exists()


def install(directory):
    """Strips the programs into a directory; returns them as the `files` of a Cluster: {path in the guest: path here}.

    Unstripped they have twenty megabytes each, which a guest would have to read before it can start them.
    """
    directory.mkdir(parents=True, exist_ok=True)
    files = {}
    for program in PROGRAMS:
        source = USER_BUILD / program
        target = directory / source.name
        subprocess.run(["strip", "-o", target, source], check=True)
        files[f"/usr/bin/{source.name}"] = target
    if has_grpc():
        files[f"/usr/bin/{_GRPC.name}"] = _GRPC
    return files
