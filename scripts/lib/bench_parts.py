# SPDX-License-Identifier: GPL-2.0
"""What `make bench` measures: runs of lite-perf, each of which compares related arms."""

import json

# Memory of a node: room for the largest LMR beside others. A virtual machine takes only the memory that it uses.
_LARGEST_MB = 10752
_SMALLEST_MB = 2048

_USER = "lite,verbs,tcp"
_KERNEL = "kernel-lite,kernel-verbs"
# For parts with windows: all interfaces of LITE, and all ways of native verbs.
_STREAMS = f"lite,lite-vector,lite-uring,verbs,verbs-events,tcp,{_KERNEL}"
_ECHOES = "lite,tcp,write-imm,send"
# A stream of 2 MB, not of 64 MB, which would take too long: with native verbs an urgent operation waits for two large ones,
# and a turn begins when each of eight processes has completed one.
_BESIDE = ["--sizes", "64", "--stream-size", "2M", "--processes", "1,8", "--seconds", "4.5", "--rounds", "3"]

# Part: options of lite-perf run.
_PARTS = {
    "latency": ["--workload", "read-latency,write-latency,fetch-add", "--arms", f"{_USER},{_KERNEL}", "--sizes",
                "8,64,1K,4K,64K", "--seconds", "0.7", "--rounds", "9"],
    # Calls take so long that a turn has only a few.
    "large": ["--workload", "read-latency,write-latency", "--arms", f"{_USER},{_KERNEL}", "--sizes", "1M,4M", "--seconds", "0.5",
              "--rounds", "5"],
    # The targets are about these, so they get more time.
    "small": ["--workload", "read-latency,write-latency", "--arms", f"lite,verbs,{_KERNEL}", "--sizes", "64", "--seconds", "4",
              "--rounds", "31"],
    "rate": ["--workload", "read-rate,write-rate", "--arms", _STREAMS, "--sizes", "64", "--window", "1,4,16,64",
             "--seconds", "1", "--rounds", "9"],
    "throughput": ["--workload", "read-throughput,write-throughput", "--arms", _STREAMS, "--sizes", "64K,1M",
                   "--window", "1,16", "--seconds", "1.5", "--rounds", "5"],
    "rpc": ["--workload", "rpc-latency", "--arms", _ECHOES, "--sizes", "8,64,4K,64K", "--seconds", "1.5", "--rounds", "15",
            "--baseline", "write-imm"],
    "rpc-threads": ["--workload", "rpc-rate", "--arms", _ECHOES, "--sizes", "64", "--threads", "1,2,4,16", "--seconds", "1.5",
                    "--rounds", "9", "--baseline", "send"],
    "threads": ["--workload", "read-threads", "--arms", _USER, "--sizes", "64", "--threads", "1,2,4,16", "--seconds", "1",
                "--rounds", "9"],
    "processes": ["--workload", "read-processes", "--arms", _USER, "--sizes", "64", "--processes", "1,8,16,64", "--seconds", "3",
                  "--rounds", "9"],
    "setup": ["--workload", "map,connect", "--arms", _USER, "--count", "135", "--rounds", "9"],
    "lmrs": ["--workload", "lmrs", "--arms", "lite,verbs", "--lmrs", "1,100,10000,100000", "--seconds", "2", "--rounds", "21"],
    "qos-read": ["--workload", "qos-read", "--arms", _USER, *_BESIDE],
    "qos-write": ["--workload", "qos-write", "--arms", _USER, *_BESIDE],
    "qos-rpc": ["--workload", "qos-rpc", "--arms", "lite,tcp,write-imm", *_BESIDE, "--baseline", "write-imm"],
    "qos-share": ["--workload", "qos-share", "--arms", "lite", *_BESIDE],
    "file": ["--workload", "file", "--arms", _USER, "--file-sizes", "4K,64K,1M,8M", "--pipes", "1,2", "--pages", "256", "--seconds",
             "1", "--rounds", "9"],
    # A transfer takes some ten seconds, so the part five minutes.
    "file-large": ["--workload", "file", "--arms", _USER, "--file-sizes", "256M", "--pipes", "1,2", "--pages", "256", "--seconds",
                   "1", "--rounds", "3"],
    "file-sets": ["--workload", "file", "--arms", "lite", "--file-sizes", "4M", "--pipes", "1,2,6", "--pages", "16,64,256,1024",
                  "--seconds", "1", "--rounds", "7"],
    "file-more": ["--workload", "file-cold,file-receive", "--arms", _USER, "--file-sizes", "64K,4M", "--pipes", "1,2", "--pages",
                  "256", "--seconds", "1", "--rounds", "5"],
    "lmr-size": ["--workload", "lmr-size", "--arms", "lite,verbs", "--seconds", "2", "--rounds", "21"],
}

NAMES = tuple(_PARTS)


def memory_of_a_node():
    """In MB: as much as the parts need, if this machine can spare it."""
    with open("/proc/meminfo", encoding="ascii") as file:
        available, = (int(line.split()[1]) // 1024 for line in file if line.startswith("MemAvailable:"))
    # One of the two nodes fills its memory, the other uses hardly any.
    return max(_SMALLEST_MB, min(_LARGEST_MB, available * 2 // 3))


def lmr_sizes(mem_mb):
    """1 MB to 8 GB, as far as a node's memory goes."""
    # All LMRs exist at the same time, beside the kernel and the server for native verbs.
    sizes = [1, 64, 1024]
    sizes += [size for size in (2048, 4096, 8192) if size + sum(sizes[:3]) + 1024 <= mem_mb][-1:]
    return [size for size in sizes if size + 1024 <= mem_mb]


def options_of(name, mem_mb, grpc):
    """The options of lite-perf for a part."""
    options = list(_PARTS[name])
    if name == "lmr-size":
        options += ["--lmr-sizes", ",".join(f"{size}M" for size in lmr_sizes(mem_mb))]
    if name == "rpc" and grpc:
        options[options.index(_ECHOES)] += ",grpc"
    return options


def load(directory):
    """{part: document of lite-perf}, of the parts that have results, in order."""
    return {name: json.loads((directory / f"{name}.json").read_text()) for name in NAMES
            if (directory / f"{name}.json").exists()}
