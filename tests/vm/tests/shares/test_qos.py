# SPDX-License-Identifier: MIT
"""Order on the wire: classes, weights and ceilings. Program ``queues``."""

import collections
import json
import re

from litelab import (module_path, on_machines, patient, prepare_all, program_path, stop_all, times, trace_sessions,
                     traced_sessions, wait_until)
from vmlab.testing import vmtest

setup = prepare_all

# Kernels on which a slow link is the bottleneck, not the processor, so that shares and times can be compared.
_FAST = ("6.1", "6.12")
_MODES = ("fair", "sw-pri", "none", "hw-sep")


def _qos(lite, *words, check=True):
    return lite.vm.run(["litectl", "qos", *(str(w) for w in words), "-i", str(lite.index)], check=check)


def _spawn(lite, user, *words):
    return lite.vm.spawn([program_path("queues"), *(str(w) for w in words)], user=user, env={"LITE_INDEX": str(lite.index)})


def _end(*streams):
    """Ends streams, which check that all bytes were right."""
    for stream in streams:
        stream.close_stdin()
    for stream in streams:
        stream.wait(120, check=True)


def _bytes_of(lite):
    """How many bytes each user has moved after waiting for its turn, by uid."""
    return collections.Counter({tenant["uid"]: tenant["bytes"] for tenant in json.loads(_qos(lite, "show", "-j").out)["tenants"]})


def _classes(lite):
    return json.loads(_qos(lite, "show", "-j").out)["classes"]


def _link(lab, size="64M", rate="60mbit", **options):
    # Packets that wait for a slow link are not sent again meanwhile.
    here, there = on_machines(lab, **{**patient(lab.n1), **options})
    here.lite("alloc", "target", size, "--node", there.id, "--mode", "0666")
    if rate:
        lab.n1.netem(f"rate {rate}")
    return here, there


def _check_no_turns(lite):
    """Waits until nothing waits, and all operations that had a turn count as done."""
    said = lambda: json.loads(_qos(lite, "show", "-j").out)
    left = lambda: [count for kind in ("classes", "tenants") for count in said()[kind] if count["queued"] or count["in_flight"]]
    wait_until("no turns are left", lambda: not left(), 30, lite.vm.time_scale)


def _done(lab, here, there):
    lab.n1.netem(None)
    here.lite("free", "target")
    _check_no_turns(here)
    _qos(here, "set", "--mode", "none")
    here.check_idle()
    there.check_idle()


@vmtest(nodes=2, netem=True)
def test_rules(lab):
    """Rules are set, shown and removed; wrong ones are refused; only root may change them."""
    on_machines(lab, **patient(lab.n1))
    ctl = lambda *words, **options: lab.n1.run(["litectl", "qos", *words], **options)
    rules = lambda **options: {k: v for k, v in json.loads(ctl("show", "-j", **options).out).items() if k in ("mode", "rules")}
    assert rules() == {"mode": "none", "rules": []}
    ctl("set", "--uid", "1001", "--weight", "300")
    ctl("set", "--uid", "1000", "--ceiling", "2")
    ctl("set", "--uid", "1000", "--weight", "7")
    ctl("set", "--mode", "fair")
    assert rules(user="alice") == {
        "mode": "fair", "rules": [{"uid": 1000, "weight": 7, "ceiling": 2}, {"uid": 1001, "weight": 300, "ceiling": 4}]}
    for wrong in (("set",), ("set", "--weight", "3"), ("set", "--uid", "1"), ("set", "--uid", "1", "--weight", "0"),
                  ("set", "--uid", "1", "--weight", "1001"), ("set", "--uid", "1", "--ceiling", "8"),
                  ("set", "--mode", "fast"), ("reset", "--uid", "5")):
        assert not ctl(*wrong, check=False).ok, wrong
    for forbidden in (("set", "--mode", "none"), ("set", "--uid", "1000", "--ceiling", "0"), ("reset", "--uid", "1000")):
        assert not ctl(*forbidden, user="alice", check=False).ok, forbidden
    ctl("reset", "--uid", "1000")
    ctl("reset", "--uid", "1001")
    ctl("set", "--mode", "none")
    assert rules() == {"mode": "none", "rules": []}


@vmtest(nodes=2, netem=True)
def test_ceilings(lab):
    """A user may lower an operation's class, or raise it to a ceiling that outlasts the node; root may go beyond."""
    here, there = _link(lab, "4M", None)
    write = lambda user, priority: lab.n1.run(f"echo x | lite --priority {priority} write target 0", user=user, check=False)
    classes = [program_path("queues"), "classes", "target", "0"]
    refused = lambda user: [int(number) for number in lab.n1.run(classes, user=user).out.split()]
    assert refused("alice") == [0, 1, 2, 3]
    assert "ceiling" in write("alice", 0).err, write("alice", 0).err
    assert not refused(None)
    _qos(here, "set", "--uid", "1000", "--ceiling", "1")
    assert refused("alice") == [0]
    assert not write("bob", 1).ok and write("alice", 1).ok
    # The same for operations with a class of their own.
    own = lambda how, user, number: lab.n1.run([program_path("queues"), how, "target", "0", str(number + 1)], user=user)
    own("refused", "alice", 0)
    own("refused", "bob", 3)
    for how in ("vector", "ring"):
        own(how, "alice", 1)
    _qos(here, "reset", "--uid", "1000")
    assert not write("alice", 1).ok
    # A ceiling below the default class binds operations without a class of their own, too.
    _qos(here, "set", "--mode", "fair")
    _qos(here, "set", "--uid", "1000", "--ceiling", "6")
    _qos(here, "set", "--uid", "1001", "--ceiling", "5", "--default", "3")
    for starts in range(2):
        if starts:
            here.lite("free", "target")
            stop_all((here, there))
            here, there = _link(lab, "4M", None)
        assert refused("alice") == [0, 1, 2, 3, 4, 5]
        lab.n1.netem("rate 8mbit")
        streams = [_spawn(here, None, "writes", "target", 0, 128 << 10, 8, 1)]
        streams[0].wait_output("ready", timeout=100)
        streams += [_spawn(here, user, "writes", "target", at << 20, 128 << 10, 2, 0) for user, at in (("alice", 2), ("bob", 3))]
        wait_until("both wait", lambda: {1000, 1001} <= {uid for uid, moved in _bytes_of(here).items() if moved}, 60, lab.n1.time_scale)
        assert {count["class"] for count in _classes(here) if count["slices"]} == {0, 5, 6}, _classes(here)
        _end(*streams)
        lab.n1.netem(None)
    _qos(here, "reset", "--uid", "1000")
    _qos(here, "reset", "--uid", "1001")
    _done(lab, here, there)


@vmtest(nodes=2, timeout=300, netem=True)
def test_a_lower_ceiling_binds_open_files(lab):
    """The ceiling of a user is lowered after it has opened a file and set the file's class."""
    here, there = _link(lab, "4M", "8mbit")
    _qos(here, "set", "--mode", "fair")
    _qos(here, "set", "--uid", 1000, "--ceiling", 2)
    streams = [_spawn(here, None, "writes", "target", 0, 128 << 10, 8, 1),
               _spawn(here, "alice", "writes", "target", 2 << 20, 128 << 10, 2, 3)]
    for stream in streams:
        stream.wait_output("ready", timeout=120)
    slices = lambda number: _classes(here)[number]["slices"]
    for ceiling, other in ((5, 2), (2, 5)):
        _qos(here, "set", "--uid", 1000, "--ceiling", ceiling)
        wait_until(f"nothing waits in class {other}", lambda: not _classes(here)[other]["queued"], 60, lab.n1.time_scale)
        before = slices(ceiling), slices(other)
        wait_until(f"class {ceiling} waits", lambda: slices(ceiling) >= before[0] + 8, 60, lab.n1.time_scale)
        assert slices(other) == before[1], _classes(here)
    _end(*streams)
    _qos(here, "reset", "--uid", 1000)
    _done(lab, here, there)


@vmtest(nodes=2, timeout=300, kernels=_FAST, netem=True)
def test_a_packed_vector_passes_nothing(lab):
    """While nothing waits, many small operations go in few messages, unscheduled. Otherwise they wait for turns."""
    here, there = _link(lab, "8M", None)
    _qos(here, "set", "--mode", "fair")
    vector = lambda: lab.n1.run([program_path("queues"), "vector", "target", str(7 << 20), "8"], user="alice", timeout=60)
    packed = lambda: here.stats()["packed"]
    before = packed()
    wait_until("it goes in messages", lambda: vector() and packed() > before, 60)
    lab.n1.netem("rate 8mbit")
    # More threads than the window has slices: some wait even while none of them has the processor.
    stream = _spawn(here, None, "writes", "target", 0, 128 << 10, 16, 0)
    stream.wait_output("ready", timeout=120)
    before = packed(), _classes(here)[7]["slices"]
    for _ in range(8):
        vector()
    assert packed() == before[0] and _classes(here)[7]["slices"] > before[1] + 8, (before, packed(), _classes(here)[7])
    _end(stream)
    _done(lab, here, there)


@vmtest(nodes=2, timeout=300, netem=True)
def test_rules_change_under_traffic(lab):
    """Modes and weights change while large and small operations of two users and root wait. All bytes are right, no
    operation fails, and in the end nothing is left."""
    here, there = _link(lab, "4M", "10mbit")
    streams = [_spawn(here, "alice", "stream", "target", 0, 1 << 18, 6, 0),
               _spawn(here, "bob", "stream", "target", 2 << 20, 256, 3, 8),
               _spawn(here, None, "stream", "target", 3 << 20, 100_000, 3, 1)]
    for stream in streams:
        stream.wait_output("ready", timeout=60)
    for turn in range(lab.scale(24, 4)):
        _qos(here, "set", "--mode", _MODES[turn % 4])
        _qos(here, "set", "--uid", 1000 + turn % 2, "--weight", lab.rng.randint(1, 1000))
    _end(*streams)
    for uid in (1000, 1001):
        _qos(here, "reset", "--uid", uid)
    _done(lab, here, there)


@vmtest(nodes=2, timeout=400, kernels=_FAST, netem=True)
def test_weights(lab):
    """Of two users with weights 1 and 3 that always have something waiting, the second gets three times as much: in
    bytes of large operations, in the number of small ones. All are writes, because a read costs more than its bytes."""
    # The link decides: even a busy host always has something in line for it.
    here, there = _link(lab)
    _qos(here, "set", "--mode", "fair")
    _qos(here, "set", "--uid", 1001, "--weight", 300)
    tenants = lambda: {tenant["uid"]: tenant for tenant in json.loads(_qos(here, "show", "-j").out)["tenants"]}

    def share_of_alice(enough):
        """What alice has written of both, until bob has written enough; None if one of them had nothing in line."""
        seen = [tenants()]

        def moved(uid):
            return seen[-1][uid]["bytes"] - seen[0][uid]["bytes"]

        # Enough operations for a ratio, however long they take.
        wait_until("bob has written", lambda: seen.append(tenants()) or moved(1001) >= enough, 300)
        if not all(now[uid]["queued"] for now in seen for uid in (1000, 1001)):
            return None
        return moved(1000) / (moved(1000) + moved(1001))

    # There are more small ones than the window has room for.
    for rate, size, threads, enough in ((10000, 1 << 18, 8, 12 << 20), (2000, 256, 96, 3000 * 256)):
        lab.n1.netem(f"rate {rate}kbit")
        streams = [_spawn(here, user, "writes", "target", at << 20, size, threads, 0) for user, at in (("alice", 0), ("bob", 16))]
        for stream in streams:
            stream.wait_output("ready", timeout=100)
        # The threads of a busy host may be slower than the link, now and then: it gets a slower one.
        shares = []
        for slower in (1, 2, 4, 8):
            lab.n1.netem(f"rate {rate // slower}kbit")
            shares.append(share_of_alice(enough // slower))
            if shares[-1] and 0.23 <= shares[-1] <= 0.27:
                break
        lab.n1.netem(None)
        _end(*streams)
        print(f"      operations of {size} bytes: shares of alice: {shares}")
        assert shares[-1] and 0.23 <= shares[-1] <= 0.27, shares
    _qos(here, "reset", "--uid", 1001)
    _done(lab, here, there)


@vmtest(nodes=2, netem=True)
def test_queue_pairs_of_modes(lab):
    """In mode hw-sep high and low classes use different queue pairs; in mode none each processor uses one."""
    # One of the three is for reads, with Soft-RoCE.
    here, there = _link(lab, "4M", None, qps=3)
    # {number of a queue pair: packets sent}.
    sent = lambda: {int(number): int(psn) for number, psn in re.findall(r"lqpn (\d+) .*sq-psn (\d+)", lab.n1.run("rdma resource show qp").out)}

    def used(number):
        before = sent()
        lab.n1.run(f"head -c {1 << 18} /dev/zero | lite -i {here.index} --priority {number} write target 0")
        # There is at least a packet for each page.
        return [pair for pair, psn in sent().items() if (psn - before.get(pair, psn)) % (1 << 24) >= 64]

    wait_until("all queue pairs are up", lambda: len(sent()) >= 3, 30, lab.n1.time_scale)
    assert used(0) == used(4) and len(used(4)) == 1
    _qos(here, "set", "--mode", "hw-sep")
    high, low = used(0), used(4)
    assert len(high) == len(low) == 1 and high != low, (high, low)
    assert used(3) == high and used(7) == low
    _done(lab, here, there)
    stop_all((here, there))


@vmtest(nodes=2, timeout=200, netem=True)
def test_sw_pri_holds_low_classes_back(lab):
    """In mode sw-pri only low classes have a window: while they wait, high ones have more in flight than any window."""
    here, there = _link(lab, "8M", "8mbit")
    _qos(here, "set", "--mode", "sw-pri")
    window, quantum = 512 << 10, 72 << 10
    streams = [_spawn(here, user, "writes", "target", at << 20, 128 << 10, 16, priority)
               for user, at, priority in ((None, 0, 1), ("alice", 4, 0))]

    def holds():
        classes = _classes(here)
        return classes[4]["queued"] and classes[4]["slices"] and classes[0]["in_flight"] * quantum > window + quantum

    wait_until("low ones wait", holds, 60, lab.n1.time_scale)
    lab.n1.netem(None)
    _end(*streams)
    _done(lab, here, there)


@vmtest(nodes=2, timeout=200, netem=True)
def test_control_groups(lab):
    """If tenants are control groups, an operation counts as that of the nearest group with a rule above its process, or
    else of the one at the top. So a user does not become more tenants by making control groups below its own."""
    here, there = _link(lab, "4M", "8mbit")
    root = "/sys/fs/cgroup"
    groups = ("work/one/deep", "work/two", "other/deep/deeper")
    lab.n1.run(f"[ -e {root}/cgroup.procs ] || mount -t cgroup2 none {root}; cd {root} && mkdir -p {' '.join(groups)}")
    try:
        for wrong in (("--cgroup", "absent", "--weight", 3), ("--cgroup", "/tmp", "--weight", 3), ("--tenants", "pid")):
            assert not _qos(here, "set", *wrong, check=False).ok, wrong
        _qos(here, "set", "--mode", "fair", "--tenants", "cgroup", "--cgroup", "work/one", "--weight", 300, "--ceiling", 2)
        _qos(here, "set", "--cgroup", "work", "--default", 6)
        inside = lambda group, words: ["sh", "-c", f"echo $$ >{root}/{group}/cgroup.procs && {words}"]
        streams = []
        for number, group in enumerate(groups):
            queues = f"exec {program_path('queues')} stream target {number << 20} 65536 4 0"
            streams.append(lab.n1.spawn(inside(group, queues), env={"LITE_INDEX": str(here.index)}))
        for stream in streams:
            stream.wait_output("ready", timeout=100)

        def have_waited():
            said = json.loads(_qos(here, "show", "-j").out)
            names = {t["cgroup"] for t in said["tenants"] if "cgroup" in t}
            return names == {"work/one", "work", "other"} and said["classes"][6]["slices"] and said["classes"][4]["slices"]

        wait_until("all have waited, in their classes", have_waited, 60, lab.n1.time_scale)
        # The ceiling of the control group binds the user.
        write = lambda group, priority: lab.n1.run(
            inside(group, f"echo x | setpriv --reuid alice --regid alice --init-groups lite --priority {priority} write target {3 << 20}"),
            check=False)
        assert write("work/one/deep", 2).ok and not write("work/one/deep", 1).ok and not write("work/two", 2).ok
        _qos(here, "reset", "--cgroup", "work/one")
        assert not write("work/one/deep", 2).ok
        _qos(here, "set", "--tenants", "uid")
        _end(*streams)
        assert json.loads(_qos(here, "show", "-j").out)["tenants_are"] == "uid"
        _qos(here, "reset", "--cgroup", "work")
    finally:
        lab.n1.run(f"cd {root} && rmdir -p {' '.join(groups)}", check=False)
    _done(lab, here, there)


@vmtest(nodes=2, timeout=300, kernels=_FAST, netem=True)
def test_urgent_ones_pass_a_stream(lab):
    """A small operation of a high class waits for what is in the window, not for all that is to be written. With one
    queue pair for writes, only the order of posting matters."""
    # So slow that the link, not the host, decides how long that takes.
    here, there = _link(lab, "4M", "15mbit", qps=1)
    stream = _spawn(here, "alice", "stream", "target", 0, 1 << 18, 8, 0)
    stream.wait_output("ready", timeout=120)
    medians = {"none": [], "fair": []}
    passes = lambda: min(medians["fair"]) * 2 < min(medians["none"])
    # In turns: the host may become busy meanwhile. The quickest turn of each mode counts.
    while len(medians["fair"]) < 2 or (len(medians["fair"]) < 12 and not passes()):
        for mode, seen in medians.items():
            _qos(here, "set", "--mode", mode)
            said = lab.n1.run([program_path("queues"), "urgent", "target", str(3 << 20), "7", "1"], timeout=120)
            seen.append(int(said.out.split()[0]))
    counts = json.loads(_qos(here, "show", "-j").out)
    _end(stream)
    print(f"      medians in us: {medians}")
    assert passes(), medians
    assert counts["classes"][4]["slices"] and [t for t in counts["tenants"] if t["uid"] == 1000], counts
    _done(lab, here, there)


@vmtest(nodes=2, timeout=300, netem=True)
def test_classes_of_everything(lab):
    """The class of an operation is its own, its context's or its user's, for single and long operations, vectors,
    io_uring, calls and kernel clients. Beside a stream that fills the window each waits and counts in its class."""
    here, there = _link(lab, "8M", "8mbit")
    servers = [node.vm.spawn(["lite", "-i", str(node.index), "serve", "--echo", "--mode", "0666", "5000"]) for node in (here, there)]
    for server in servers:
        server.wait_output("5000")
    _qos(here, "set", "--mode", "fair")
    _qos(here, "set", "--uid", 1001, "--default", 6)
    stream = _spawn(here, "alice", "stream", "target", 0, 128 << 10, 8, 0)
    stream.wait_output("ready", timeout=120)
    waited = lambda number: json.loads(_qos(here, "show", "-j").out)["classes"][number]["slices"]
    lite = lambda *words: ["lite", "-i", str(here.index), *(str(word) for word in words)]
    ways = ((0, ["sh", "-c", f"echo x | {' '.join(lite('--priority', 0, 'write', 'target', 7 << 20))}"], None),
            (1, ["sh", "-c", f"head -c 300000 /dev/zero | {' '.join(lite('--priority', 1, 'write', 'target', 6 << 20))}"], None),
            (2, [program_path("queues"), "vector", "target", str(5 << 20), "3"], None),
            (2, [program_path("queues"), "ring", "target", str(5 << 20), "3"], None),
            (3, lite("--priority", 3, "call", "-t", "60s", there.id, 5000, "hello"), None),
            (5, ["sh", "-c", f"insmod {module_path(lab.n1, 'kconsumer')} index={here.index} node={there.id} && rmmod kconsumer"], None),
            (6, ["sh", "-c", f"echo x | {' '.join(lite('write', 'target', 4 << 20))}"], "bob"),
            (7, lite("--priority", 7, "read", "target", 0, "64"), "alice"))
    for number, words, user in ways:
        before = waited(number)
        wait_until(f"class {number} waits", lambda: lab.n1.run(words, user=user, timeout=60).ok and waited(number) > before,
                   60, lab.n1.time_scale)
    # The tracepoint shows the same.
    tracing = "/sys/kernel/tracing"
    turn = re.compile(rf"lite_turn: .* tenant={int(lab.n1.run('id -u alice').out):#x} class=7 bytes=64 waited=[1-9]")
    lab.n1.run(f"[ -e {tracing}/trace ] || mount -t tracefs none {tracing}; echo 1 >{tracing}/events/lite/lite_turn/enable")
    wait_until("a turn is traced", lambda: lab.n1.run(lite("--priority", 7, "read", "target", 0, "64"), user="alice", timeout=60).ok
               and turn.search(lab.n1.read(f"{tracing}/trace")), 60, lab.n1.time_scale)
    lab.n1.run(f"echo 0 >{tracing}/events/lite/lite_turn/enable")
    # A call to several nodes does not wait when it begins: a kernel thread waits for it, as its user.
    of_bob = lambda: sum(tenant["slices"] for tenant in json.loads(_qos(here, "show", "-j").out)["tenants"] if tenant["uid"] == 1001)
    before = of_bob()
    several = lite("--priority", 6, "call", "-t", "60s", f"{here.id},{there.id}", 5000, "hello")
    wait_until("a call to several nodes waits", lambda: lab.n1.run(several, user="bob", timeout=60).ok and of_bob() > before, 60,
               lab.n1.time_scale)
    _end(stream)
    for server in servers:
        server.kill()
    _qos(here, "reset", "--uid", 1001)
    _done(lab, here, there)


@vmtest(nodes=2, timeout=300, kernels=_FAST, netem=True)
def test_many_threads_are_one_tenant(lab):
    """Of 16 users with equal weights one has 64 threads and the others have four each: all get the same. The link is so
    slow that the host does not matter. All are writes, because shares are in cost, and a read costs more."""
    here, there = _link(lab, "4M", "5mbit")
    _qos(here, "set", "--mode", "fair")
    uids = range(2001, 2017)
    streams = []
    for number, uid in enumerate(uids):
        threads = 64 if uid == 2016 else 4
        stream = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", program_path("queues"), "writes", "target",
                  str(number << 17), "4096", str(threads), "0"]
        streams.append(lab.n1.spawn(stream, env={"LITE_INDEX": str(here.index)}))
    for stream in streams:
        stream.wait_output("ready", timeout=150)
    before = _bytes_of(here)

    def moved():
        now = _bytes_of(here)
        return [now[uid] - before[uid] for uid in uids]

    wait_until("all have had their share", lambda: min(moved()) >= 60 * 4096, 200)
    shares = moved()
    lab.n1.netem(None)
    _end(*streams)
    jain = sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))
    print(f"      Jain's index {jain:.4f}; least and most: {min(shares)}, {max(shares)} bytes; 64 threads: {shares[-1]}")
    assert jain >= 0.98, shares
    _done(lab, here, there)


@vmtest(nodes=2, timeout=300, kernels=_FAST, netem=True)
def test_the_lowest_class_is_not_starved(lab):
    """A stream of the highest class moves a bounded amount before each operation of the lowest: scheduling.rst."""
    rate, age, quantum, window, op_cost = 20_000_000 / 8, 0.01, 72 << 10, 512 << 10, 8 << 10
    here, there = _link(lab, "8M", "20mbit")
    _qos(here, "set", "--mode", "fair")
    stream = _spawn(here, None, "stream", "target", 0, 1 << 18, 8, 1)
    stream.wait_output("ready", timeout=100)
    tracing = "/sys/kernel/tracing"
    lab.n1.run(f"[ -e {tracing}/trace ] || mount -t tracefs none {tracing}; cd {tracing}; echo >trace; echo 1 >events/lite/lite_turn/enable")
    lab.n1.run([program_path("queues"), "urgent", "target", str(7 << 20), "20", "8"], user="alice", timeout=200)
    trace = lab.n1.run(f"cd {tracing}; echo 0 >events/lite/lite_turn/enable; cat trace").out
    _end(stream)
    turns = [(float(at), int(number), int(size), float(waited) / 1e9) for at, number, size, waited in
             re.findall(r" ([0-9.]+): lite_turn: .* class=(\d) bytes=(\d+) waited=(\d+)", trace)]
    # For each operation of class 7, the cost that class 0 was served while it waited.
    passed = [sum(size + op_cost for when, number, size, _ in turns if number == 0 and at - waited <= when <= at)
              for at, number, _, waited in turns if number == 7]
    # Its tenant has one thread, so nothing else of it is in front.
    bound = ((64 + 4 * quantum) / quantum + 1) * (7 * age * rate + window + 17 * quantum)
    print(f"      {len(passed)} operations of class 7 waited for a cost of at most {max(passed)} of class 0; the bound is {bound:.0f}")
    assert passed and max(passed) < bound
    _done(lab, here, there)


@vmtest(nodes=2, timeout=300, netem=True)
def test_revoked_and_moved_with_full_queues(lab):
    """Memory is moved while operations on it wait for their turn, and no byte is lost. When rights are taken away, what
    waits ends with an error, and nothing is left."""
    here, there = _link(lab, "4M", "20mbit")
    _qos(here, "set", "--mode", "fair")
    streams = [_spawn(here, user, "stream", "target", at << 20, 256 << 10, 4, 0) for user, at in (("alice", 0), ("bob", 2))]
    for stream in streams:
        stream.wait_output("ready", timeout=100)
    here.lite("move", "target", "--node", here.id, "--offset", 0, "--length", "1M", timeout=120)
    here.lite("move", "target", "--node", there.id, "--offset", 0, "--length", "1M", timeout=120)
    assert not [stream.rc for stream in streams if not stream.running]
    here.lite("chmod", "0600", "target")
    for stream in streams:
        stream.close_stdin()
        assert not stream.wait(100).ok
    _done(lab, here, there)


@vmtest(nodes=2, timeout=300, kernels=_FAST, netem=True)
def test_a_revocation_waits_for_no_turns(lab):
    """Memory of many extents is freed while threads of the lowest class are in the middle of it and wait for many
    turns. They leave, so the session between the nodes stays, and so does the work of others."""
    here, there = _link(lab, "4M", "20mbit", **times(lab.n1))
    _qos(here, "set", "--mode", "fair")
    owner = _spawn(there, None, "register", "extents", 16 << 20, 2)
    owner.wait_output("ready", timeout=60)
    stream = _spawn(here, None, "writes", "target", 0, 128 << 10, 8, 0)
    stream.wait_output("ready", timeout=120)
    low = _spawn(here, "alice", "writes", "extents", 0, 128 << 10, 128, 8)
    wait_until("class 7 waits", lambda: _classes(here)[7]["queued"] >= 100, 100, lab.n1.time_scale)
    trace_sessions(lab.n1)
    owner.close_stdin()
    owner.wait(100, check=True)
    low.close_stdin()
    assert not low.wait(100).ok
    assert stream.running and not traced_sessions(lab.n1)[1]
    _end(stream)
    _done(lab, here, there)


def _serve(lite, *words):
    options = [str(word) for word in words]
    server = lite.vm.spawn(["lite", "-i", str(lite.index), *options, "serve", "--echo", "--length", "4M", "5001"])
    server.wait_output("5001")
    return server


def _call(caller, server, number):
    """Calls the server with the contents of /tmp/body, in a class."""
    return caller.vm.spawn(f"lite -i {caller.index} --priority {number} call -t 600s -l 4M {server.id} 5001 - "
                           "</tmp/body >/dev/null")


def _ends_without_turns(here, there, process, told=False):
    """Kills the process while the peer is paused, so that nothing completes and there are no turns. It must end
    although its operations, in class 7, wait. They begin before, or when the process is told meanwhile. Returns False
    if one had its turn before, and is in flight."""
    class_7 = lambda: _classes(here)[7]
    waits = lambda: wait_until("class 7 waits", lambda: class_7()["queued"], 100, here.vm.time_scale)
    if not told:
        waits()
    there.vm.pause()
    try:
        if told:
            process.write(b"\n")
            waits()
        process.kill()
        wait_until("it ends", lambda: not process.running or class_7()["in_flight"], 10, here.vm.time_scale)
        return not process.running
    finally:
        there.vm.resume()
        process.wait(100)


def _patient_link(lab):
    """As _link(), but a paused peer does not count as dead."""
    long = 60000 * lab.n1.time_scale
    here, there = _link(lab, "16M", "10mbit", dead=long, op_timeout=long)
    _qos(here, "set", "--mode", "fair")
    return here, there


@vmtest(nodes=2, timeout=400, kernels=_FAST, netem=True)
def test_killed_while_a_file_waits_for_turns(lab):
    """A file is sent in the lowest class beside a stream of the highest. When its sender is killed, no set of it waits
    for a turn, in its thread or in a worker, whether it is posted with a copy (into single pages) or without."""
    here, there = _patient_link(lab)
    # All sets together.
    size = 16 * (64 << 12)
    lab.n1.run(f"head -c {size} /dev/zero >/tmp/file")
    stream = _spawn(here, None, "writes", "target", 8 << 20, 128 << 10, 8, 1)
    stream.wait_output("ready", timeout=120)
    trace_sessions(lab.n1)
    owner = _spawn(there, None, "register", "pages", size, 1)
    owner.wait_output("ready", timeout=60)

    def sender_ends(name):
        # It sends while the peer is paused, when the stream has all turns.
        sender = _spawn(here, "alice", "file", "/tmp/file", name, 16, 8)
        sender.wait_output("ready", timeout=60)
        return _ends_without_turns(here, there, sender, told=True)

    for name in ("target", "pages"):
        wait_until(f"a sender to {name} is killed without a set in flight", lambda name=name: sender_ends(name), 200,
                   lab.n1.time_scale)
    assert not traced_sessions(lab.n1)[1]
    owner.close_stdin()
    owner.wait(100, check=True)
    lab.n1.run("rm /tmp/file")
    _end(stream)
    _done(lab, here, there)


@vmtest(nodes=2, timeout=400, kernels=_FAST, netem=True)
def test_killed_while_a_body_waits_for_turns(lab):
    """A server that is killed while it reads a long request, in the lowest class beside a stream, waits for no turn."""
    here, there = _patient_link(lab)
    there.vm.run("head -c 4194304 /dev/zero >/tmp/body")
    stream = _spawn(here, None, "writes", "target", 0, 128 << 10, 8, 1)
    stream.wait_output("ready", timeout=120)
    trace_sessions(lab.n1)

    def served():
        server = _serve(here, "--priority", 7)
        caller = _call(there, here, 7)
        ended = _ends_without_turns(here, there, server)
        caller.wait(100)
        return ended

    wait_until("a server is killed without a slice in flight", served, 200, lab.n1.time_scale)
    assert not traced_sessions(lab.n1)[1]
    _end(stream)
    there.vm.run("rm /tmp/body")
    _done(lab, here, there)


@vmtest(nodes=2, timeout=300, netem=True)
def test_the_class_of_long_bodies(lab):
    """A server moves long requests and replies in the higher of its own class and the caller's."""
    here, there = _link(lab, "4M", "10mbit")
    _qos(here, "set", "--mode", "fair")
    there.vm.run("head -c 262144 /dev/zero >/tmp/body")
    stream = _spawn(here, None, "writes", "target", 0, 128 << 10, 8, 1)
    stream.wait_output("ready", timeout=120)
    waited = lambda: {count["class"]: count["slices"] for count in _classes(here) if count["class"] in (2, 5, 7)}
    for of_server, of_caller, wanted in ((5, 7, 5), (7, 5, 5), (2, 5, 2), (7, 7, 7)):
        server = _serve(here, "--priority", of_server)
        before = after = waited()
        while after[wanted] == before[wanted]:
            _call(there, here, of_caller).wait(100, check=True)
            after = waited()
        assert after == {**before, wanted: after[wanted]}, (before, after)
        server.kill()
        server.wait(60)
    _end(stream)
    there.vm.run("rm /tmp/body")
    _done(lab, here, there)


@vmtest(nodes=2, timeout=300, netem=True)
def test_deaths_with_full_queues(lab):
    """Processes are killed while their operations wait, and a peer crashes: nothing hangs, nothing is left."""
    here, there = _link(lab, "8M", "10mbit", **times(lab.n1))
    _qos(here, "set", "--mode", "fair")
    for _ in range(lab.scale(9)):
        streams = [_spawn(here, user, "stream", "target", at << 20, 256 << 10, 8, p)
                   for user, at, p in (("alice", 0, 0), ("bob", 2, 8), (None, 4, 1))]
        lab.n1.run(f"sleep 0.{lab.rng.randint(1, 9)}")
        for stream in streams:
            stream.kill()
            stream.wait(60)
    wait_until("idle", lambda: not here.busy(), 60, lab.n1.time_scale)
    streams = [_spawn(here, user, "stream", "target", at << 20, 256 << 10, 8, 0) for user, at in (("alice", 0), ("bob", 2))]
    for stream in streams:
        stream.wait_output("ready", timeout=100)
    there.vm.crash()
    for stream in streams:
        stream.close_stdin()
        assert not stream.wait(100).ok
    lab.n1.netem(None)
    here.check_idle(60)
    _check_no_turns(here)
    here.stop()
