# SPDX-License-Identifier: GPL-2.0
"""QEMU's control connection."""

import contextlib
import json
import threading

from ..errors import LabError, NodeDied


class Monitor:
    """Speaks QMP on a connected socket. Sends commands only, and ignores events."""

    TIMEOUT = 20

    def __init__(self, sock, name):
        self._sock = sock
        self._name = name
        self._lock = threading.Lock()
        self._stream = None

    def command(self, execute, **arguments):
        """Executes one command and returns its result."""
        with self._lock:
            try:
                if not self._stream:
                    self._sock.settimeout(self.TIMEOUT)
                    self._stream = self._sock.makefile("rw", encoding="utf-8")
                    self._receive("QMP")
                    self._exchange("qmp_capabilities", {})
                return self._exchange(execute, arguments)
            except (OSError, ValueError) as error:
                raise NodeDied(f"{self._name}: QEMU does not answer to {execute}: {error}") from error

    def close(self):
        """Closes the connection."""
        if self._stream:
            with contextlib.suppress(OSError):  # what a QEMU that has ended did not read
                self._stream.close()
        self._sock.close()

    def _exchange(self, execute, arguments):
        self._stream.write(json.dumps({"execute": execute, "arguments": arguments}) + "\n")
        self._stream.flush()
        answer = self._receive("return", "error")
        if "error" in answer:
            raise LabError(f"{self._name}: QEMU refuses {execute}: {answer['error']['desc']}")
        return answer["return"]

    def _receive(self, *wanted):
        while True:
            line = self._stream.readline()
            if not line:
                raise OSError("connection closed")
            message = json.loads(line)
            if any(key in message for key in wanted):
                return message
