# SPDX-License-Identifier: GPL-2.0
"""Starting processes that never outlive us, whatever kills us."""

import concurrent.futures
import subprocess

# The kernel kills a child with the *thread* that started it. Tests start nodes from threads of their own, so one thread
# that lives as long as the process does all the starting.
_starter = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="starter")


def start(command, **options):
    """A Popen of the command, in a session of its own: Ctrl-C is for us to handle, and is not the children's business."""
    command = ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)]
    options.setdefault("stdin", subprocess.DEVNULL)
    return _starter.submit(subprocess.Popen, command, start_new_session=True, **options).result()


def stop(child):
    """Kills it and waits until it is gone."""
    if child.stdin:
        child.stdin.close()
    child.kill()
    child.wait()
