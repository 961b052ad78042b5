# SPDX-License-Identifier: GPL-2.0
"""Starting processes that never outlive the harness, however it is killed."""

import concurrent.futures
import subprocess

# The kernel kills a child when the *thread* that started it ends. Tests start nodes from short-lived threads, so one thread
# that lives as long as the harness starts all processes.
_starter = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="starter")


def start(command, **options):
    """A Popen of the command, in a session of its own: the harness handles Ctrl-C, the children do not get it."""
    command = ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)]
    options.setdefault("stdin", subprocess.DEVNULL)
    return _starter.submit(subprocess.Popen, command, start_new_session=True, **options).result()


def stop(child):
    """Kills the child and waits until it is gone."""
    if child.stdin:
        child.stdin.close()
    child.kill()
    child.wait()
