# SPDX-License-Identifier: GPL-2.0
"""What a test file needs: the decorator @vmtest, and the object that a test gets.

A test file is tests/vm/tests/*/test_*.py; its tests are the functions test_*(lab), in the order of the file. Without
decoration they count as decorated with @vmtest(). If the file has a function setup(cluster), the runner calls it after
each boot, and when the file takes over a cluster from another file.
"""

import dataclasses
import inspect
import random

from .cluster import Cluster
from .errors import Skip

# The part of the requested repetitions that tests make without --thorough: most faults show in the first ones.
_QUICK = 1 / 3


@dataclasses.dataclass(frozen=True)
class Wish:
    """The cluster and limits that a test asks for."""
    nodes: int = 2
    kernels: tuple = ()  # empty: any
    slow: bool = False
    fresh: bool = False
    alone: bool = False
    timeout: int = 120
    mem_mb: int = 0
    options: tuple = ()

    def cluster_key(self):
        """Tests with the same key can share a cluster."""
        return self.nodes, self.alone, self.options


def vmtest(nodes=2, kernels=(), slow=False, fresh=False, alone=False, timeout=120, mem_mb=0, **cluster_options):
    """Decorates a test.

    nodes      how many machines it wants
    kernels    names of the kernels that it makes sense on (default: all); on others it counts as skipped
    slow       it runs only with --slow
    fresh      a cluster of its own. Otherwise tests of all files share a cluster if they want the same nodes and
               options, and have the same setup(). After a failure the next test always gets a new one
    alone      no other cluster runs meanwhile: for tests that measure time
    timeout    seconds without booting, on an idle host; multiplied as all time-outs are
    mem_mb     of each node, at least: tests that share a cluster get the most that one wants (with fresh exactly)
    others     as for Cluster: cpus, mtu, netem, swap_mb, files, kernel_args, icount
    """
    def decorate(function):
        function.vmtest_wish = Wish(nodes, tuple(kernels), slow, fresh, alone, timeout, mem_mb,
                                    tuple(sorted((k, _frozen(v)) for k, v in cluster_options.items())))
        return function
    return decorate


class Lab:
    """What a test gets.

    cluster    the Cluster        nodes   its nodes, also as n1, n2, ...
    kernel     its Kernel         rng     a random.Random, the same for the same --seed
    part       the part of the requested repetitions to make: 1 with --thorough, and on slow kernels (with few anyway)
    """

    def __init__(self, cluster: Cluster, seed, name, thorough=True):
        self.cluster = cluster
        self.kernel = cluster.kernel
        self.seed = seed
        self.part = 1 if thorough or self.kernel.time_scale > 1 else _QUICK
        self.rng = random.Random(f"{seed} {name}")

    @property
    def nodes(self):
        """The nodes of the cluster."""
        return self.cluster.nodes

    def __getattr__(self, name):
        if name[:1] == "n" and name[1:].isdigit() and 1 <= int(name[1:]) <= len(self.cluster.nodes):
            return self.cluster.nodes[int(name[1:]) - 1]
        raise AttributeError(name)

    def scale(self, count, least=1, always=False):
        """The number of repetitions to make: fewer than `count` on a slow kernel, and without --thorough. With
        `always`, only on a slow kernel: for tests that show nothing with fewer repetitions, or promise this number."""
        return max(least, (count if always else int(count * self.part)) // self.kernel.time_scale)

    def skip(self, reason):
        """Ends the test, because it does not apply here."""
        raise Skip(reason)


def wish_of(function):
    """The Wish of a test function."""
    return getattr(function, "vmtest_wish", Wish())


def tests_of(module):
    """The test functions of a module, in the order of its source."""
    found = [f for name, f in inspect.getmembers(module, inspect.isfunction)
             if name.startswith("test_") and f.__module__ == module.__name__]
    return sorted(found, key=lambda f: f.__code__.co_firstlineno)


def _frozen(value):
    if isinstance(value, dict):
        return tuple(sorted(value.items()))
    return tuple(value) if isinstance(value, list) else value


def cluster_options(wish):
    """The options of a Wish in the form that Cluster takes."""
    options = dict(wish.options)
    if "files" in options:
        options["files"] = dict(options["files"])
    return options
