# SPDX-License-Identifier: MIT
"""The command line from end to end: what users type, what they see, exit statuses."""

import hashlib
import json
import re

from litelab import Lite, in_one_machine, on_machines, prepare_all, stop_all, wait_until
from vmlab import ROOT
from vmlab.testing import vmtest

setup = prepare_all


def _fails(result, status=1, text=""):
    """Checks that a command failed as it should: status, standard error, nothing on standard output."""
    assert result.rc == status, result
    assert result.err and not result.out, result
    assert text.lower() in result.err.lower(), f"{text!r} not in {result.err!r}"


def test_write_here_read_there(lab):
    first, second = on_machines(lab)
    first.lite("alloc", "greeting", "4K", "--node", second.id)
    first.lite("write", "greeting", 0, "hello, world")
    assert second.lite("read", "greeting", 0, 12).out == "hello, world"
    assert second.lite("read", "greeting", 7, 5).out == "world"
    assert first.lite("write", "greeting", 5, stdin=b" from standard input").ok
    assert first.lite("read", "greeting", 0, 25).out == "hello from standard input"
    assert first.lite("write", "greeting", 0, "-", stdin=b"dash").ok
    assert first.lite("read", "greeting", 0, 4).out == "dash"
    assert "64 61 73 68" in first.lite("read", "greeting", 0, 4, "--hex").out
    second.lite("free", "greeting")
    _fails(first.lite("read", "greeting", 0, 4, check=False), text="greeting")


def test_files(lab):
    """Several megabytes go from a file on one machine to a file on the other."""
    first, second = on_machines(lab)
    data = lab.rng.randbytes(lab.scale(6_000_000, 500_000) + 321)
    digest = hashlib.sha256(data).hexdigest()
    (first.vm.scratch / "input").write_bytes(data)
    first.lite("alloc", "file", len(data), "--node", f"{first.id},{second.id}")
    first.lite("write", "file", 0, "--file", "/scratch/input", timeout=120)
    second.lite("read", "file", 0, len(data), "--file", "/tmp/output", timeout=120)
    assert second.vm.run("sha256sum </tmp/output").out.split()[0] == digest
    piped = second.vm.run(f"lite read file 0 {len(data)} | sha256sum", timeout=120)
    assert piped.out.split()[0] == digest
    first.vm.run("lite write file 0 </scratch/input", timeout=120)
    second.vm.run("rm /tmp/output")
    # A file does not fit.
    _fails(first.lite("write", "file", 1, "--file", "/scratch/input", check=False, timeout=120))
    # A file cannot be opened.
    _fails(second.lite("read", "file", 0, 10, "--file", "/no/such/directory/x", check=False), text="no such file")
    _fails(first.lite("write", "file", 0, "--file", "/no/such/file", check=False), text="no such file")
    first.lite("free", "file")


def test_put_and_get(lab):
    """Files go from the page cache into LMRs and back; killed transfers are resumed; homes compute checksums."""
    first, second = on_machines(lab)
    size = lab.scale(40 << 20, 20 << 20) + 4321
    (first.vm.scratch / "input").write_bytes(lab.rng.randbytes(size))
    first.lite("put", "/scratch/input", "file", "--alloc", "--node", f"{second.id},{first.id}", "--checksum", timeout=240)
    assert json.loads(first.lite("stat", "file", "-j").out)["size"] == size
    second.lite("get", "file", "/tmp/output", "-c", timeout=240)
    digest = first.vm.run("sha256sum </scratch/input").out
    assert second.vm.run("sha256sum </tmp/output").out == digest
    # A transfer continues wherever it was killed.
    second.vm.run("rm /tmp/output")
    # wait: timeout(1) does not wait until the process has closed the file.
    second.vm.run("lite get file /tmp/output & sleep 0.2; kill -KILL $!; wait $!", check=False)
    second.lite("get", "--resume", "file", "/tmp/output", timeout=240)
    assert second.vm.run("sha256sum </tmp/output").out == digest
    _fails(first.lite("put", "/scratch/input", "file", "--alloc", check=False), text="exists")
    first.lite("set", "file", "1M", 1000, "00")
    first.lite("put", "/scratch/input", "file", "-a", "-r", timeout=240)
    assert second.vm.run("lite get file - | sha256sum", timeout=240).out == digest
    # Pipes, parts, other LMRs, directories.
    assert second.lite("put", "-", "piped", "-a", "-n", first.id, stdin=b"through a pipe").ok
    assert first.lite("get", "piped:10:4", "-").out == "pipe"
    first.lite("cp", "piped:0:7", "other:", "-a", "-c")
    first.vm.run("mkdir /tmp/d && lite cp piped: other: /tmp/d")
    assert first.vm.run("cat /tmp/d/other").out == "through"
    _fails(second.lite("put", "/etc/passwd", "other", check=False), text="beyond the end")
    _fails(second.lite("get", "file", "/tmp/stolen", check=False, user="alice"), text="file")
    first.lite("free", "file", "piped", "other")


def test_sizes(lab):
    first, _ = on_machines(lab)
    for text, size in (("1", 1), ("4K", 4096), ("3M", 3 << 20), ("0x10", 16), ("1000", 1000)):
        first.lite("alloc", "sized", text)
        assert json.loads(first.lite("stat", "sized", "-j").out)["size"] == size
        first.lite("free", "sized")
    for text in ("0", "-1", "1X", "K", "", "1.5", "99999999999999999999", "17E"):
        result = first.lite("alloc", "sized", text, check=False)
        assert result.rc in (1, 2) and result.err, (text, result)
    assert not first.names()
    first.lite("alloc", "offsets", "3M")
    first.lite("write", "offsets", "2M", "at two megabytes")
    assert first.lite("read", "offsets", 2 << 20, 16).out == "at two megabytes"
    first.lite("free", "offsets")


def test_lists(lab):
    first, second = lites = on_machines(lab)
    ids = [lite.id for lite in lites]
    first.lite("alloc", "a", 100, "--mode", "0644")
    first.lite("alloc", "b", "2M", "--node", f"{ids[1]},{ids[0]}")
    for lite in lites:
        listed = {entry["name"]: entry for entry in json.loads(lite.lite("ls", "-j").out)}
        assert set(listed) == {"a", "b"}
        assert (listed["a"]["size"], listed["a"]["mode"], listed["a"]["home"]) == (100, "0644", ids[0])
        assert (listed["b"]["size"], listed["b"]["home"], listed["b"]["node_count"]) == (2 << 20, ids[1], 2)
        assert listed["a"]["uid"] == listed["a"]["gid"] == 0
        text = lite.lite("ls").out
        assert len(text.splitlines()) == 3 and "NAME" in text.splitlines()[0]
        assert json.loads(lite.lite("stat", "b", "-j").out)["id"] == listed["b"]["id"]
        assert "b" in lite.lite("stat", "b").out
    second.lite("free", "a", "b")
    assert json.loads(first.lite("ls", "-j").out) == []
    # A name is bytes. The tool shows those that are no UTF-8 in escapes, and takes these for the bytes.
    escaped = r"caf\xe9/\xff"
    words = f"'{escaped}'", r'''"$(printf 'caf\351/\377')"'''
    for made, freed in (words, words[::-1]):
        first.vm.run(f"lite alloc {made} 100")
        assert second.names() == {escaped} and escaped in second.lite("ls").out
        _fails(second.lite("free", r"caf\xe9/\xfe", check=False), text="no LMR of that name")
        second.vm.run(f"lite free {freed}")
        assert not first.names()


def test_atomics(lab):
    first, second = on_machines(lab)
    first.lite("alloc", "words", 64, "--node", second.id)
    assert first.lite("fetch-add", "words", 8, 5).out == "0\n"
    assert second.lite("fetch-add", "words", 8, -2).out == "5\n"
    assert first.lite("cas", "words", 8, 3, 100).out == "3\n"
    missed = second.lite("cas", "words", 8, 3, 200, check=False)
    assert (missed.rc, missed.out) == (1, "100\n") and missed.err
    assert second.lite("fetch-add", "words", 8, 0).out == "100\n"
    _fails(first.lite("fetch-add", "words", 4, 1, check=False), text="8")
    _fails(first.lite("fetch-add", "words", 64, 1, check=False))
    first.lite("free", "words")


def test_refusals(lab):
    first, second = on_machines(lab)
    first.lite("alloc", "guarded", 4096, "--node", second.id)
    _fails(first.lite("alloc", "guarded", 1, check=False), text="guarded")
    _fails(first.lite("alloc", "elsewhere", 1, "--node", 999, check=False))
    _fails(first.lite("alloc", "huge", "1000T", check=False))
    _fails(first.lite("read", "guarded", 4090, 10, check=False), text="guarded")
    _fails(first.lite("write", "guarded", 4096, "x", check=False), text="guarded")
    _fails(first.lite("read", "no-such", 0, 1, check=False), text="no-such")
    _fails(first.lite("free", "no-such", check=False), text="no-such")
    _fails(first.lite("read", "guarded", 0, 1, check=False, user="alice"), text="guarded")
    _fails(first.lite("free", "guarded", check=False, user="alice"), text="guarded")
    _fails(first.vm.run("lite -i 7 ls", check=False), text="lite7")
    for words in ([], ["nonsense"], ["read"], ["alloc", "x"], ["write", "x", "y", "z", "w", "v"], ["--nonsense"]):
        result = first.vm.run(["lite", *words], check=False)
        assert result.rc == 2 and result.err, (words, result)
    # The node's device must not get the descriptor of the closed standard output: output would go there.
    _fails(first.vm.run("lite ls >&-", check=False), text="write error: Bad file descriptor")
    first.lite("free", "guarded")


def test_modes(lab):
    first, second = on_machines(lab)
    first.lite("alloc", "shared", 100, "--mode", "0644", user="alice")
    second.lite("write", "shared", 0, "by alice", user="alice")
    assert second.lite("read", "shared", 0, 8, user="bob").out == "by alice"
    _fails(second.lite("write", "shared", 0, "by bob", check=False, user="bob"))
    _fails(second.lite("free", "shared", check=False, user="bob"))
    assert json.loads(first.lite("stat", "shared", "-j", user="bob").out)["uid"] == 1000
    second.lite("free", "shared", user="alice")


def test_administration(lab):
    first, second = lites = on_machines(lab)
    ids = [lite.id for lite in lites]
    listed = json.loads(first.ctl("nodes", "-j").out)
    assert [entry["id"] for entry in listed] == sorted(ids)
    assert [entry["self"] for entry in listed] == [True, False]
    assert [entry["address"] for entry in listed] == [lite.address for lite in lites]
    assert all(entry["port"] == 18500 and entry["incarnation"] for entry in listed)
    assert len(second.ctl("nodes").out.splitlines()) == 3
    assert first.status()["peers"] == 1
    # All users may look; only root may change anything.
    assert json.loads(first.vm.run("litectl nodes -j", user="nobody").out) == listed
    for command in (["stop"], ["leave"], ["join", second.address], ["start"]):
        result = first.ctl(*command, check=False, user="alice")
        assert not result.ok and result.err, (command, result)
    _fails(first.vm.run("litectl stop -i 5", check=False))
    _fails(first.vm.run("litectl start -i 5000", check=False), text="less than 1024")
    assert first.states() == dict.fromkeys(ids, "up")


@vmtest(nodes=1, cpus=2)
def test_index(lab):
    """-i and LITE_INDEX select one of several nodes of a machine."""
    lites = in_one_machine(lab.n1)
    lites[2].lite("alloc", "where", 10)
    stat = json.loads(lab.n1.run("lite stat where -j", env={"LITE_INDEX": "1"}).out)
    assert stat["home"] == lites[2].id
    _fails(lab.n1.run("lite ls", env={"LITE_INDEX": "9"}, check=False), text="lite9")
    assert {entry["index"] for entry in json.loads(lab.n1.run("litectl status -j").out)} == {0, 1, 2}
    lites[0].lite("free", "where")


def test_a_reader_that_goes_away(lab):
    """`lite read | head` ends quietly, like other programs."""
    first, second = on_machines(lab)
    first.lite("alloc", "long", "8M", "--node", second.id)
    result = first.vm.run("(lite read long; echo $? >/tmp/status) | head -c 10 | wc -c", timeout=60)
    assert result.out.strip() == "10"
    assert first.vm.read("/tmp/status").strip() != "0"
    assert "terminate" not in result.err and "what():" not in result.err
    first.lite("free", "long")


def _first_screen():
    """[(machine, user, command)] that the README shows before the installation."""
    screen = (ROOT / "README.md").read_text(encoding="utf-8").split("## On real machines")[0]
    lines = [line for block in re.findall(r"^```console\n(.*?)^```$", screen, re.M | re.S) for line in block.splitlines()]
    found = [re.fullmatch(r"node(\d)([#$]) (lite .*)", line) for line in lines]
    assert found and all(found), lines
    return [(int(line[1]), {"#": None, "$": "alice"}[line[2]], line[3]) for line in found]


@vmtest(nodes=3, timeout=300)
def test_readme(lab):
    """The commands of the README's first screen work as shown, in their order; without --thorough in smaller LMRs."""
    stop_all([Lite(vm) for vm in lab.nodes])
    lites = on_machines(lab)
    assert [lite.id for lite in lites] == [1, 2, 3]
    data = lab.rng.randbytes(65536)
    for lite in lites:
        lite.vm.run("rm -rf /tmp/readme; mkdir -m 777 /tmp/readme")
        lite.vm.write("/tmp/readme/data", data)
        lite.vm.write("/tmp/readme/numbers", b"10\n9\n1\n")
        lite.vm.write("/tmp/readme/update", b"#!/bin/sh\necho updated\n", mode=0o755)
    said, server = {}, None
    for machine, user, command in _first_screen():
        vm = lites[machine - 1].vm
        if lab.part < 1:
            command = command.replace("64M", "8M")
        options = {"user": user, "cwd": "/tmp/readme"}
        if command.startswith("lite serve "):
            server = vm.spawn(command, **options)
            wait_until("it serves", lambda: "serving" in server.err or not server.running, 20, vm.time_scale)
            assert server.running, server.err
        elif command.startswith("lite barrier "):
            all_of_them = [vm.spawn(command, **options) for _ in range(8)]
            for process in all_of_them:
                process.wait(60, check=True)
        else:
            said[command.split()[1]] = vm.run(command, timeout=120, **options).out
    word = int.from_bytes(data[1024:1032], "little")
    assert said["fetch-add"] == f"{word}\n"
    assert said["read"].startswith("00000000  " + data[:8].hex(" ")), said["read"]
    assert said["checksum"] == lites[2].lite("checksum", "table").out
    assert json.loads(lites[0].lite("stat", "table", "-j").out)["nodes"] == [3]
    assert said["call"] == "1\n9\n10\n"
    assert said["lock"] == "updated\n"
    server.kill(15)
    server.wait(20)
    for name in lites[0].names():
        lites[0].lite("free", name)
    for lite in lites:
        lite.check_idle()
