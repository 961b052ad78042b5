# SPDX-License-Identifier: MIT
"""The global key is in nothing that user space can read.

The test learns the true key from outside of LITE, by a return probe on the function of Soft-RoCE's driver that makes it
(rxe_get_dma_mr); it removes the probe and its trace before the search. Because a key is only a number, and numbers are
everywhere, the search is repeated with other keys: a place counts only if it shows the right key each time. Large and
unusual keys make a few rounds enough.
"""

import re

from litelab import join_all, nodes_in, prepare_all, program_path, run_program, stop_all, times
from vmlab.testing import vmtest

setup = prepare_all

_TRACING = "/sys/kernel/tracing"
# struct ib_mr begins with two pointers, then lkey and rkey.
_PROBE = "r:litetest/key rdma_rxe:rxe_get_dma_mr lkey=+16($retval):x32 rkey=+20($retval):x32"


def _keys_of_start(lite):
    """Starts a node and returns the keys that the driver has made meanwhile."""
    vm = lite.vm
    vm.run(f"cd {_TRACING}; echo >trace; echo '{_PROBE}' >>kprobe_events && echo 1 >events/litetest/key/enable")
    try:
        lite.start(**times(vm))
        text = vm.read(f"{_TRACING}/trace")
    finally:
        vm.run(f"cd {_TRACING}; echo 0 >events/litetest/enable; echo '-:litetest/key' >>kprobe_events; echo >trace")
    keys = {int(key, 16) for key in re.findall(r"[lr]key=0x([0-9a-f]+)", text)}
    # The protection domain's own region has no rkey, because it is for local use only.
    keys.discard(0)
    assert keys, f"the probe saw no key: {text}"
    return keys


def _found(lab, lites, keys):
    """{place: form}, without process ids and other numbers in the places, so that rounds can be compared."""
    # The keys go through standard input, because arguments would be found in /proc.
    out = run_program(lab, lites, "keyscan", "scan", stdin="".join(f"{key}\n" for key in keys).encode(), timeout=200).out
    looked = int(re.search(r"looked at (\d+) places", out)[1])
    assert looked > 1000, out
    return {re.sub(r"\d+", "N", place): form for place, form in re.findall(r"^found\t(.*)\t(.*)$", out, re.M)}


@vmtest(nodes=1, cpus=2, timeout=500)
def test_global_key_is_nowhere(lab):
    vm = lab.n1
    lites = nodes_in(vm, 2)
    stop_all(lites)
    # The number of a region is in the upper bits of its key: above 4096 a key has six digits even in hexadecimal.
    suspects, bump = None, 5000
    for _ in range(lab.scale(4, 2)):
        # The device counts on, so later keys stay large and only have to differ.
        vm.run([program_path("keyscan"), "bump", lites[0].device, str(bump + lab.rng.randrange(1000))], timeout=120)
        bump = 100
        keys = _keys_of_start(lites[0])
        lites[1].start(**times(vm))
        join_all(lites)
        vm.run(f"cd {_TRACING}; [ ! -d events/lite ] || echo 1 >events/lite/enable")
        lites[0].lite("alloc", "traced", "1M", "--node", lites[1].id)
        lites[0].transfers("fill", "traced", "--seed", 1)
        lites[1].lite("free", "traced")
        places = _found(lab, lites, keys)
        suspects = places if suspects is None else {p: f for p, f in suspects.items() if p in places}
        lab.n1.log(f"{len(places)} places, {len(suspects)} suspects")
        vm.run(f"cd {_TRACING}; [ ! -d events/lite ] || echo 0 >events/lite/enable; echo >trace")
        stop_all(lites)
        if not suspects:
            break
    assert not suspects, f"the global key is in: {suspects}"


@vmtest(nodes=1, cpus=2, timeout=200)
def test_the_search_finds_what_is_there(lab):
    """The search finds a key that is there. Otherwise the test above would prove nothing."""
    lites = nodes_in(lab.n1, 2)
    stop_all(lites)
    key = next(iter(_keys_of_start(lites[0])))
    lab.n1.run(f"echo 'lite-test: the key is {key:#x}' >/dev/kmsg")
    assert "kernel log" in _found(lab, lites[:1], [key])
    lab.n1.run("dmesg -c >/dev/null")
    stop_all(lites)
