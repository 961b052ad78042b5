# SPDX-License-Identifier: MIT
"""One call to several nodes: all, any, a quorum."""

import signal

from litelab import dead_seconds, in_one_machine, on_machines, prepare_all, run_catch, serve, wait_until
from vmlab.testing import vmtest

setup = prepare_all


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300)
def test_three_nodes_in_one_machine(lab):
    lites = in_one_machine(lab.n1)
    run_catch(lab, lites, "multicall_test", timeout=280, case_timeout=120)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=300, slow=True)
def test_cost(lab):
    """Prints medians beside those of single calls, for the user to read."""
    print(run_catch(lab, in_one_machine(lab.n1), "multicall_test", "[.cost]", timeout=280).out)


@vmtest(nodes=1, cpus=2, mem_mb=768, timeout=200)
def test_command_line(lab):
    lites = in_one_machine(lab.n1)
    one, two, three = lites
    # The next function here will have another number than on the other nodes.
    other = serve(one, "other", "--echo")
    served = [serve(lite, "shout", "--exec", "tr a-z A-Z") for lite in lites]
    nodes = ",".join(str(lite.id) for lite in lites)
    call = lambda *words, **options: one.lite("call", "-t", 60000, nodes, "shout", *words, **options)
    said = call("hello")
    assert said.out == "".join(f"{lite.id}: HELLO\n" for lite in lites), said.out
    said = call("-", "--quorum", 2, stdin=b"two\n")
    assert 2 <= len(said.out.splitlines()) <= 3 and all(line.endswith(": TWO") for line in said.out.splitlines()), said.out
    served[2].kill(signal.SIGTERM)
    served[2].wait(20)
    said = call("x", check=False)
    assert said.rc == 1 and f"node {three.id}: no process serves that function" in said.err, said
    assert said.out == f"{one.id}: X\n{two.id}: X\n" and "2 of 3 nodes" in said.err, said
    assert call("x", "--quorum", 1).out
    assert call("x", "--quorum", 4, check=False).rc == 2
    for process in (other, *served[:2]):
        process.kill(signal.SIGTERM)
        process.wait(20)
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=3, fresh=True, timeout=200)
def test_a_node_dies(lab):
    """A call reports a node that died. With a quorum of one it does not wait for that node."""
    here, there, gone = on_machines(lab)
    serve(there, "2000", "--echo")
    serve(gone, "2000", "--exec", "sleep 100")
    nodes = f"{there.id},{gone.id}"
    slow = here.vm.spawn(["lite", "call", nodes, "2000", "x", "-t", "60000"])
    wait_until("the call is there", lambda: gone.stats()["rpc_requests"] == 1, 20)
    gone.vm.crash()
    assert here.lite("call", nodes, 2000, "y", "-q", 1, "-t", 60000).out == f"{there.id}: y\n"
    slow.wait(20 + 3 * dead_seconds(here.vm))
    assert slow.rc == 1 and slow.out == f"{there.id}: x\n" and "down" in slow.err, (slow.out, slow.err)
    here.check_idle()
