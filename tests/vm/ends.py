# SPDX-License-Identifier: MIT
"""Shared by tests in which sessions end: why they have, as counters, the tracepoint and the events tell."""

import collections
import contextlib
import errno
import json
import re

from litelab import trace_sessions, wait_until

_DISCONNECTED = 10  # RDMA_CM_EVENT_DISCONNECTED

# Which figures can have decided the end of a session, by its cause (enum lite_end_cause); `times` is the node's status.
_DECIDES = {
    "silence": lambda figure, times: figure >= times["dead_ms"],
    "op_timeout": lambda figure, times: figure >= times["op_timeout_ms"],
    "transport": lambda figure, times: figure >= 5000 or 0 < figure < 32,  # ms, or enum ib_wc_status
    "revoke": lambda figure, times: figure >= times["op_timeout_ms"],
    "call": lambda figure, times: figure in errno.errorcode,
    "message": lambda figure, times: figure in (errno.EPROTO, errno.EBADMSG),
    "device": lambda figure, times: figure in (errno.EIO, errno.ENODEV, errno.ENOMEM) or 256 < figure < 256 + 32,
    "peer": lambda figure, times: figure == _DISCONNECTED,
    "fence": lambda figure, times: figure == 0,
    "replaced": lambda figure, times: figure == 0,
    "leave": lambda figure, times: figure in (errno.ENOTCONN, errno.ENODEV),
}


@contextlib.contextmanager
def watched(vm, *words):
    """Runs `litectl events` on a machine. Yields a function that returns the events that it has told so far."""
    watcher = vm.spawn(" ".join(("echo $$ >&2; exec litectl events -j", *words)))
    # It does not say when it has subscribed, but then it sleeps until there is an event.
    stack = lambda: vm.run(["cat", f"/proc/{watcher.err.strip() or 'self'}/stack"], check=False).out
    wait_until("the watcher is ready", lambda: "skb_wait_for_more_packets" in stack(), 20, vm.time_scale)
    try:
        yield lambda: [json.loads(line) for line in watcher.out.rpartition("\n")[0].splitlines()]
    finally:
        watcher.kill()


def _counted(stats):
    return collections.Counter({name.removeprefix("ends_"): n for name, n in stats.items() if name.startswith("ends_")})


@contextlib.contextmanager
def told(lite, stays=True):
    """Yields a function that returns {cause: [figures]}: how a node's sessions with another one have ended since
    here, as the tracepoint tells. It waits until the counters agree, and until the events tell of an end by the
    cause that it is given, if any. A node that does not stay takes its counters along. Meanwhile no node joins
    through it. The machine has at most one other node."""
    times = lite.status()
    # One for each peer, and two if the node is connected to itself: others may end, those of nodes that have joined.
    others = lambda: lite.stats()["conns"] - list(lite.states().values()).count("up") + 1
    wait_until("there are only sessions", lambda: others() in (0, 2), 60, lite.vm.time_scale)
    before = _counted(lite.stats())
    trace_sessions(lite.vm)
    with watched(lite.vm) as events:

        def look():
            """[(node, cause, figure)] by the tracepoint and by the events, and {cause: number} by the counters."""
            counted = _counted(lite.stats()) - before if stays else None
            noticed = [(event["id"], event["cause"], event["figure"]) for event in events()
                       if event["index"] == lite.index and event.get("cause")]
            trace = lite.vm.run("cat /sys/kernel/tracing/trace").out
            found = re.findall(r"lite_conn: .* node=(\d+) state=dead .*cause=(\w+) figure=(\d+)", trace)
            traced = [(int(node), cause, int(figure)) for node, cause, figure in found]
            return [end for end in traced if end[0] not in (0, times["id"]) and end[1] != "none"], noticed, counted

        def ends(other, cause=None):
            seen = None

            def agree():
                nonlocal seen
                traced, noticed, counted = seen = look()
                # The connection in which a node has joined is in no event.
                return (not collections.Counter(noticed) - collections.Counter(traced) and
                        (not stays or collections.Counter(why for _, why, _ in traced) == counted) and
                        (not cause or cause in [why for node, why, _ in noticed if node == other.id]))

            try:
                wait_until("all tell the same", agree, 20, lite.vm.time_scale)
            except AssertionError:
                raise AssertionError(f"{lite}: tracepoint, events and counters tell {seen}, wanted {cause}") from None
            causes = {}
            for node, why, figure in seen[0]:
                assert _DECIDES[why](figure, times), (why, figure, times)
                if node == other.id:
                    causes.setdefault(why, []).append(figure)
            return causes

        yield ends
