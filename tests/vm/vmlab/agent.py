# SPDX-License-Identifier: GPL-2.0
"""The host's end of the connection to the agent in a guest (guest/agent.c): commands, and their output."""

import dataclasses
import itertools
import os
import signal
import socket
import struct
import threading
import time

from .errors import CommandFailed, CommandTimeout, LabError, NodeDied

# Frame types, as in agent.c.
_RUN, _STDIN, _KILL, _RESIZE, _WAKE = 1, 2, 3, 4, 5
_HELLO, _STDOUT, _STDERR, _CREDIT, _EXIT, _ERROR = 16, 17, 18, 19, 20, 21

_FRAME = struct.Struct("<III")
_WINDOW = 256 * 1024
_CHUNK = 64 * 1024
_TERMINAL = 1

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass
class Result:
    """What a command left: exit status (negative: the signal that ended it), and output as text."""
    rc: int
    out: str
    err: str

    @property
    def ok(self):
        """Whether it succeeded."""
        return self.rc == 0


class Process:
    """A command that runs, or ran, in a guest. Made by Node.spawn().

    Output is collected from the start. All waiting is bounded; time-outs are multiplied by the node's time scale.
    """

    def __init__(self, channel, number, command):
        self.command = command
        self._channel = channel
        self._number = number
        self._changed = threading.Condition()
        self._out, self._err = bytearray(), bytearray()
        self._credit = _WINDOW
        self._status = None
        self._problem = None  # an exception that explains why there will be no status
        self.on_output = None  # called with each piece of output, in the channel's thread

    @property
    def out(self):
        """Standard output so far."""
        with self._changed:
            return self._out.decode(errors="replace")

    @property
    def err(self):
        """Standard error so far."""
        with self._changed:
            return self._err.decode(errors="replace")

    @property
    def out_bytes(self):
        """Standard output so far, as bytes."""
        with self._changed:
            return bytes(self._out)

    @property
    def rc(self):
        """Exit status, negative signal, or None while the command runs."""
        with self._changed:
            return self._rc()

    @property
    def running(self):
        """Whether the command still runs."""
        with self._changed:
            return self._status is None and self._problem is None

    def wait(self, timeout=30, check=False):
        """Waits for the command to end; returns a Result. Raises CommandTimeout, without killing the command, NodeDied,
        and with `check` also CommandFailed."""
        node = self._channel.node
        with self._changed:
            done = self._changed.wait_for(lambda: self._status is not None or self._problem, timeout * node.patience)
            if self._problem:
                raise self._problem
            result = Result(self._rc(), self._out.decode(errors="replace"), self._err.decode(errors="replace"))
        if not done:
            raise CommandTimeout(node, self.command, result, f"still running after {timeout * node.patience:g} s")
        if check and result.rc:
            raise CommandFailed(node, self.command, result, describe_status(result.rc))
        return result

    def wait_output(self, text, timeout=30):
        """Waits until `text` has appeared on standard output or error, for instance because a server is ready."""
        node = self._channel.node
        wanted = text.encode()
        with self._changed:
            found = lambda: wanted in self._out or wanted in self._err
            self._changed.wait_for(lambda: found() or self._status is not None or self._problem,
                                   timeout * node.patience)
            if found():
                return
            if self._problem:
                raise self._problem
            result = Result(self._rc(), self._out.decode(errors="replace"), self._err.decode(errors="replace"))
        why = f"did not print {text!r} within {timeout * node.patience:g} s" if result.rc is None else \
            f"ended without printing {text!r}"
        raise CommandFailed(node, self.command, result, why)

    def kill(self, sig=signal.SIGKILL):
        """Sends a signal to the command's process group, unless the command has ended."""
        self._channel.send(self._number, _KILL, struct.pack("<I", sig))

    def write(self, data, timeout=30):
        """Writes to the command's standard input, as fast as it reads. Raises LabError after the time-out."""
        data = data.encode() if isinstance(data, str) else data
        deadline = time.monotonic() + timeout * self._channel.node.patience
        view = memoryview(data)
        while view:
            with self._changed:
                self._changed.wait_for(lambda: self._credit or not self._alive(), deadline - time.monotonic())
                if not self._alive():
                    return
                take = min(len(view), self._credit, _CHUNK)
                if not take:
                    raise LabError(f"{self._channel.node}: does not read its input: {self.command}")
                self._credit -= take
            self._channel.send(self._number, _STDIN, view[:take])
            view = view[take:]

    def close_stdin(self):
        """Closes the command's standard input."""
        self._channel.send(self._number, _STDIN, b"")

    def resize(self, rows, columns):
        """Sets the size of the command's terminal."""
        self._channel.send(self._number, _RESIZE, struct.pack("<HH", rows, columns))

    def _alive(self):
        return self._status is None and self._problem is None

    def _rc(self):
        return None if self._status is None else os.waitstatus_to_exitcode(self._status)

    def _handle(self, kind, data):
        with self._changed:
            if kind == _STDOUT:
                self._out += data
            elif kind == _STDERR:
                self._err += data
            elif kind == _CREDIT:
                self._credit += struct.unpack("<I", data)[0]
            elif kind == _EXIT:
                self._status = struct.unpack("<I", data)[0]
            elif kind == _ERROR:
                self._problem = LabError(f"{self._channel.node}: cannot start {self.command}: {data.decode()}")
            self._changed.notify_all()
        if kind in (_STDOUT, _STDERR) and self.on_output:
            self.on_output(bytes(data))

    def _lost(self, problem):
        with self._changed:
            if self._alive():
                self._problem = problem
                self._changed.notify_all()


def describe_status(rc):
    """"exit status 3" or "killed by SIGSEGV"."""
    return f"exit status {rc}" if rc >= 0 else f"killed by {signal.Signals(-rc).name}"


class Channel:
    """The connection to the agent of one boot of a node. A thread of its own receives."""

    def __init__(self, node, sock):
        self.node = node
        self._sock = sock
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._processes = {}
        self._greeted = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._receive, name=f"agent {node}", daemon=True)
        self._thread.start()

    def wait_ready(self, timeout):
        """Waits for the agent's hello; returns whether it has come."""
        return self._greeted.wait(timeout)

    def wake(self):
        """Sets the guest's clock, and seeds its generator of random numbers."""
        seconds, nanoseconds = divmod(time.time_ns(), 10 ** 9)
        self.send(0, _WAKE, struct.pack("<QQ", seconds, nanoseconds) + os.urandom(32))

    def spawn(self, command, env, user, group, cwd, terminal=False, on_output=None):
        """Starts a command, a shell line or a list of arguments; returns its Process."""
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(map(str, command))
        environment = {"PATH": _PATH, "HOME": "/root" if user == 0 else "/tmp", "TERM": "linux", "LC_ALL": "C", **env}
        strings = [cwd, *argv, *(f"{k}={v}" for k, v in environment.items())]
        request = struct.pack("<IIIII", _TERMINAL if terminal else 0, user, group, len(argv), len(environment))
        with self._lock:
            number = next(self._numbers)
            process = Process(self, number, command if isinstance(command, str) else " ".join(argv))
            process.on_output = on_output
            self._processes[number] = process
            closed = self._closed
        if closed:
            process._lost(NodeDied(f"{self.node} is not running"))
        self.send(number, _RUN, request + b"".join(s.encode() + b"\0" for s in strings))
        return process

    def running(self):
        """The processes that have not ended."""
        with self._lock:
            return list(self._processes.values())

    def send(self, number, kind, data):
        """Sends one frame. To a dead node that is no error, because the processes there raise NodeDied."""
        try:
            with self._lock:
                self._sock.sendall(_FRAME.pack(len(data), number, kind) + data)
        except OSError:
            pass

    def close(self):
        """Ends the thread. Commands that still run raise NodeDied."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._thread.join()
        self._sock.close()

    def _receive(self):
        with self._sock.makefile("rb") as stream:
            try:
                while head := stream.read(_FRAME.size):
                    length, number, kind = _FRAME.unpack(head)
                    self._dispatch(number, kind, stream.read(length))
            except (OSError, struct.error):
                pass  # the node died in the middle of a frame
        with self._lock:
            self._closed = True
            lost = list(self._processes.values())
            self._processes.clear()
        problem = NodeDied(f"{self.node} died; its console: {self.node.console.path}")
        for process in lost:
            process._lost(problem)

    def _dispatch(self, number, kind, data):
        if kind == _HELLO:
            self._greeted.set()
            return
        with self._lock:
            process = self._processes.get(number)
            if kind in (_EXIT, _ERROR):
                self._processes.pop(number, None)
        if process:
            process._handle(kind, data)
