# SPDX-License-Identifier: MIT
"""liblite-verbs.so: unmodified verbs programs from Debian."""

import re
import statistics

import preload
from preload import CHECKER, PRELOAD, limited, pair, rdmacm_pair, unpinned
from vmlab.testing import vmtest

setup = preload.setup


def test_ibv_rc_pingpong(lab):
    unpinned(lab)
    few, many = lab.scale(200 * lab.part, 20), lab.scale(200, 50)
    for option, n in (("", many), ("-e", many), ("-s 100000 -c", few)):
        out = pair(lab, f"ibv_rc_pingpong -g 1 -n {n} {option}", f"ibv_rc_pingpong -g 1 -n {n} {option} {lab.n1.ip}", 18515)
        assert f"{n} iters" in out, out


def test_ibv_other_pingpongs(lab):
    """UC, UD, and an SRQ."""
    unpinned(lab)
    for program in ("ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_ud_pingpong -e", "ibv_srq_pingpong -q 4"):
        out = pair(lab, f"{program} -g 1 -n 100", f"{program} -g 1 -n 100 {lab.n1.ip}", 18515)
        assert "100 iters" in out or "400 iters" in out, out


def _perftest(lab, program, options="", env=None, iterations=100):
    command = f"{program} -d rxe0 -n {iterations} {options}"
    run = rdmacm_pair if "-R" in options.split() else pair
    ready = () if run is rdmacm_pair else (18515,)
    return run(lab, command, f"{command} {lab.n1.ip}", *ready, env=env, timeout=150)


def _results(out, iterations):
    """{bytes: other columns} of perftest's table."""
    return {int(size): [float(word) for word in rest.split()]
            for size, rest in re.findall(rf"^ *(\d+) +{iterations} +(.+)$", out, re.M)}


def _some(lab, options):
    """All of these, but without --thorough half of them, chosen at random: most time goes to start programs."""
    return options if lab.part == 1 else lab.rng.sample(options, (len(options) + 1) // 2)


def _perftests(lab, *programs):
    unpinned(lab)
    for program, *options in programs:
        for option in _some(lab, options):
            # Messages of many packets take longest.
            iterations = lab.scale(100 * (lab.part if "65536" in option else 1), 10)
            out = _perftest(lab, program, option, iterations=iterations)
            assert _results(out, iterations), out


@vmtest(timeout=240)
def test_perftest_write(lab):
    _perftests(lab, ("ib_write_lat", "-s 64", "-s 65536"), ("ib_write_bw", "-s 64", "-s 65536"))


@vmtest(timeout=240)
def test_perftest_read(lab):
    _perftests(lab, ("ib_read_lat", "-s 64", "-s 64 -e"), ("ib_read_bw", "-s 64", "-s 65536", "-s 4096 -e", "-s 64 -e -Q 1"))


@vmtest(timeout=240)
def test_perftest_send(lab):
    _perftests(lab, ("ib_send_lat", "-s 64", "-s 65536", "-s 64 -e", "-s 64 -c UD"),
               ("ib_send_bw", "-s 64", "-s 65536", "-s 4096 -e"))


@vmtest(timeout=240)
def test_perftest_atomic(lab):
    _perftests(lab, ("ib_atomic_lat", "", "-A CMP_AND_SWAP", "-e"), ("ib_atomic_bw", "", "-e"))


@vmtest(timeout=240)
def test_perftest_rdmacm(lab):
    _perftests(lab, ("ib_write_lat", "-R -s 64"), ("ib_read_bw", "-R -s 4096"), ("ib_send_bw", "-R -s 4096 -e"))


@vmtest(timeout=240)
def test_perftest_more_than_may_be_locked(lab):
    """With 512 KB of RLIMIT_MEMLOCK, a user's ib_write_bw registers 2 MB: two buffers of 1 MB."""
    unpinned(lab)
    server = limited("-l 512", "ib_write_bw -d rxe0 -n 5 -s 1048576")
    client = limited("-l 512", f"ib_write_bw -d rxe0 -n 5 -s 1048576 {lab.n1.ip}")
    out = pair(lab, server, client, 18515, timeout=100, user="alice")
    assert list(_results(out, 5)) == [1 << 20], out

    # Plain verbs pin it, at either end once they are connected: so little may be locked.
    p = lab.n1.spawn(server, user="alice")
    preload.wait_listening(lab.n1, p, 18515)
    ends = [lab.n2.run(client, user="alice", check=False, timeout=60), p.wait(60)]
    for end in ends:
        assert end.rc and "Couldn't allocate MR" in end.err, end.out + end.err


@vmtest(timeout=600, slow=True)
def test_perftest_all_sizes(lab):
    """From 2 bytes to 8 MB."""
    unpinned(lab)
    for program in ("ib_write_lat", "ib_read_lat", "ib_send_lat"):
        out = _perftest(lab, program, "-a", iterations=5)
        assert list(_results(out, 5)) == [2 << i for i in range(23)], out


def test_rping(lab):
    unpinned(lab)
    # At the end a thread of rping closes the event channel that another one may be about to read.
    out = rdmacm_pair(lab, f"rping -s -a {lab.n1.ip} -C 50 -V -v", f"rping -c -a {lab.n1.ip} -C 50 -V -v",
                      forgiven="rdma_get_cm_event: Bad file descriptor")
    assert out.count("rdma-ping-49: ") == 2, out


def test_ucmatose(lab):
    unpinned(lab)
    out = rdmacm_pair(lab, "ucmatose", f"ucmatose -s {lab.n1.ip}")
    assert "data transfers complete" in out and out.count("return status 0") == 2, out


def test_udaddy(lab):
    unpinned(lab)
    out = rdmacm_pair(lab, "udaddy", f"udaddy -s {lab.n1.ip}")
    assert "data transfers complete" in out and out.count("return status 0") == 2, out


def test_rdma_client(lab):
    unpinned(lab)
    out = rdmacm_pair(lab, "rdma_server", f"rdma_client -s {lab.n1.ip}")
    assert out.count("end 0") == 2, out


_UCX = ("/usr/bin/ucx_perftest", "/usr/lib/x86_64-linux-gnu/ucx/libuct_ib.so.0")
# What the next two tests need, so that they share machines. qperf listens with IPv6 or not at all.
_THEIRS = {"kernel_args": ("ipv6.disable=0",), "files": {path: path for path in _UCX}}


@vmtest(timeout=240, **_THEIRS)
def test_qperf(lab):
    """With the RDMA CM, because without it qperf's address handles lack the GRH that RoCE needs."""
    unpinned(lab)
    for test in _some(lab, ["rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_write_lat", "rc_rdma_write_bw", "rc_rdma_write_poll_lat",
                            "rc_rdma_read_lat", "rc_rdma_read_bw", "rc_compare_swap_mr", "rc_fetch_add_mr"]):
        # It posts a thousand reads before it counts the first, so it may count none in a second, and on a slow host none of
        # other operations. -to: for the exchange of messages before and after.
        for seconds in (1, 4, 16, 64):
            client = f"qperf -cm 1 -to 60 -t {seconds} {lab.n1.ip} {test}"
            out = pair(lab, "qperf", client, 19765, timeout=30 + seconds, stays=True)
            print(out)
            if re.search(r"(latency|bw|msg_rate) += +[\d.]+", out):
                break
        else:
            raise AssertionError(out)


@vmtest(timeout=240, **_THEIRS)
def test_ucx(lab):
    """UCX's transport rc_verbs. UCP connects through UD, which fails on plain Soft-RoCE ("unhandled timeout error")."""
    unpinned(lab)
    for test in _some(lab, ["am_lat -s 64", "am_bw -s 4096 -D bcopy", "put_lat -s 64", "put_bw -s 4096 -D zcopy", "get -s 4096 -D zcopy",
                            "fadd -s 8", "cswap -s 8"]):
        server = lab.n1.spawn("ucx_perftest -d rxe0:1 -x rc_verbs", env=preload.TALKING)
        preload.wait_listening(lab.n1, server, 13337)
        client = lab.n2.run(f"ucx_perftest -d rxe0:1 -x rc_verbs -n 100 -w 10 -f -t {test} {lab.n1.ip}", env=preload.TALKING)
        server.wait(check=True)
        print(client.out)
        assert re.search(r"^ +100 +[\d.]+", client.out, re.M), client.out
        preload.assert_used(client, server)


def _in_turn(rounds, measure):
    """{key: (native, preload)}, medians of the numbers that measure(env) returns as {key: number}."""
    values = {}
    for _ in range(rounds):
        for arm, env in enumerate(({}, PRELOAD)):
            for key, value in measure(env).items():
                values.setdefault(key, ([], []))[arm].append(value)
    return {key: tuple(statistics.median(arm) for arm in arms) for key, arms in values.items()}


def _numbers(out):
    return {name: float(value) for name, value in re.findall(r"([a-z ]+) ([\d.]+) us", out)}


@vmtest(timeout=1800, mem_mb=1536, slow=True, alone=True)
def test_costs(lab):
    """What the library costs: medians of alternating runs with and without it."""
    unpinned(lab)
    rounds = 7

    def show(what, results, unit):
        for key, (native, preloaded) in results.items():
            print(f"{what} {key}: native {native:.1f} {unit}, preload {preloaded:.1f} {unit}, ratio {preloaded / native:.3f}")

    for kb, repetitions in ((4, 200), (1024, 50), (1048576, 1)):
        show(f"register {kb} KB", _in_turn(rounds, lambda env, kb=kb, n=repetitions: _numbers(
            lab.n1.run(f"{CHECKER} register {kb} {n}", env=env, timeout=120).out)), "us")
    show("a peer's", _in_turn(rounds, lambda env: _numbers(preload.check(lab, "first", 50, env=env))), "us")
    # Latencies are medians of 300, bandwidths averages.
    for program, size, column, unit in (("ib_write_lat", 64, 2, "us"), ("ib_read_lat", 64, 2, "us"), ("ib_send_lat", 64, 2, "us"),
                                        ("ib_atomic_lat", 8, 2, "us"), ("ib_write_bw", 65536, 1, "MB/s"),
                                        ("ib_read_bw", 65536, 1, "MB/s"), ("ib_send_bw", 65536, 1, "MB/s")):
        options = "" if program == "ib_atomic_lat" else f"-s {size}"

        def measure(env, program=program, options=options, size=size, column=column):
            return {"": _results(_perftest(lab, program, options, env=env, iterations=300), 300)[size][column]}

        show(f"{program} {options}", _in_turn(rounds, measure), unit)
