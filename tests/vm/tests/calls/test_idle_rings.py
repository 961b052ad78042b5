# SPDX-License-Identifier: MIT
"""What rings cost a node that serves a thousand clients. Each pair of client node and function has a ring, and all
rings cost the same. So four client nodes call 250 functions once each, and are then idle."""

import collections
import re

from litelab import in_one_machine, prepare_all, program_path, wait_until
from vmlab.testing import vmtest

setup = prepare_all

_FIRST = 2000
_CLIENTS = 4
_SMALLEST, _DEFAULT = 4096, 128 << 10
_LIMIT, _SHARE = 64 << 20, 16  # LITE_RINGS_BYTES_MAX, LITE_RINGS_SHARE
_IDLE = 10  # LITE_CLIENT_RING_IDLE


def _cluster(lab):
    server, *clients = in_one_machine(lab.n1, 1 + _CLIENTS, dead=10000 * lab.kernel.time_scale)
    return server, clients, max(20, lab.scale(1000 // _CLIENTS, always=True))


def _serve(server, count, size):
    process = server.vm.spawn([program_path("rings"), "serve", "--index", str(server.index), "--first", str(_FIRST),
                               "--count", str(count), "--ring-size", str(size)])
    process.wait_output("serving", timeout=30)
    return process


def _call_all(server, clients, count):
    """The results of each client's calls, in order, and the time of the longest call, in ms."""
    processes = [client.vm.spawn([program_path("rings"), "call", "--index", str(client.index), "--node", str(server.id),
                                  "--first", str(_FIRST), "--count", str(count)]) for client in clients]
    lines = [process.wait(60, check=True).out.splitlines() for process in processes]
    return [words.split() for words, _ in lines], max(int(longest) for _, longest in lines)


def _counts(answers):
    return collections.Counter(word for answer in answers for word in answer)


def _rings(lite):
    stats = lite.stats()
    return stats["rings"], stats["ring_bytes"]


def _wait_given_back(lites):
    for lite in lites:
        wait_until(f"{lite} has given its rings back", lambda lite=lite: _rings(lite) == (0, 0), 3 * _IDLE,
                   lite.vm.time_scale)


def _end(process, lites):
    process.close_stdin()
    process.wait(30, check=True)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=200, slow=True)
def test_small(lab):
    """A thousand rings exist at once, and are given back when they have been idle."""
    server, clients, count = _cluster(lab)
    process = _serve(server, count, _SMALLEST)
    answers, _ = _call_all(server, clients, count)
    rings, size = _rings(server)
    assert _counts(answers) == {"ok": _CLIENTS * count}, _counts(answers)
    # On a slow kernel the first rings are given back before the last ones exist.
    assert rings == _CLIENTS * count or lab.kernel.is_debug, rings
    assert size == rings * _SMALLEST, (rings, size)
    print(f"      {rings} rings of {_SMALLEST >> 10} KB: {size / (1 << 20):.1f} MB at the server")
    _wait_given_back([server, *clients])
    _end(process, [server, *clients])


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=300, slow=True)
def test_limit(lab):
    """The node has as many rings as it has room for. It refuses more, and accepts calls again when there is room."""
    server, clients, count = _cluster(lab)
    total = int(re.search(r"MemTotal: +(\d+) kB", lab.n1.run("cat /proc/meminfo").out)[1]) << 10
    limit = min(_LIMIT, total // _SHARE)
    # On a slow kernel there are only a few functions, so their rings are larger.
    each = _DEFAULT if not lab.kernel.is_debug else 1 << 20
    process = _serve(server, count, each)
    answers, longest = _call_all(server, clients, count)
    rings, size = _rings(server)
    said = _counts(answers)
    assert set(said) == {"ok", "ENOBUFS"} and said.total() == _CLIENTS * count, said
    assert rings == said["ok"] and size == rings * each, (rings, size, said)
    assert limit * 0.8 < size < limit, (size, limit)
    assert longest < 2000 * lab.kernel.time_scale, longest
    print(f"      {rings} rings of {each >> 10} KB: {size / (1 << 20):.1f} of {limit / (1 << 20):.1f} MB; "
          f"{said['ENOBUFS']} calls were refused, all within {longest} ms")
    # Clients with a ring go on; clients without one are still refused.
    again, _ = _call_all(server, clients, count)
    assert again == answers, (_counts(again), said)
    assert _rings(server) == (rings, size)
    _wait_given_back([server, *clients])
    # Now the client with the most refusals calls first.
    refused = max(clients, key=lambda client: _counts([answers[clients.index(client)]])["ENOBUFS"])
    late, _ = _call_all(server, [refused], count)
    assert _counts(late) == {"ok": count}, _counts(late)
    _wait_given_back([server, *clients])
    _end(process, [server, *clients])
