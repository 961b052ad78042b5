# SPDX-License-Identifier: GPL-2.0
"""Starts processes that never outlive the harness, however it is killed."""

import concurrent.futures
import subprocess

# PR_SET_PDEATHSIG kills a child when the *thread* that started it ends, and tests start nodes in short-lived threads.
# So one thread, which lives as long as the harness, starts all processes.
_starter = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="starter")


def start(command, **options):
    """A Popen of the command, in a session of its own, so that only the harness gets Ctrl-C."""
    command = ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)]
    options.setdefault("stdin", subprocess.DEVNULL)
    return _starter.submit(subprocess.Popen, command, start_new_session=True, **options).result()


def stop(child):
    """Kills the child and waits for its end."""
    if child.stdin:
        child.stdin.close()
    child.kill()
    child.wait()
