# SPDX-License-Identifier: MIT
"""Operations executed where the memory is: set, copy, compare, checksum; and atomics that devices do not have."""

import contextlib
import json

from litelab import (dead_seconds, in_one_machine, on_machines, patient, prepare, prepare_all, program_path, run_catch, times,
                     wait_until)
from vmlab.testing import vmtest

setup = prepare_all

KINDS = ("copy", "set", "compare", "checksum", "swap")
_GONE = {"EHOSTDOWN", "ETIMEDOUT", "EIO"}


def _spawn(lite, *words):
    return lite.vm.spawn([program_path("memops"), "--index", str(lite.index), *(str(word) for word in words)])


def _alloc(lite, name, homes, size):
    lite.lite("alloc", name, size, "--node", ",".join(str(home.id) for home in homes))


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=560)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "memop_test", timeout=540, case_timeout=400)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=560, slow=True)
def test_three_machines(lab):
    lites = on_machines(lab)
    run_catch(lab, lites, "memop_test", timeout=540, case_timeout=400)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=300)
def test_words_from_all_machines(lab):
    """Two processes on each machine swap one word: each value that was ever stored is returned once, or is the last
    one. In a second word each process has a bit, and all have a counter; all kinds of operations are used on it."""
    lites = on_machines(lab, **patient(lab.n1))
    count = lab.scale(150 * lab.part, 30)
    for number, home in enumerate(lites):
        name = f"words-{number}"
        _alloc(lites[0], name, [home], 4096)
        users = [lite for lite in lites for _ in range(2)]
        chains = [_spawn(lite, "chain", name, "--offset", 4080, "--base", (i + 1) * 1_000_000, "--count", count)
                  for i, lite in enumerate(users)]
        seen = [int(line) for process in chains for line in process.wait(200, check=True).out.split()]
        last = int(lites[1].lite("fetch-or", name, 4080, 0).out)
        put = [(i + 1) * 1_000_000 + k for i in range(len(users)) for k in range(1, count + 1)]
        assert sorted([*seen, last]) == sorted([0, *put]), f"home {home}: {len(set(seen))} of {len(put)}"
        running = [_spawn(lite, "bits", name, "--offset", 4088, "--bit", i, "--count", count)
                   for i, lite in enumerate(users)]
        for process in running:
            process.wait(200, check=True)
        total = count * len(users)
        assert int(lites[2].lite("fetch-and", name, 4088, -1).out) == total << 32 | total << 16, f"home {home}"
        lites[0].lite("free", name)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=200)
def test_the_data_crosses_the_network_once(lab):
    """The first machine has the second copy to the third. Next to nothing crosses the first one's network card."""
    lites = on_machines(lab, **patient(lab.n1))
    size = lab.scale(8, 1) << 20
    _alloc(lites[0], "from", [lites[1]], size)
    _alloc(lites[0], "to", [lites[2]], size)

    def sent():
        return [int(lite.vm.run("cat /sys/class/net/eth0/statistics/tx_bytes").out) for lite in lites]

    def sends(most, *words):
        """What each machine sends: of up to twenty times the least, as on a slow host Soft-RoCE repeats much."""
        least = [1 << 40] * len(lites)
        for _ in range(20):
            before = sent()
            lites[0].lite(*words, timeout=100)
            least = [min(few, after - was) for few, after, was in zip(least, sent(), before)]
            if all(few < size * share for few, share in zip(least, most)):
                break
        return least

    first, second, third = sends((0.1, 1.3, 0.3), "copy", "from", 0, "to", 0, size)
    assert size <= second < size * 1.3, (size, first, second, third)
    assert first < size * 0.1 and third < size * 0.3, (size, first, second, third)
    for words in (("checksum", "from"), ("set", "from", 0, "all", "0102")):
        few = sends((0.05, 0.05, 0.05), *words)
        assert all(bytes < size * 0.05 for bytes in few), (words, few)
    for name in ("from", "to"):
        lites[2].lite("free", name)


@vmtest(nodes=3, timeout=300)
def test_freed_meanwhile(lab):
    """Processes that operate on an LMR learn that it is freed, and the free does not wait for them for long."""
    lites = on_machines(lab, **patient(lab.n1))
    for kind in KINDS:
        _alloc(lites[0], "doomed", [lites[1], lites[2]], "3M")
        _alloc(lites[0], "kept", [lites[2], lites[0]], "3M")
        users = [_spawn(lite, "loop", kind, "doomed", "kept") for lite in lites]
        for user in users:
            user.wait_output("running", timeout=60)
        lites[0].lite("free", "doomed", timeout=20)
        for user in users:
            assert user.wait(30, check=True).out.split()[-1] == "EIDRM", (kind, user.out)
        lites[1].lite("free", "kept")
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=400)
def test_changed_meanwhile(lab):
    """Two processes on each of two machines operate on LMRs, while the third machine moves and resizes them and takes
    rights away all the time. Each byte, each checksum, and each old value of a word is right."""
    lites = on_machines(lab, **patient(lab.n1))
    first, second, third = lites
    count, length = lab.scale(100, 30), 96 << 10
    _alloc(first, "a", [first, second], "1M")
    _alloc(second, "b", [third], "1M")
    users = [_spawn(lite, "churn", "a", "b", "--offset", i * length, "--length", length, "--count", count,
                    "--seed", lab.rng.getrandbits(32)) for i, lite in enumerate((first, second, first, second))]
    for user in users:
        user.wait_output("running", timeout=60)
    for changes in range(lab.scale(6, 3)):
        for name in ("a", "b"):
            to, offset = lites[changes % 3].id, changes * 37 % 150
            third.lite("move", name, "--node", to, "--offset", f"{offset}K", "--length", f"{1 + changes * 61 % 200}K")
            third.lite("resize", name, ("1M", "700K", 4 * length)[changes % 3])
            third.lite("grant", name, "--uid", 1000, "--rights", "rw")
            third.lite("revoke", name, "--uid", 1000)
    # All users have run all the time. They report when they are told to end.
    assert all(user.running for user in users), [(user.out, user.err) for user in users]
    for user in users:
        user.close_stdin()
    for user in users:
        user.wait(60, check=True)
    for name in ("a", "b"):
        third.lite("free", name)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=300)
def test_killed_meanwhile(lab):
    """Killed processes leave nothing behind, neither on their own nodes nor on those that worked for them."""
    lites = on_machines(lab, **patient(lab.n1))
    _alloc(lites[0], "a", [lites[1], lites[0]], "16M")
    _alloc(lites[0], "b", [lites[2], lites[1]], "16M")
    for kind in KINDS:
        for lite in lites:
            user = _spawn(lite, "loop", kind, "a", "b")
            user.wait_output("running", timeout=100)
            user.kill(9)
            user.wait(20)
    for name in ("a", "b"):
        lites[0].lite("free", name)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=400, fresh=True)
def test_a_machine_dies_meanwhile(lab):
    """A machine dies that executes operations or has the memory: users notice within the dead time, others go on."""
    lites = on_machines(lab)
    first, second, third = lites
    for kind in lab.rng.sample(KINDS, lab.scale(len(KINDS))):
        _alloc(first, "lost", [third], "1M")
        _alloc(first, "there", [second], "1M")
        there = _spawn(first, "loop", "copy", "there", "lost")  # with the LMR named "lost" as source
        users = [_spawn(lite, "loop", kind, "lost", "there") for lite in (first, second)]
        safe = _spawn(second, "loop", kind, "there")
        for user in (there, safe, *users):
            user.wait_output("running", timeout=60)
        third.vm.crash()
        for user in (there, *users):
            said = user.wait(20 + 3 * dead_seconds(first.vm), check=True).out.split()[-1]
            assert said in _GONE, (kind, said)
        assert safe.running, safe.err
        safe.kill(9)
        safe.wait(20)
        first.lite("free", "there")
        third.vm.reboot()
        prepare(third.vm)
        third.forget()
        third.start(**times(third.vm))
        third.join(first)
        # Its memory is lost with the machine, and so is the name.
        wait_until("the lost name is gone", lambda: "lost" not in first.names(), 20, first.vm.time_scale)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=300, fresh=True, slow=True)
def test_a_link_that_breaks(lab):
    """Sessions break and are made anew in the middle of copies. The copies go on, and are right in the end."""
    lites = on_machines(lab, dead=60_000 * lab.kernel.time_scale)
    first, second, third = lites
    size = lab.scale(6, 1) << 20
    _alloc(first, "from", [second, third], size)
    _alloc(first, "to", [third, first], size)
    first.transfers("fill", "from", "--seed", 7, timeout=100)
    for cut in lites:
        user = first.vm.spawn(["lite", "copy", "from", "0", "to", "0", str(size)])
        seen_by = second if cut is first else first
        ended = seen_by.broken()
        with contextlib.ExitStack() as stack:
            cut.vm.cut()
            stack.callback(cut.vm.cut, False)
            wait_until("a session is over", lambda: seen_by.broken() > ended, 20, lab.kernel.time_scale)
        user.wait(120, check=True)
        third.transfers("verify", "to", "--seed", 7, timeout=100)
        first.lite("set", "to", 0, "all", "00", timeout=100)
    for name in ("from", "to"):
        first.lite("free", name)


@vmtest(timeout=200)
def test_many_at_once(lab):
    """When there are more callers than calls may be in flight, they take turns, and none waits for good."""
    first, second = on_machines(lab, **patient(lab.n1))
    _alloc(first, "busy", [second], "2M")
    seconds = 5 * lab.kernel.time_scale

    def in_turn():
        crowd = _spawn(first, "crowd", "busy", "--count", 24, "--seconds", seconds)
        least, most = (int(word) for word in crowd.wait(100 + 2 * seconds, check=True).out.split())
        print(f"      {least} to {most} rounds each")
        return most <= 3 * least + 3

    # A busy host may leave single threads without a processor for long.
    assert any(in_turn() for _ in range(3)), "some callers are passed by others, each time"
    # A process that takes a right away does not wait for the whole crowd.
    crowd = _spawn(first, "crowd", "busy", "--count", 24, "--seconds", seconds)
    first.lite("grant", "busy", "--uid", 1000, "--rights", "r")
    first.lite("revoke", "busy", "--uid", 1000, timeout=20)
    crowd.wait(100 + 2 * seconds, check=True)
    first.lite("free", "busy")
    for lite in (first, second):
        lite.check_idle()


@vmtest(nodes=3, timeout=300, slow=True)
def test_what_is_kept_for_others(lab):
    """A machine that operates on many LMRs of other nodes keeps some of them mapped, but not all."""
    home, works, asks = on_machines(lab)
    count, most = 80, 64
    last, homes = count - 1, f"{home.id},{works.id}"
    home.vm.run(f"for i in $(seq 0 {last}); do lite alloc m$i 8K --node {homes} || exit 1; done", timeout=60)
    user = _spawn(asks, "each", "m", "--count", count)
    user.wait_output("done", timeout=100)
    kept = works.stats()["mappings"]
    assert 0 < kept <= most, kept
    print(f"      {kept} of {count}")
    # Unused mappings are dropped after a while.
    wait_until("nothing is kept", lambda: not works.stats()["mappings"], 30, works.vm.time_scale)
    user.close_stdin()
    user.wait(30, check=True)
    said = home.vm.run(f"for i in $(seq 0 {last}); do lite read m$i 8191 1 --hex && lite free m$i || exit 1; done", timeout=60)
    # A dump ends with a line with the offset of its end.
    assert [line.split()[1] for line in said.out.splitlines()[::2]] == ["07"] * count, said.out
    for lite in (home, works, asks):
        lite.check_idle()


def test_command_line(lab):
    """What users type, what they see, exit statuses."""
    first, second = on_machines(lab)
    _alloc(first, "x", [second, first], "64K")
    _alloc(first, "y", [first], "64K")
    assert first.lite("set", "x", 10, 7, "616263").out == ""
    assert second.lite("read", "x", 10, 7).out == "abcabca"
    first.lite("set", "x", "32K", "all", "ff")
    assert second.lite("read", "x", "65534", 2, "--hex").out.split()[1:3] == ["ff", "ff"]
    first.lite("write", "x", 0, "123456789")
    assert first.lite("checksum", "x", 0, 9).out == "e3069283\n"
    assert second.lite("checksum", "x").out == first.lite("checksum", "x", 0, "all").out
    first.lite("copy", "x", 0, "y", 100, 9)
    assert first.lite("read", "y", 100, 9).out == "123456789"
    assert first.lite("cmp", "x", 0, "y", 100, 9).rc == 0
    first.lite("copy", "y", 100, "y", 102, 9)
    assert first.lite("read", "y", 100, 11).out == "12123456789"
    different = second.lite("cmp", "x", 0, "y", 100, 9, check=False)
    assert (different.rc, different.out) == (1, "x y differ: byte 3\n"), different
    assert second.lite("cmp", "-q", "x", 0, "y", 100, 9, check=False).out == ""
    for words in (("x", 0, "no-such", 0, 1), ("x", "64K", "y", 0, 1)):
        failed = first.lite("cmp", *words, check=False)
        assert failed.rc == 2 and failed.err and not failed.out, failed
    first.lite("set", "y", 0, 8, "00")
    assert first.lite("fetch-or", "y", 0, "0xf0").out == "0\n"
    assert second.lite("fetch-and", "y", 0, "0x3c", "--hex").out == "0xf0\n"
    assert first.lite("swap", "y", 0, 5).out == f"{0x30}\n"
    assert second.lite("swap", "y", 0, -1, "-x").out == "0x5\n"
    for words in (["set", "x", 0, 1, "1"], ["set", "x", 0, 1, "0102030405060708090a"], ["copy", "x", 0, "y", 0],
                  ["cmp", "x", 0, "y"], ["swap", "x", 0]):
        assert first.lite(*words, check=False).rc == 2, words
    assert json.loads(first.lite("stat", "x", "-j").out)["size"] == 65536
    for name in ("x", "y"):
        second.lite("free", name)
    first.check_idle()
    second.check_idle()
