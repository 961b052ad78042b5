# SPDX-License-Identifier: GPL-2.0
"""The network between the nodes: socket pairs, and a switch if there are more than two nodes.

Every node's network card is one end of a socket pair of type SOCK_SEQPACKET: one message is one frame, so there is no
framing to lose, and no root is needed. With two nodes the pair joins them directly. The harness keeps both ends open, which
makes the rest simple: a node that dies leaves its end to its successor, and the other nodes never see a closed connection,
only silence. But a sender must not block, as a real network would go on taking packets: frames for a machine that is off
or stopped go to the Drain.
"""

import os
import selectors
import socket
import subprocess
import threading

from . import process
from .initramfs import GUEST, compile_c
from .kernel import cache_dir

_SOURCE = GUEST.parent / "switch.c"


def _switch_binary():
    stat = _SOURCE.stat()
    target = cache_dir() / "vm" / f"switch-{stat.st_size}-{stat.st_mtime_ns}"
    if not target.exists():
        compile_c(_SOURCE, target)
    return target


class Network:
    """Joins `count` nodes. `sockets[i]` is the end for QEMU number i."""

    def __init__(self, count):
        self._all, self.sockets = [], []
        self._switch = None
        self.drain = Drain()
        if count <= 2:
            self.sockets = self._pair()[:count]
        else:
            pairs = [self._pair() for _ in range(count)]
            self.sockets = [pair[0] for pair in pairs]
            inner = [pair[1].fileno() for pair in pairs]
            self._switch = process.start([_switch_binary(), *map(str, inner)], pass_fds=inner, stdin=subprocess.PIPE)

    def _pair(self):
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._all += pair
        for end in pair:
            # Room for bursts: if the buffer is full, the sender waits in QEMU's main loop.
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            end.setblocking(False)
        return pair

    def close(self):
        """Ends the switch and the drain. The nodes must be gone already."""
        self.drain.close()
        if self._switch:
            process.stop(self._switch)
        for end in self._all:
            end.close()


class Drain:
    """Swallows the frames for the nodes that are off or stopped."""

    def __init__(self):
        self._selector = selectors.DefaultSelector()
        self._wake_out, self._wake_in = os.pipe()
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._lock = threading.Lock()
        self._closed = False
        self._thread = None

    def start(self, end):
        """From now on, the drain discards all frames that arrive here."""
        with self._lock:
            if self._closed or end in self._selector.get_map():
                return
            self._selector.register(end, selectors.EVENT_READ)
            if not self._thread:
                self._thread = threading.Thread(target=self._run, name="drain", daemon=True)
                self._thread.start()
        os.write(self._wake_in, b"x")

    def stop(self, end):
        """The node is about to listen again. An old frame may still be in the socket, as on a real wire."""
        with self._lock:
            if not self._closed and end in self._selector.get_map():
                self._selector.unregister(end)

    def close(self):
        """Ends the drain's thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        os.write(self._wake_in, b"x")
        if self._thread:
            self._thread.join()
        self._selector.close()
        os.close(self._wake_in)
        os.close(self._wake_out)

    def _run(self):
        while not self._closed:
            for key, _ in self._selector.select():
                if key.fileobj == self._wake_out:
                    os.read(self._wake_out, 64)
                    continue
                with self._lock:
                    # If the end was unregistered meanwhile, the frames are for the node.
                    if key.fileobj not in self._selector.get_map():
                        continue
                    try:
                        while key.fileobj.recv(65536):
                            pass
                    except BlockingIOError:
                        pass
