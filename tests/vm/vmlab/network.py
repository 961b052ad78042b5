# SPDX-License-Identifier: GPL-2.0
"""The network between the nodes: socket pairs, and a switch if there are more than two nodes.

A node's network card is an end of a socket pair of type SOCK_SEQPACKET: a message is a frame, and no root is needed.
With two nodes the pair joins them directly. The harness keeps both ends open: so the QEMU of the next boot of a node
has the same end, and if a node dies, the others see silence instead of a closed connection. Nor must a sender block,
because a real network goes on taking packets: the Drain takes the frames for machines that are off or stopped.
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
    """Joins `count` nodes. `sockets[i]` is the end for the QEMU of node i + 1."""

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
            # Room for bursts: when the buffer is full, the sender's QEMU waits in its main loop.
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            end.setblocking(False)
        return pair

    def close(self):
        """Ends the switch and the drain. The nodes must have ended before."""
        self.drain.close()
        if self._switch:
            process.stop(self._switch)
        for end in self._all:
            end.close()


class Drain:
    """Discards the frames for nodes that are off or stopped."""

    def __init__(self):
        self._selector = selectors.DefaultSelector()
        self._wake_out, self._wake_in = os.pipe()
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._lock = threading.Lock()
        self._closed = False
        self._thread = None

    def start(self, end):
        """Discards all frames that arrive at this end from now on."""
        with self._lock:
            if self._closed or end in self._selector.get_map():
                return
            self._selector.register(end, selectors.EVENT_READ)
            if not self._thread:
                self._thread = threading.Thread(target=self._run, name="drain", daemon=True)
                self._thread.start()
        os.write(self._wake_in, b"x")

    def stop(self, end):
        """Leaves what arrives to the node again. An old frame may still be in the socket, as on a real wire."""
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
                    # After stop() the frames are for the node.
                    if key.fileobj not in self._selector.get_map():
                        continue
                    try:
                        while key.fileobj.recv(65536):
                            pass
                    except BlockingIOError:
                        pass
