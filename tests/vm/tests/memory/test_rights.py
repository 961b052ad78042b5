# SPDX-License-Identifier: MIT
"""Access rights: owner, group, mode, grants to users and nodes, masters. A right that is taken away is gone from open
handles on every node. The checks are in programs/change."""

import json

from litelab import in_one_machine, on_machines, patient, prepare_all, run_catch
from vmlab.testing import vmtest

setup = prepare_all

_SPEC = "[grants],[revocation],[attributes]"


def _refused(result, text):
    assert result.rc == 1 and text in result.err and not result.out, result


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=400)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "change_test", _SPEC, timeout=380)
    for lite in lites:
        lite.check_idle()


@vmtest(timeout=300, slow=True)
def test_two_machines(lab):
    """The same between two machines. The next tests are about what happens only between machines."""
    lites = on_machines(lab)
    run_catch(lab, lites, "change_test", _SPEC, timeout=280)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=200)
def test_the_tools(lab):
    """What users type on three machines. Each node resolves user names itself."""
    first, second, third = lites = on_machines(lab)
    second.lite("alloc", "shared", 4096, "--node", third.id)
    first.lite("write", "shared", 0, "secret")
    for lite in lites:
        _refused(lite.lite("read", "shared", 0, 6, user="bob", check=False), "permission denied")
    first.lite("grant", "shared", "--uid", "bob", "--rights", "rw")
    first.lite("grant", "shared", "--uid", "carol", "--node", second.id, "--rights", "r")
    for lite in lites:
        assert lite.lite("read", "shared", 0, 6, user="bob").out == "secret"
        allowed = lite.lite("read", "shared", 0, 6, user="carol", check=False)
        assert allowed.ok == (lite is second), (lite, allowed)
        lite.lite("write", "shared", 6, "by bob", user="bob")
        _refused(lite.lite("fetch-add", "shared", 0, 1, user="bob", check=False), "permission denied")
        listed = json.loads(lite.lite("grants", "shared", "-j").out)
        assert [(g["user"], g["node"], g["rights"]) for g in listed] == [("bob", None, "rw"),
                                                                        ("carol", second.id, "r")]
    assert "carol" in first.lite("grants", "shared", user="nobody").out
    _refused(first.lite("grant", "shared", "--uid", "nobody", "--rights", "r", user="bob", check=False), "permission")
    third.lite("revoke", "shared", "--uid", "bob")
    for lite in lites:
        _refused(lite.lite("read", "shared", 0, 6, user="bob", check=False), "permission denied")

    # A second master may do what the owner may do.
    first.lite("grant", "shared", "--uid", "carol", "--rights", "rwasm")
    third.lite("chmod", "0640", "shared", user="carol")
    third.lite("chmod", "o+r", "shared", user="carol")
    assert json.loads(first.lite("stat", "shared", "-j").out)["mode"] == "0644"
    _refused(third.lite("chown", "bob", "shared", user="carol", check=False), "only a master")
    second.lite("chown", "bob:alice", "shared")
    stat = json.loads(first.lite("stat", "shared", "-j").out)
    assert (stat["owner"], stat["group"]) == ("bob", "alice")
    second.lite("free", "shared", user="carol")
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, timeout=200)
def test_handles_on_other_machines_lose_what_is_taken(lab):
    """Loops of one user run on every machine, until one machine takes the user's right away."""
    lites = on_machines(lab, **patient(lab.n1))
    for round_number, taker in enumerate(lites):
        lites[0].lite("alloc", "loop", "1M", "--node", lites[round_number].id)
        lites[0].lite("grant", "loop", "--uid", "bob", "--rights", "rwa")
        loops = []
        for number, lite in enumerate(lites):
            loops.append(lite.spawn("loop", "loop", "--length", 5000, "--offset", number * 300000, user="bob"))
        for loop in loops:
            loop.wait_output("running", timeout=60)
        if round_number % 2:
            taker.lite("grant", "loop", "--uid", "bob", "--rights", "r")
        else:
            taker.lite("revoke", "loop", "--uid", "bob")
        # No loop writes from here on, on any machine.
        lites[0].transfers("fill", "loop", "--seed", round_number)
        words = [loop.wait(60, check=True).out.split()[-1] for loop in loops]
        assert words == ["EACCES"] * 3, (words, [lite.stats() for lite in lites])
        for lite in lites:
            lite.transfers("verify", "loop", "--seed", round_number)
        lites[1].lite("free", "loop")
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=2, timeout=120)
def test_root_of_other_machines_is_nobody(lab):
    """LMRs at home on a node that was started with --root-squash."""
    home, other = on_machines(lab, root_squash=True, mem_limit="64M")
    home.lite("alloc", "safe", "8K")
    home.lite("write", "safe", 0, "mine")
    _refused(other.lite("read", "safe", 0, 4, check=False), "permission denied")
    _refused(other.lite("free", "safe", check=False), "only a master")
    _refused(other.lite("chmod", "0666", "safe", check=False), "only a master")
    # The other machine's root has only the granted rights.
    home.lite("grant", "safe", "--uid", 0, "--node", other.id, "--rights", "r")
    assert other.lite("read", "safe", 0, 4).out == "mine"
    _refused(other.lite("write", "safe", 0, "theirs", check=False), "permission denied")
    home.lite("chmod", "0606", "safe")
    other.lite("write", "safe", 0, "ours")
    assert home.lite("read", "safe", 0, 4).out == "ours"
    # What root makes at the squashing home belongs to uid 65534; at its own node, to root.
    other.lite("alloc", "there", "4K", "--node", home.id, "--mode", "0600")
    stat = json.loads(home.lite("stat", "there", "-j").out)
    assert stat["uid"] == 65534, stat
    other.lite("write", "there", 0, "x")
    _refused(other.lite("chown", ":root", "there", check=False), "only a master")
    other.lite("alloc", "here", "4K")
    assert json.loads(other.lite("stat", "here", "-j").out)["uid"] == 0
    # A part there is charged to uid 65534, too, which has a fourth of the memory; root has no such limit.
    assert home.status()["uid_limit"] == 16 << 20
    _refused(other.lite("alloc", "large", "40M", "--node", f"{other.id},{home.id}", check=False),
             "the user's share of memory for LMRs")
    home.lite("alloc", "large", "40M", "--node", home.id)
    home.lite("free", "large")
    for name in ("safe", "there"):
        home.lite("free", name)
    other.lite("free", "here")
    for lite in (home, other):
        lite.check_idle()
