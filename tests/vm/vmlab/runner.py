# SPDX-License-Identifier: GPL-2.0
"""Finds the tests in tests/vm/tests, runs them, and reports the results."""

import argparse
import contextlib
import dataclasses
import fnmatch
import importlib.util
import multiprocessing
import os
import pathlib
import secrets
import signal
import sys
import time
import traceback

from . import kernel as kernels
from .capacity import at_a_time
from .cluster import Cluster, default_memory
from .errors import LabError, NodeDied, Skip
from .testing import Lab, cluster_options, tests_of, wish_of

TESTS = pathlib.Path(__file__).resolve().parents[1]


# After so many failures to boot in a row, a session runs no more tests on that kernel: they would fail, too.
MAX_BOOT_FAILURES = 2

# Default maximum of clusters at a time. A cluster has up to five machines of up to 1 GB; most need less. With a
# cluster for each of two processors, tests on stock kernels leave half of both unused (run -v adds up to that), because
# they wait; on debug kernels some 10 %.
MAX_JOBS = 6
CLUSTER_MB = 2048
CLUSTER_PROCESSORS = 0.65


class TimeOver(Exception):
    """A test has taken too long."""


@dataclasses.dataclass
class Case:
    """One test on one kernel."""
    kernel: str
    module: object
    function: object

    @property
    def name(self):
        """The test's name without the kernel: "harness.ping"."""
        return f"{self.module.__name__.removeprefix('test_')}.{self.function.__name__.removeprefix('test_')}"

    @property
    def wish(self):
        """The cluster and limits that the test asks for."""
        return wish_of(self.function)

    @property
    def setup(self):
        """The function that prepares a cluster for the test, or None."""
        return getattr(self.module, "setup", None)

    def cluster_key(self):
        """Cases with the same key can share a cluster, whichever file they are in."""
        return self.kernel, self.setup, *self.wish.cluster_key()


def load_modules(paths):
    """Imports test files, which can import vmlab, the modules beside it, and those in their own folders."""
    sys.path[:0] = [str(TESTS), *sorted({str(path.parent) for path in paths})]
    for path in paths:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        yield module


class Session:
    """Runs cases one after the other: holds the cluster that they share, and counts the verdicts."""

    def __init__(self, options):
        self.options = options
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self._memory = {}
        self._cluster = None
        self._module = None  # the last one that used the cluster
        self._key = None
        self._cpu = 0        # processor seconds of the current test
        self._serial = 0
        self._boot_failures = {}

    def run_all(self, cases):
        """Runs cases that share a cluster."""
        for case in cases:
            if not case.wish.fresh and not self.reason_to_skip(case):
                wanted = case.wish.mem_mb or default_memory(case.kernel)
                self._memory[case.cluster_key()] = max(self._memory.get(case.cluster_key(), 0), wanted)
        for case in cases:
            self.run(case)
            if self.options.stop and self.counts["failed"]:
                break

    def run(self, case):
        """Runs one case and reports."""
        begun = time.monotonic()
        self._cpu = 0
        verdict, detail = self._judge(case)
        self.counts[verdict] += 1
        word = {"passed": "ok", "failed": "FAIL", "skipped": "skip"}[verdict]
        line = f"{word:4} {time.monotonic() - begun:7.2f}s  {case.kernel:6}  {case.name}"
        if self.options.verbose:
            line += f"  [{max(self._cpu, 0):.1f} s of processors]"
        line += f"  ({detail})" if verdict == "skipped" else f"\n{_indent(detail)}" if verdict == "failed" else ""
        # One call of write(), because other processes print, too.
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def close(self):
        """Ends the current cluster."""
        self._drop_cluster(failed=False)

    def reason_to_skip(self, case):
        """Why a case is not run, or None."""
        if case.wish.kernels and case.kernel not in case.wish.kernels:
            return f"only for {', '.join(case.wish.kernels)}"
        if case.wish.slow and not self.options.slow:
            return "slow: needs --slow"
        return None

    def _judge(self, case):
        wish = case.wish
        reason = self.reason_to_skip(case)
        if reason:
            return "skipped", reason
        if self._boot_failures.get(case.kernel, 0) >= MAX_BOOT_FAILURES:
            return "failed", "not run: machines with this kernel do not boot"
        cluster = None
        try:
            cluster = self._get_cluster(case, wish)
            for node in cluster.nodes:
                node.console.mark(f"{case.name} (seed {self.options.seed})")
            lab = Lab(cluster, self.options.seed, case.name, self.options.thorough or wish.slow)
            before = _state(cluster)
            self._cpu = -_cpu_seconds(cluster)
            skipped = None
            try:
                with _time_limit(wish.timeout * cluster.kernel.patience):
                    case.function(lab)
            except Skip as why:  # what the test has done before is checked nevertheless
                skipped = str(why)
            _kill_left_over(cluster, before)
            self._cpu += _cpu_seconds(cluster)
            cluster.check()
            if _state(cluster).keys() != before.keys() or wish.fresh:
                self._drop_cluster(failed=False)
            return ("skipped", skipped) if skipped else ("passed", None)
        except (Exception, AssertionError) as error:  # whatever a test raises
            detail = self._describe(error, cluster)
            _ask_nodes(cluster)
            self._drop_cluster(failed=True)
            return "failed", detail

    def _describe(self, error, cluster):
        lines = traceback.format_exception(error) if self.options.verbose or not isinstance(error, LabError) \
            else [f"{type(error).__name__}: {error}\n", *_where(error)]
        if cluster:
            with contextlib.suppress(Exception):
                lines += [f"{c}\n" for c in cluster.complaints() if str(c) not in str(error)]
            lines.append(f"logs: {cluster.log_dir}\n")
        lines.append(f"seed: {self.options.seed}\n")
        return "".join(lines)

    def _get_cluster(self, case, wish):
        key = case.cluster_key()
        if self._cluster and (key != self._key or wish.fresh):
            self._drop_cluster(failed=False)
        if not self._cluster:
            self._serial += 1
            logs = self.options.logs / f"{os.getpid()}-{self._serial:03}-{case.kernel}-{case.name}"
            memory = wish.mem_mb if wish.fresh else self._memory[key]
            cluster = Cluster(nodes=wish.nodes, kernel=case.kernel, mem_mb=memory, log_dir=logs, **cluster_options(wish))
            self._cluster, self._key = cluster, key
            self._boot_failures[case.kernel] = self._boot_failures.get(case.kernel, 0) + 1
            cluster.start()
            self._boot_failures[case.kernel] = 0
            if self.options.verbose:
                print(f"     {cluster.boot_seconds:7.2f}s  {case.kernel:6}  {wish.nodes} nodes booted  "
                      f"[{_cpu_seconds(cluster):.1f} s of processors]", flush=True)
            self._module = None
        if case.setup and self._module is not case.module:
            case.setup(self._cluster)
        self._module = case.module
        return self._cluster

    def _drop_cluster(self, failed):
        if not self._cluster:
            return
        cluster, self._cluster = self._cluster, None
        try:
            if not failed:
                self._look_for_leaks(cluster)
        finally:
            cluster.stop()
        if not failed and not self.options.keep:
            cluster.remove_logs()

    def _look_for_leaks(self, cluster):
        """With kmemleak, reports what all tests on this cluster have leaked. A scan after each would take too long."""
        try:
            for node in cluster.nodes:
                if node.running and not node.paused:
                    node.kmemleak_scan()
        except LabError as error:
            self.counts["failed"] += 1
            print(f"FAIL  leaks of the tests above, {cluster.kernel}\n{_indent(str(error))}\n     | logs: {cluster.log_dir}")
            self.options.keep = True


def _state(cluster):
    """The commands that run on each node. Keys change when a node crashes, reboots or is paused."""
    return {(node, node.boots, node.running, node.paused): set(node.processes()) for node in cluster.nodes}


def _ask_nodes(cluster):
    """After a failure, has the logs say what the nodes of LITE have counted, and why sessions ended."""
    for node in cluster.nodes if cluster else ():
        if node.running and not node.paused:
            with contextlib.suppress(Exception):
                node.run("for d in /dev/lite[0-9]*; do litectl stats -i ${d#/dev/lite}; done; dmesg | tail -n 20",
                         check=False, timeout=10)


def _cpu_seconds(cluster):
    return sum(node.cpu_seconds() for node in cluster.nodes)


def _kill_left_over(cluster, before):
    """Kills the commands that a test has left running, but not those that setup() has started."""
    mine = set().union(*_state(cluster).values()) - set().union(*before.values())
    for p in mine:
        p.kill()
    for p in mine:
        with contextlib.suppress(NodeDied):
            p.wait(10)


@contextlib.contextmanager
def _time_limit(seconds):
    def late(*_):
        raise TimeOver(f"the test did not end within {seconds:g} s")
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _where(error):
    """The lines of the test in the traceback of an error of the harness."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if pathlib.Path(f.filename).name.startswith("test_")]
    return traceback.format_list(frames)


def _indent(text):
    return "".join(f"     | {line}\n" for line in text.rstrip().splitlines())


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="tests/vm/run", description="Runs tests on virtual clusters.")
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="test files, test_NAME.py (default: all in tests/vm/tests)")
    parser.add_argument("--kernel", default="6.1", help=f"kernels, separated by commas, of {', '.join(kernels.KNOWN)}")
    parser.add_argument("-k", metavar="PATTERN", action="append", default=[],
                        help="only tests with this in their name (file.test), or with a name that matches it if it has a * in it")
    parser.add_argument("-j", "--jobs", type=int, metavar="N",
                        help="so many clusters at a time (default: three for two processors, a processor each with kernels that "
                             "are slow, and 2 GB each)")
    parser.add_argument("--slow", action="store_true", help="also those that are marked as slow")
    parser.add_argument("--thorough", action="store_true", help="three times as many repetitions")
    parser.add_argument("--list", action="store_true", help="only print the names")
    parser.add_argument("--seed", help="for what tests choose at random (printed after a failure)")
    parser.add_argument("--keep", action="store_true", help="keep the logs of what passed, too")
    parser.add_argument("--logs", type=pathlib.Path, help="directory for the logs (default: a new one in build/vm-logs)")
    parser.add_argument("-x", "--stop", action="store_true", help="stop at the first failure")
    parser.add_argument("-v", "--verbose", action="store_true", help="whole stack traces, boot times, processor times")
    options = parser.parse_args(arguments)
    options.kernels = options.kernel.split(",")
    for name in options.kernels:
        if name not in kernels.KNOWN:
            parser.error(f"no kernel {name!r} (there are: {', '.join(kernels.KNOWN)})")
    slow = any(kernels.time_scale(name) > 1 for name in options.kernels)
    options.jobs = options.jobs or min(at_a_time(CLUSTER_MB, 1 if slow else CLUSTER_PROCESSORS), MAX_JOBS)
    options.seed = options.seed or secrets.token_hex(4)
    if not options.logs:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        options.logs = kernels.ROOT / "build" / "vm-logs" / f"{stamp}-{os.getpid()}"
    return options


def _selected(name, patterns):
    return not patterns or any(fnmatch.fnmatch(name, p) if "*" in p else p in name for p in patterns)


def _found(name):
    return next(TESTS.glob(f"tests/*/{name}"), TESTS / name)


def _cases(options):
    files = [f if f.exists() else _found(f) for f in options.files] or sorted(TESTS.glob("tests/*/test_*.py"))
    modules = list(load_modules(files))
    for kernel in options.kernels:
        for module in modules:
            for function in tests_of(module):
                case = Case(kernel, module, function)
                if _selected(case.name, options.k):
                    yield case


def _terminate(*_):
    raise KeyboardInterrupt


def _plan(cases):
    """Groups of cases that share a cluster: those that run in parallel, the longest first, and those that run alone."""
    groups = {}
    for case in cases:
        groups.setdefault((case.cluster_key(), case.wish.fresh and case.name), []).append(case)
    beside = [g for g in groups.values() if not g[0].wish.alone]
    beside.sort(key=lambda g: -sum(c.wish.timeout for c in g if not c.wish.slow))
    return beside, [g for g in groups.values() if g[0].wish.alone]


def _run_group(options, cases):
    """Runs the cases of a group; returns the counts of verdicts."""
    session = Session(options)
    try:
        session.run_all(cases)
    except LabError as error:
        session.counts["failed"] += 1
        print(f"error: {error}", file=sys.stderr)
    finally:
        session.close()
    return session.counts


def _run_in_child(index):
    return _run_group(_run_in_child.options, _run_in_child.groups[index])


def _run_groups(options, cases):
    """Runs all groups, and yields the counts of each."""
    beside, alone = _plan(cases)
    jobs = min(options.jobs, len(beside))
    if jobs > 1:
        # Modules cannot be pickled for another process, but forked processes inherit them.
        _run_in_child.options, _run_in_child.groups = options, beside
        pool = multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1)
        try:
            yield from pool.imap_unordered(_run_in_child, range(len(beside)))
            pool.close()
        except BaseException:
            pool.terminate()
            raise
        finally:
            pool.join()
    else:
        alone = beside + alone
    for group in alone:
        yield _run_group(options, group)


def main(arguments=None):
    """Exit status 0: nothing failed; 1: something did; 130: interrupted."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, _terminate)
    cases = list(_cases(options))
    if options.list:
        for case in cases:
            print(f"{case.kernel:6}  {case.name}{'  (slow)' if case.wish.slow else ''}")
        return 0
    total = dict.fromkeys(("passed", "failed", "skipped"), 0)
    status = 0
    try:
        # Downloads and builds must not take the time of a test.
        for name in options.kernels:
            kernels.get_kernel(name)
        with contextlib.closing(_run_groups(options, cases)) as counted:
            for counts in counted:
                for word, number in counts.items():
                    total[word] += number
                if options.stop and total["failed"]:
                    break
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        status = 130
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        status = 1
    with contextlib.suppress(OSError):
        options.logs.rmdir()
    print(", ".join(f"{number} {word}" for word, number in total.items()))
    return status or int(total["failed"] > 0)
