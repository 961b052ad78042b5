# SPDX-License-Identifier: MIT
"""LITE on virtual clusters: what the tests of LITE share.

The harness (vmlab) knows only machines. This module adds LITE nodes: one per machine, or several in one machine. The
latter is quicker, and enough for tests that crash no machine.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
import tempfile
import time
import weakref

from vmlab import ROOT, CommandFailed, LabError, Node
from vmlab.kernel import PATIENCE

# Where meson has built the user side: a path in the project, or an absolute one.
USER_BUILD = ROOT / os.environ.get("LITE_USER_BUILD", "build/user")
_TOOLS = ("lite", "litectl", "lite-perf")
_PROGRAMS = ("abi_test", "absent", "anonymous", "arena_holder", "arena_test", "bandwidth", "bulk_test", "calls_chaos", "change_test", "costs", "crowd", "data_test",
             "failnth", "files_test", "greedy", "growth", "handles", "histories", "hog", "instructions", "keyscan", "killstorm", "life_test", "locks", "mallocs", "mapped",
             "memop_test", "memops", "mmap_test", "multicall_test", "namerace", "netlink_test", "ordering_test", "pools_test",
             "queues", "revoke", "rings", "rpc_test", "slots", "starved", "stress", "throng", "transfers", "unpinned", "uring_test", "users", "vectors", "verbs_check")
_BIN = "/usr/bin"  # in the machines
# `litectl start` reads the secret from there. All nodes of the tests have the same one.
SECRET_PATH, SECRET = "/etc/lite/secret", "the secret of all tests\n"

# `litectl stats` must show 0 for all of these on an unused node. Peers, connections and files exist even there.
GAUGES = ("handles", "mappings", "lmrs", "lmr_bytes", "counted_bytes", "allocs", "names", "ops_inflight", "slots_busy",
          "pinned_pages", "arenas", "arena_kept_pages", "chunks", "leased_pages", "calls_inflight", "mmaps", "locks",
          "lock_claims", "functions", "rpcs_inflight", "rpc_requests", "rpc_bulk_bytes")

# Short, so that tests of failures are quick, but not shorter, because a machine that gets no processor for some seconds
# is not dead. times() makes them longer for slow kernels.
_HEARTBEAT_MS, _DEAD_MS = 200, 4000


def module_path(node, name="lite"):
    """A module built for the kernel of a machine, as the machine sees it."""
    return f"/lite/build/kernel-{node.kernel.release}/{name}.ko"


def program_path(name):
    """A test program, as machines see it."""
    return f"{_BIN}/{name}"


@functools.cache
def stripped(path):
    """The path of a stripped copy of a program or library, a tenth of the size, which all users may read. Tests copy it
    to the machines, because it would start slowly over 9p."""
    target = ROOT / "build/guest" / hashlib.sha256(str(USER_BUILD).encode()).hexdigest()[:8] / os.path.basename(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    source = USER_BUILD / path
    if not source.exists():
        raise LabError(f"{source} is missing: make user")
    if not target.exists() or target.stat().st_mtime_ns != source.stat().st_mtime_ns:
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as new:
            subprocess.run(["strip", "-o", new.name, source], check=True)
            os.chmod(new.name, 0o755)
            os.utime(new.name, ns=(0, source.stat().st_mtime_ns))
            os.rename(new.name, target)
    return target


def install(node, names=_TOOLS + _PROGRAMS):
    """Copies tools and programs to a freshly booted machine."""
    places = (f"apps/{name}/{name}" if name in _TOOLS else f"tests/vm/programs/{name}" for name in names)
    paths = " ".join(f"/lite/{stripped(place).relative_to(ROOT)}" for place in places)
    node.run(f"cp {paths} {_BIN}/", timeout=60)


def prepare(node):
    """Makes a machine ready, even after tests of another file: tools and programs installed, module loaded, no node."""
    if not node.run(["test", "-x", f"{_BIN}/{_PROGRAMS[-1]}"], check=False).ok:
        install(node)
    load(node)
    node.run("for d in /dev/lite[0-9]*; do [ ! -e $d ] || litectl stop -i ${d#/dev/lite}; done", timeout=60)


def load(node):
    """Loads the module and writes the secret, unless the module is loaded already."""
    if not node.run("grep -q '^lite ' /proc/modules", check=False).ok:
        node.write(SECRET_PATH, SECRET, mode=0o600)
        node.insmod(module_path(node))


def prepare_all(cluster):
    """prepare() on all machines: a test file's setup."""
    cluster.each(prepare)


def wait_until(what, condition, timeout=30, scale=1):
    """Polls until condition() is true, and returns its value: for changes that no event announces. The longer it has
    waited, the less often it looks, because mostly it starts a program in a machine to do so."""
    timeout *= scale * PATIENCE
    begun = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - begun
        if waited > timeout:
            raise AssertionError(f"not within {timeout:g} s: {what}")
        time.sleep(min(0.5, max(0.05, waited / 10)))


def times(node):
    """Options of `litectl start` with which a failure is noticed soon, but a busy host does not look like one."""
    scale = node.time_scale
    return {"heartbeat": _HEARTBEAT_MS * scale, "dead": _DEAD_MS * scale, "op_timeout": 4000 * scale}


def patient(node):
    """times() for tests in which no node dies: one that gets no processor for a while does not look dead, and no session
    ends because a device is slow for so long. Packets are resent late, too (decisions.rst, "Slow nodes get packets again
    later")."""
    scale = node.time_scale
    return {**times(node), "dead": 60_000 * scale, "op_timeout": 24_000 * scale}


def twice_in(tries):
    """What at least two of up to three tries (sets) have found. None: another try must tell."""
    found = {what for what in set().union(*tries) if sum(what in one for one in tries) > 1}
    return found if found or len(tries) == 3 or (len(tries) == 1 and not tries[0]) else None


def dead_seconds(node):
    """Seconds after which a silent node counts as down for peers started with times()."""
    return times(node)["dead"] / 1000


# {machine: {index: options}}: the options with which each node was last started.
_started = weakref.WeakKeyDictionary()


@dataclasses.dataclass
class Lite:
    """One LITE node: /dev/lite<index> of a machine."""
    vm: Node
    index: int = 0
    address: str = None
    device: str = "rxe0"
    _id: int = None

    def __post_init__(self):
        self.address = self.address or self.vm.ip

    def __str__(self):
        return f"{self.vm.name}/lite{self.index}"

    def ctl(self, *words, check=True, **options):
        """Runs `litectl WORDS` for this node."""
        return self.vm.run(["litectl", words[0], "-i", str(self.index), *(str(w) for w in words[1:])], check=check,
                           **options)

    def set_mode(self, mode):
        """Chooses how the node schedules operations."""
        self.vm.run(["litectl", "qos", "set", "-i", str(self.index), "--mode", mode])

    def classes(self):
        """What of each class has waited for its turn."""
        return json.loads(self.vm.run(["litectl", "qos", "show", "-j", "-i", str(self.index)]).out)["classes"]

    def start(self, check=True, secret=None, **options):
        """Starts the node with options of `litectl start`: id=3, mem_limit="64M", root_squash=True, ... Its secret is
        that of all tests unless one is given or the node is insecure. All users may use it unless a mode is given."""
        options.setdefault("mode", "0666")
        words = [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", value) if word is not True]
        if secret is not None:
            path = f"/run/secret-{self.index}"
            self.vm.write(path, secret.encode(), mode=0o600)
            words += ["--secret-file", path]
        _started.setdefault(self.vm, {})[self.index] = options
        return self.ctl("start", "-d", self.device, "-a", self.address, *words, check=check)

    def join(self, other, check=True, timeout=30, **options):
        """Joins the cluster of node `other`."""
        words = [word for key, value in options.items() for word in (f"--{key}", value)]
        if check:
            words += ["--timeout", f"{60 * self.vm.time_scale}s"]  # a busy host may need longer than by default
        self.forget()
        return self.ctl("join", other.address, *words, check=check, timeout=timeout)

    def leave(self):
        """Leaves the cluster."""
        self.forget()
        return self.ctl("leave")

    def forget(self):
        """Forgets the cached id, because the node may get another one."""
        self._id = None

    def stop(self, timeout=30):
        """Ends the node."""
        self.forget()
        return self.ctl("stop", timeout=timeout)

    def exists(self):
        """Whether the machine has a node of this index."""
        return self.vm.run(["test", "-e", f"/dev/lite{self.index}"], check=False).ok

    def status(self):
        """The output of `litectl status -j`."""
        return json.loads(self.ctl("status", "-j").out)[0]

    def members(self):
        """{id: entry} of `litectl nodes -j`."""
        return {entry["id"]: entry for entry in json.loads(self.ctl("nodes", "-j").out)}

    def states(self):
        """{id: "up", "down", ...} as this node sees the cluster."""
        return {number: entry["state"] for number, entry in self.members().items()}

    @property
    def id(self):
        """This node's id in its cluster; cached, because it takes a process to ask."""
        if not self._id:
            self._id = self.status()["id"]
        return self._id

    def stats(self):
        """The node's counters."""
        return json.loads(self.ctl("stats", "-j").out)

    def broken(self, transport=True):
        """How many sessions have ended here because the peer did not answer: without connections that end in order,
        such as a joiner's, or could not be made. Without `transport`, those that this node has judged by itself:
        Soft-RoCE on a busy host may end a session by an invalid request (decisions.rst)."""
        causes = ["silence", "op_timeout", "revoke", "call"] + ["transport"] * transport
        stats = self.stats()
        return sum(stats[f"ends_{cause}"] for cause in causes)

    def lite(self, *words, check=True, **options):
        """Runs `lite WORDS` on this node."""
        return self.vm.run(["lite", "-i", str(self.index), *(str(w) for w in words)], check=check, **options)

    def spawn(self, *words, **options):
        """Starts `transfers WORDS` on this node."""
        command = [program_path("transfers"), "--index", str(self.index), *(str(w) for w in words)]
        return self.vm.spawn(command, **options)

    def transfers(self, *words, timeout=60, check=True):
        """Runs `transfers WORDS` on this node."""
        command = [program_path("transfers"), "--index", str(self.index), *(str(w) for w in words)]
        return self.vm.run(command, timeout=timeout, check=check)

    def names(self):
        """The names of all LMRs that this node sees."""
        return {entry["name"] for entry in json.loads(self.lite("ls", "-j").out) if entry["name"]}

    def wait_states(self, wanted, timeout=20):
        """Waits until this node sees exactly these members in these states."""
        wait_until(f"{self} sees {wanted}", lambda: self.states() == wanted, timeout, self.vm.time_scale)

    def busy(self):
        """The gauges that are not 0."""
        stats = self.stats()
        wanted = {*GAUGES, "dma_mapped_pages", "peers", "conns", "files", "ctxs"}
        missing = sorted(wanted - set(stats))
        assert not missing, f"{self}: no such counters: {missing}"
        return {name: stats[name] for name in GAUGES if stats[name]}

    def check_idle(self, timeout=10):
        """Waits until nothing is in use on this node. What a process leaves behind may take a moment to go."""
        try:
            wait_until("idle", lambda: not self.busy(), timeout, self.vm.time_scale)
        except AssertionError:
            raise AssertionError(f"{self}: still in use: {self.busy()}") from None


def join_all(lites):
    """Lets started nodes join the first one, and waits until each node sees all of them."""
    for lite in lites[1:]:
        lite.join(lites[0])
    wait_complete(lites)
    return lites


def wait_complete(lites, timeout=20):
    """Waits until each of these nodes sees all of them up, and no others."""
    wanted = {lite.id: "up" for lite in lites}
    for lite in lites:
        lite.wait_states(wanted, timeout)


def on_machines(lab, count=None, **options):
    """A cluster with a node on each of the first `count` machines. Tests with the same options share one."""
    lites = [Lite(vm) for vm in lab.nodes[:count]]
    return _form(lites, {**times(lab.n1), **options})


def nodes_in(vm, count=3):
    """Nodes of one machine, each with its own address. Does not start them."""
    if not vm.run("rdma link show rxe1/1", check=False).ok:
        vm.add_addresses(5)
    return [Lite(vm, index, f"10.0.1.{index + 1}", "rxe1") for index in range(count)]


def in_one_machine(vm, count=3, **options):
    """As on_machines(), for a cluster of several nodes in one machine."""
    return _form(nodes_in(vm, count), {**times(vm), **options})


def _running(vm):
    """The indexes of the nodes that run on a machine."""
    return set(map(int, re.findall(r"/dev/lite(\d+)\n", vm.run("ls -d /dev/lite[0-9]* 2>/dev/null", check=False).out)))


def _form(lites, options):
    options.setdefault("mode", "0666")
    running = {vm: _running(vm) for vm in {lite.vm for lite in lites}}
    wanted = {vm: {lite.index for lite in lites if lite.vm is vm} for vm in running}
    if running == wanted and all(_started.get(lite.vm, {}).get(lite.index) == options for lite in lites):
        wait_complete(lites)
        return lites
    # Stop what another test has left.
    stop_all([*lites, *(Lite(vm, index) for vm, indexes in running.items() for index in indexes)])
    for lite in lites:
        lite.start(**options)
    return join_all(lites)


def stop_all(lites):
    """Stops those of these nodes that run."""
    for vm in {lite.vm for lite in lites}:
        here = [lite for lite in lites if lite.vm is vm]
        commands = (f"[ ! -e /dev/lite{lite.index} ] || litectl stop -i {lite.index}" for lite in here)
        vm.run("; ".join(commands), timeout=60)
        for lite in here:
            lite.forget()


def program_scale(lab):
    """LITE_TEST_SCALE for programs: what part of their counts and volumes they do."""
    given = os.environ.get("LITE_TEST_SCALE")
    return float(given) if given else 0.1 if lab.kernel.is_debug else lab.part


def environment(lab, lites, case_timeout=120):
    """The environment for test programs on the machine of the first of these nodes."""
    here = [lite for lite in lites if lite.vm is lites[0].vm]
    return {"LITE_TEST_INDEXES": ",".join(str(lite.index) for lite in here),
            "LITE_TEST_REMOTE": ",".join(str(lite.id) for lite in lites[1:]),
            "LITE_TEST_SCALE": program_scale(lab),
            "LITE_TEST_SLOWNESS": lab.kernel.time_scale,
            "LITE_TEST_SEED": lab.rng.getrandbits(32),
            "LITE_TEST_TIMEOUT": case_timeout * lab.kernel.patience}


def run_program(lab, lites, name, *words, timeout=300, case_timeout=120, env=None, stdin=b""):
    """Runs a test program on the machine of the first of these nodes, with all of them as its cluster."""
    command = " ".join(shlex.quote(str(word)) for word in (program_path(name), *words))
    environ = {**environment(lab, lites, case_timeout), **(env or {})}
    return lites[0].vm.run(command, timeout=timeout, env=environ, stdin=stdin)


@contextlib.contextmanager
def new_processes(vms):
    """Starts a process now and then. KASAN keeps freed memory until a thread allocates memory and may sleep. Reads, writes
    and pages of zeroes allocate none, and packets are allocated in interrupts: so it would keep all that packets were in."""
    loops = [vm.spawn(["sh", "-c", "while sleep 1; do cat /proc/uptime >/dev/null; done"]) for vm in vms]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()


def serve(lite, *words):
    """Starts `lite serve` with these arguments, and waits until it serves; the test ends the process."""
    process = lite.vm.spawn(["lite", "-i", str(lite.index), "serve", *(str(word) for word in words)])
    wait_until("it serves", lambda: "serving function" in process.err or not process.running, 20, lite.vm.time_scale)
    assert process.running, process.err
    return process


def run_catch(lab, lites, name, spec="", timeout=300, **options):
    """Runs a Catch2 program; raises AssertionError with the failures that it reports, or if no test case matches."""
    try:
        words = [*([spec] if spec else []), "--warn", "NoTests"]
        result = run_program(lab, lites, name, *words, timeout=timeout, **options)
    except CommandFailed as failure:
        if failure.result.rc is None or failure.result.rc < 0:
            raise
        said = _shortened(f"{failure.result.out}{failure.result.err}")
        raise AssertionError(f"{name} {spec} failed on {lites[0]}:\n{said}") from None
    assert re.search(r"All tests passed", result.out), result.out
    return result


@contextlib.contextmanager
def beside_bulk(lites):
    """Meanwhile these nodes schedule operations, and the first and last one move bulk, of the highest and the lowest class,
    to and from the second. Gives a function that tells whether an operation of the default class has waited for its
    turn. The caller goes on until one has."""
    for lite in lites:
        lite.set_mode("fair")
    lites[0].lite("alloc", "bulk", "8M", "--node", lites[1].id)
    streams = [lite.vm.spawn([program_path("queues"), "stream", "bulk", str(at << 20), str(1 << 20), "2", priority],
                             env={"LITE_INDEX": str(lite.index)})
               for lite, at, priority in ((lites[0], 0, "1"), (lites[0], 2, "8"), (lites[-1], 4, "1"), (lites[-1], 6, "8"))]
    for stream in streams:
        stream.wait_output("ready", timeout=60)
    waited = lambda: sum(count["slices"] for lite in lites for count in lite.classes() if count["class"] == 4)
    before = waited()
    yield lambda: waited() > before
    for stream in streams:
        stream.close_stdin()
    for stream in streams:
        stream.wait(60, check=True)
    lites[0].lite("free", "bulk")
    for lite in lites:
        lite.set_mode("none")


def _shortened(text, first=120, last=8):
    """The first failures and the summary. The full output is in the node's log of commands."""
    lines = text.splitlines()
    if len(lines) <= first + last:
        return text
    return "\n".join([*lines[:first], f"[{len(lines) - first - last} lines]", *lines[-last:]])


def trace_sessions(vm):
    """Makes the kernel trace state changes of connections and members from now on."""
    vm.run("cd /sys/kernel/tracing 2>/dev/null && [ -d events/lite ] || mount -t tracefs none /sys/kernel/tracing; "
           "cd /sys/kernel/tracing; echo >trace; for event in conn member; do echo 1 >events/lite/lite_$event/enable; done")


def traced_sessions(vm):
    """([(session, node)] that came up, {session: reason} of those that ended) since trace_sessions()."""
    seen = re.findall(r"lite_conn: session=(\d+) node=(\d+) state=(up|dead) reason=(-?\d+)",
                      vm.run("cat /sys/kernel/tracing/trace").out)
    return ([(session, node) for session, node, state, _ in seen if state == "up"],
            {session: int(reason) for session, _, state, reason in seen if state == "dead"})


def traced_at(trace, event):
    """When an event has come, in seconds of the machine's clock."""
    return float(re.search(rf"(\d+\.\d+): {event}", trace)[1])


def traced_deaths(vm):
    """The ids of the nodes that this machine's nodes have declared down since trace_sessions()."""
    return re.findall(r"lite_member: self=\d+ node=(\d+) .*state=down", vm.run("cat /sys/kernel/tracing/trace").out)


@contextlib.contextmanager
def traced_calls(vm, event="lite_call"):
    """Yields a list, filled at the end of the context: (node called, enum lite_call, errno or 0) of each call between
    kernels that nodes of this machine have made; or, if the event is lite_serve, (calling node, ...) of what they served."""
    calls = []
    events = f"/sys/kernel/tracing/events/lite/{event}/enable"
    vm.run("[ -e /sys/kernel/tracing/trace ] || mount -t tracefs none /sys/kernel/tracing; echo >/sys/kernel/tracing/trace; "
           f"echo 1 >{events}")
    try:
        yield calls
    finally:
        trace = vm.run(f"cat /sys/kernel/tracing/trace; echo 0 >{events}; echo >/sys/kernel/tracing/trace").out
        calls += [(int(node), int(call), -int(err))
                  for node, call, err in re.findall(rf"{event}: session=\d+ node=(\d+) call=(\d+) err=(-?\d+)", trace)]


@contextlib.contextmanager
def passing(vm, theirs, own):
    """Yields a list, filled at the end of the context: for each line "bob asks" that a program writes to the kernel's
    trace, how many requests that match `theirs` this machine's nodes served before one that matches `own` ("call=<enum
    lite_call> err=<-errno or 0>"). The order in which a home serves counts, and not which calls return: on a busy host
    many threads have their replies already, and wait for a processor."""
    passed, asked = [], None
    vm.run("[ -e /sys/kernel/tracing/trace ] || mount -t tracefs none /sys/kernel/tracing; cd /sys/kernel/tracing; "
           "echo 16384 >buffer_size_kb; echo >trace; echo 1 >events/lite/lite_serve/enable")
    try:
        yield passed
    finally:
        trace = vm.run("cd /sys/kernel/tracing; echo 0 >events/lite/lite_serve/enable; cat trace; echo >trace; "
                       "echo 1408 >buffer_size_kb").out
    for line in trace.splitlines():
        if "bob asks" in line:
            asked = 0
        elif asked is not None and re.search(rf"lite_serve: .*{theirs}\b", line):
            asked += 1
        elif asked is not None and re.search(rf"lite_serve: .*{own}\b", line):
            passed.append(asked)
            asked = None
    print("      passed by", passed)


@contextlib.contextmanager
def probed(vm, function, fetch="", ends=False):
    """Clears the machine's trace. Within the context each call of this function of the module, or the end of each call,
    is an event there, with what `fetch` (arguments of kprobe_events) takes from it. Yields the name of the event."""
    name = f"litetest_{'end_of_' if ends else ''}{function}"
    vm.run("[ -e /sys/kernel/tracing/trace ] || mount -t tracefs none /sys/kernel/tracing; cd /sys/kernel/tracing; "
           f"echo >trace; echo '{'r' if ends else 'p'}:litetest/{name} lite:{function} {fetch}' >>kprobe_events && "
           f"echo 1 >events/litetest/{name}/enable")
    try:
        yield name
    finally:
        vm.run(f"cd /sys/kernel/tracing; echo 0 >events/litetest/{name}/enable; echo '-:litetest/{name}' >>kprobe_events")


# They lock with one function and unlock with another. Some names are those of one kernel only.
_UNEVEN = ("mod_timer", "add_timer_on", "__do_softirq", "handle_softirqs")


@contextlib.contextmanager
def holds_of(vm, function, step=None):
    """Yields a list, filled at the end of the context: the microseconds of each hold of a spin lock in a function (or
    several) of the kernel; or, with `step`, the calls of that function in each hold, the same number on busy hosts."""
    holds = []
    # By the default clock, which may differ between CPUs, events of a thread that migrates may be out of order.
    clock = "counter" if step else "global"
    vm.run("[ -e /sys/kernel/tracing/trace ] || mount -t tracefs none /sys/kernel/tracing; cd /sys/kernel/tracing; "
           f"echo {clock} >trace_clock; echo 16384 >buffer_size_kb; "
           f"echo {step or ''} _raw_spin_lock _raw_spin_unlock >set_ftrace_filter; "
           f"for f in {function}; do echo $f >>set_graph_function; echo $f >>set_ftrace_filter; done; "
           f"for f in {' '.join(_UNEVEN)}; do echo $f >>set_ftrace_filter; done 2>/dev/null; "
           "echo 1 >options/funcgraph-abstime; echo 1 >options/funcgraph-proc; echo 0 >options/funcgraph-irqs; "
           "echo function_graph >current_tracer")
    yield holds
    lost = vm.run("grep -h overrun /sys/kernel/tracing/per_cpu/cpu*/stats").out
    assert set(re.findall(r"overrun: (\d+)", lost)) == {"0"}, lost
    trace = vm.run("cd /sys/kernel/tracing; cat trace; echo nop >current_tracer; echo local >trace_clock; echo 1408 >buffer_size_kb; "
                   "echo >set_graph_function; echo >set_ftrace_filter; "
                   "echo 1 >options/funcgraph-irqs; echo 0 >options/funcgraph-proc; echo 0 >options/funcgraph-abstime").out
    holds += _holds_in(trace, step)


def _holds_in(trace, step):
    """The holds of spin locks in a trace of function_graph, as holds_of() yields them. Leaves out what the uneven
    functions call. (After set_graph_notrace Linux 6.1 never again traces a thread that was in such a function.)"""
    holds = []
    since = {}  # by thread, because a context switch happens with a lock of the scheduler held
    uneven = {}  # by thread: the depth of the function that it is in
    event = re.compile(r"^ *(\d+\.\d+) \| +\d+\) +(\S+) +\|.*\|( +)(?:(\w+)(?: \[lite\])?\(\)(;| \{)|\})", re.M)
    for at, thread, indent, what, more in event.findall(trace):
        if thread in uneven:
            if len(indent) <= uneven[thread]:
                del uneven[thread]
            if not what or thread in uneven:
                continue
        held = since.setdefault(thread, [])
        if what in _UNEVEN and more != ";":
            uneven[thread] = len(indent)
        elif what == "_raw_spin_lock":
            held.append([float(at), 0])
        elif what == "_raw_spin_unlock" and held:
            begun, steps = held.pop()
            if held:
                held[-1][1] += steps
            else:
                holds.append(steps if step else (float(at) - begun) * 1e6)
        elif what == step and held:
            held[-1][1] += 1
    return holds


def block_device(vm):
    """Makes a block device of 16 MB, for O_DIRECT; returns the environment that names it."""
    vm.run("modprobe loop 2>/dev/null; [ -e /tmp/disk ] || "
           "{ dd if=/dev/zero of=/tmp/disk bs=1M count=16 2>/dev/null && losetup /dev/loop0 /tmp/disk; }")
    return {"LITE_TEST_BLOCK": "/dev/loop0"}


def rdma_objects(vm):
    """{kind: number} of all RDMA objects in a machine."""
    text = vm.run("rdma resource show").out
    counts = {}
    for kind, number in re.findall(r"\b(qp|cq|mr|pd|cm_id|ctx|srq) (\d+)", text):
        counts[kind] = counts.get(kind, 0) + int(number)
    return counts


def traces(vm):
    """What LITE has left in a machine, but must not leave after unloading."""
    found = vm.run("ls -d /dev/lite* /sys/class/lite* /sys/module/lite /sys/kernel/debug/lite* /proc/*lite* "
                   "/sys/kernel/tracing/events/lite 2>/dev/null; "
                   "ps -o comm | grep '^lite' ; grep -w '^lite[^ ]*' /proc/slabinfo", check=False).out
    return [line for line in found.splitlines() if line]


def memory_kb(vm):
    """(available, unreclaimable slab) in kB, after the kernel has dropped its caches. MemAvailable lacks the pages in
    the per-CPU free lists, up to tens of megabytes: they are added. What each CPU has counted for itself, a megabyte or
    two, is added to the sums only by stat_refresh. Pages that move between these lists and the zone's while both are
    read would be missing, so both are read until MemFree is the same before and after."""
    vm.run("sync; cd /proc; echo 3 >sys/vm/drop_caches; echo 1 >sys/vm/stat_refresh")
    for _ in range(50):
        text = vm.run("cd /proc; cat meminfo zoneinfo; grep MemFree meminfo").out
        free = [int(kb) for kb in re.findall(r"MemFree: +(\d+) kB", text)]
        if abs(free[1] - free[0]) < 256:
            break
    values = dict(re.findall(r"(\w+): +(\d+) kB", text))
    kept = sum(int(pages) for pages in re.findall(r"\bcount: +(\d+)", text)) * 4
    return int(values["MemAvailable"]) + kept, int(values["SUnreclaim"])
