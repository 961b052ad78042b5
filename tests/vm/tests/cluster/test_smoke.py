# SPDX-License-Identifier: MIT
"""The main path from end to end: a node joins another one, each uses the other's memory, and all is undone."""

import json

from litelab import install, wait_until
from vmlab.testing import vmtest


def tool(node, command, **options):
    """Runs one of LITE's tools on a node."""
    return node.run(command, **options)


@vmtest(nodes=2, timeout=300)
def test_main_path(lab):
    """Start, join, allocate there, write, read here and there, atomics, refusals, free, leave, stop, unload."""
    n1, n2 = lab.n1, lab.n2
    for node in (n1, n2):
        install(node, ("lite", "litectl"))
        node.insmod(f"/lite/build/kernel-{node.kernel.release}/lite.ko")
    # A node needs a secret, and both nodes have the same one.
    refused = tool(n1, f"litectl start --addr {n1.ip} --id 1", check=False)
    assert not refused.ok and "no cluster secret" in refused.err, refused
    tool(n1, "litectl secret")
    n2.write("/etc/lite/secret", n1.read("/etc/lite/secret"), mode=0o600)
    tool(n1, f"litectl start --addr {n1.ip} --id 1")
    tool(n2, f"litectl start --addr {n2.ip} --mode 0666")
    # Other users cannot open the device, unless udev or the mode option says otherwise.
    assert n1.run("stat -c %a:%u:%g /dev/lite0").out == "660:0:0\n"
    assert n2.run("stat -c %a:%u:%g /dev/lite0").out == "666:0:0\n"
    n1.run("chgrp alice /dev/lite0")
    tool(n2, f"litectl join {n1.ip}")
    # On a busy host the new member may still be connecting.
    wait_until("both are up", lambda: [node["state"] for node in json.loads(tool(n1, "litectl nodes -j").out)] == ["up"] * 2)
    tool(n1, "lite alloc there 4M --node 2")
    tool(n1, "lite alloc spread 3M --node 1,2")
    n1.run("dd if=/dev/urandom of=/tmp/f bs=65536 count=8")
    wanted = n1.run("sha256sum < /tmp/f").out
    for name in ("there", "spread"):
        tool(n1, f"lite write {name} 1234567 --file /tmp/f", timeout=60)
        for node in (n1, n2):
            assert tool(node, f"lite read {name} 1234567 512K | sha256sum", timeout=60).out == wanted
    assert tool(n1, "lite fetch-add there 0 5").out == "0\n"
    assert tool(n2, "lite fetch-add there 0 7").out == "5\n"
    assert tool(n1, "lite cas there 0 12 99").out == "12\n"
    assert tool(n1, "lite read there 4M 1", check=False).rc == 1
    assert tool(n1, "lite read there 0 1", check=False, user="alice").rc == 1
    assert tool(n1, "lite ls", check=False, user="bob").rc == 1
    assert "there" in tool(n1, "lite ls", user="alice").out
    assert tool(n1, "lite alloc there 1", check=False).rc == 1
    for name in ("there", "spread"):
        tool(n2, f"lite free {name}")
        assert tool(n1, f"lite read {name} 0 1", check=False).rc == 1
    tool(n2, "litectl leave")
    for node in (n1, n2):
        tool(node, "litectl stop")
        node.rmmod("lite")
