# SPDX-License-Identifier: MIT
"""Many operations in one call. Refused input is tested in test_abi.py."""

from litelab import in_one_machine, module_path, on_machines, patient, prepare_all, program_path, wait_until
from vmlab.testing import vmtest

setup = prepare_all

_LENGTH = 48 << 10
_OP_PACK = 70  # LITE_CALL_OP_PACK


def _spawn(lite, verb, *words):
    return lite.vm.spawn([program_path("vectors"), "--index", str(lite.index), verb, *(str(word) for word in words)])


def _alloc(lite, name, homes, size):
    lite.lite("alloc", name, size, "--node", ",".join(str(home.id) for home in homes))


def _packed(lites):
    """The number of reads and writes that went in messages so far."""
    return sum(lite.stats()["packed"] for lite in lites)


def _wait_packed(lites):
    """Waits until more have gone in messages. On busy machines some wait too long for a slot, and are posted alone."""
    before = _packed(lites)
    wait_until("messages go", lambda: _packed(lites) > before, timeout=60, scale=lites[0].vm.time_scale)


def _checksum(lite, name, part):
    return lite.lite("checksum", name, part * _LENGTH, _LENGTH, timeout=100).out.split()[-1]


def _churn(lab, lites, users, names, count, change=None):
    """Runs users on separate parts of these LMRs. The checksums that they report must be those that other nodes see."""
    running = [_spawn(lite, "churn", *names, "--offset", i * _LENGTH, "--length", _LENGTH, "--count", count,
                      "--seed", lab.rng.getrandbits(32)) for i, lite in enumerate(users)]
    for user in running:
        user.wait_output("running", timeout=60)
    if change:
        change()
        assert all(user.running for user in running), [user.err for user in running]
    for user in running:
        user.close_stdin()
    for i, user in enumerate(running):
        crcs = user.wait(250, check=True).out.split()[1:]
        reader = lites[(i + 1) % len(lites)]
        for name, crc in zip(names, crcs, strict=True):
            seen = _checksum(reader, name, i)
            assert int(seen, 16) == int(crc, 16), (name, i, seen, crc)


def _five(lites):
    """Makes LMRs in all kinds of places; returns their names."""
    first, second, third = lites
    places = {"here": [first], "there": [second], "far": [third], "both": [second, third], "all": [third, first, second]}
    for name, homes in places.items():
        _alloc(first, name, homes, 4 * _LENGTH)
    return list(places)


def _done(lites, names):
    """Frees the LMRs, and checks that nothing is left."""
    for name in names:
        lites[1].lite("free", name)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, timeout=400)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1, **patient(lab.n1))
    names = _five(lites)
    _churn(lab, lites, [*lites, lites[0]], names, lab.scale(30, 3), lambda: _wait_packed(lites))
    _done(lites, names)


@vmtest(nodes=3, timeout=400, slow=True)
def test_three_machines_that_move_and_resize(lab):
    """All the time LMRs are moved and resized, and rights are taken away."""
    lites = on_machines(lab, **patient(lab.n1))
    third = lites[2]
    names = _five(lites)

    def change():
        for i in range(lab.scale(3, 2)):
            for name in names:
                third.lite("move", name, "--node", lites[i % 3].id, "--offset", f"{i * 37 % 90}K",
                           "--length", f"{1 + i * 61 % 50}K")
                third.lite("resize", name, (4 * _LENGTH + 5000, 3 * _LENGTH)[i % 2])
                third.lite("grant", name, "--uid", 1000, "--rights", "rw")
                third.lite("revoke", name, "--uid", 1000)

    _churn(lab, lites, lites, names, lab.scale(5, 2), change)
    _done(lites, names)


@vmtest(nodes=3, timeout=200)
def test_freed_meanwhile(lab):
    """One of the two LMRs of a vector is freed: only the operations on that one fail."""
    lites = on_machines(lab, **patient(lab.n1))
    for homes in ([lites[1]], [lites[2], lites[0]]):
        _alloc(lites[0], "doomed", homes, "64K")
        _alloc(lites[0], "kept", [lites[1], lites[2]], "64K")
        users = [_spawn(lite, "until", "doomed", "kept") for lite in lites]
        for user in users:
            user.wait_output("running", timeout=60)
        lites[0].lite("free", "doomed", timeout=20)
        for user in users:
            assert user.wait(60, check=True).out.split()[-1] == "EIDRM", user.out
        lites[1].lite("free", "kept")
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=300)
def test_killed_meanwhile(lab):
    """Killed processes leave nothing behind."""
    lites = on_machines(lab, **patient(lab.n1))
    names = _five(lites)
    for _ in range(lab.scale(3, 1)):
        users = [_spawn(lite, "churn", *names, "--offset", i * _LENGTH, "--length", _LENGTH, "--count", 10**9)
                 for i, lite in enumerate(lites)]
        for user in users:
            user.wait_output("running", timeout=60)
        for user in users:
            user.kill()
            user.wait(30)
    _done(lites, names)


@vmtest(nodes=3, timeout=300)
def test_additions_when_connections_break(lab):
    """Connections break by loss of packets. No addition is made twice, and none is lost."""
    lites = on_machines(lab)
    first, second, third = lites
    names = ("near", "wide")
    _alloc(first, "near", [second], "64K")
    _alloc(first, "wide", [third], "64K")
    users = [_spawn(lite, "count", *names, "--count", 5) for lite in (first, third)]
    for user in users:
        user.wait_output("running", timeout=60)
    for _ in range(lab.scale(2, 1)):
        second.vm.cut()
        wait_until("it is missed", lambda: first.states()[second.id] != "up", timeout=30, scale=lab.n1.time_scale)
        second.vm.cut(False)
        for lite in lites:
            lite.wait_states({other.id: "up" for other in lites}, timeout=60)
    for user in users:
        user.close_stdin()
    sure = unknown = 0
    for user in users:
        said = [int(word) for word in user.wait(200, check=True).out.split()[1:]]
        sure, unknown = sure + said[0], unknown + said[1]
    done = sum(int(lite.lite("fetch-add", name, 0, 0).out) for lite, name in zip((third, second), names))
    assert sure <= done <= sure + unknown, (sure, done, unknown)
    _done(lites, names)


@vmtest(nodes=3, timeout=300, slow=True)
def test_messages_when_connections_break(lab):
    """Many small writes go in messages while nodes are cut off or paused. Unanswered ones are over before the next."""
    lites = on_machines(lab)
    first, second, third = lites
    names = ("near", "wide")
    _alloc(first, "near", [second], "64K")
    _alloc(first, "wide", [third, second], "64K")
    users = [_spawn(lite, "stamp", *names, "--offset", i * 8192) for i, lite in enumerate((first, third, first))]
    for user in users:
        user.wait_output("running", timeout=60)

    def missed():
        wait_until("it is missed", lambda: first.states()[second.id] != "up", timeout=30, scale=lab.n1.time_scale)

    def back():
        for lite in lites:
            lite.wait_states({other.id: "up" for other in lites}, timeout=60)

    for _ in range(lab.scale(2, 1)):
        _wait_packed(lites)
        second.vm.cut()
        missed()
        second.vm.cut(False)
        back()
        second.vm.pause()
        missed()
        second.vm.resume()
        back()
    for user in users:
        user.close_stdin()
    for user in users:
        print("      rounds that went well, and not:", user.wait(200, check=True).out.split("\n", 1)[1].strip())
    _done(lites, names)


@vmtest(nodes=2, timeout=200)
def test_messages_are_sent_again(lab):
    """A link fails for less than the dead time: none of many small reads and writes fails."""
    lites = on_machines(lab, dead=60_000 * lab.kernel.time_scale)
    first, second = lites
    _alloc(first, "near", [second], "64K")
    user = _spawn(first, "stamp", "near")
    user.wait_output("running", timeout=60)
    for _ in range(lab.scale(3, 1)):
        _wait_packed(lites)
        ended = first.broken()
        second.vm.cut()
        wait_until("a connection ends", lambda: first.broken() > ended, timeout=20, scale=lab.n1.time_scale)
        second.vm.cut(False)
        first.wait_states({lite.id: "up" for lite in lites}, timeout=60)
    user.close_stdin()
    good, bad = user.wait(200, check=True).out.split()[1:]
    assert bad == "0", (good, bad)
    _done(lites, ["near"])


@vmtest(nodes=2, timeout=200)
def test_messages_to_a_slow_node(lab):
    """A node takes most of the operation time-out for a message. No session ends."""
    scale = lab.n1.time_scale
    # The host of a node may be slow, too: the rest of the time-out is for that.
    lites = on_machines(lab, op_timeout=32_000, dead=60_000 * scale)
    first, second = lites
    _alloc(first, "near", [second], "64K")
    user = _spawn(first, "stamp", "near")
    user.wait_output("running", timeout=60)
    ended = first.broken()
    second.vm.insmod(module_path(second.vm, "hostile"), late=_OP_PACK, late_ms=22_000, late_calls=1)
    were_late = lambda: second.vm.run("cat /sys/module/hostile/parameters/were_late").out.strip()
    wait_until("a message was late", lambda: were_late() == "1", 60, scale)
    user.close_stdin()
    good, bad = user.wait(200, check=True).out.split()[1:]
    second.vm.rmmod("hostile")
    assert bad == "0" and first.broken() == ended, (good, bad, first.stats())
    _done(lites, ["near"])


def test_client_that_changes_its_operations(lab):
    """A kernel client makes its operations longer after they were checked: that has no effect."""
    first, second = on_machines(lab)
    first.vm.insmod(module_path(first.vm, "fickle"), node=second.id)
    first.vm.rmmod("fickle")
    for lite in (first, second):
        lite.check_idle()
