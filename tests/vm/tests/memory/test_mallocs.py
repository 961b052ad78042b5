# SPDX-License-Identifier: MIT
"""liblite-arena.so: unmodified programs have their large mallocs in arenas."""

import pathlib
import shlex
import subprocess

from litelab import on_machines, prepare, program_path, stripped, wait_until
from vmlab.testing import vmtest

_LIBRARY = "/usr/lib/liblite-arena.so"
_PRELOAD = {"LD_PRELOAD": _LIBRARY}
_JEMALLOC = pathlib.Path("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")
_PYTHON = pathlib.Path("/usr/bin/python3").resolve()


def setup(cluster):
    """Installs LITE and the stripped library."""
    library = stripped("ulib/malloc/liblite-arena.so")

    def install(node):
        prepare(node)
        node.put(library, _LIBRARY)

    cluster.each(install)


def _nodes(lab):
    """A cluster where each user may have 320 MB."""
    return on_machines(lab, mem_limit="400M", uid_limit="320M")


def _mallocs(lite, *words, env=None, timeout=240, **options):
    out = lite.vm.run([program_path("mallocs"), *map(str, words)], env={**_PRELOAD, **(env or {})}, timeout=timeout, **options).out
    assert out.endswith("good\n"), out


@vmtest(nodes=1, mem_mb=1024, timeout=300)
def test_each_function(lab):
    lite, = _nodes(lab)
    _mallocs(lite, "cases", "arena")
    lite.check_idle()
    # Without the library, to check the program.
    _mallocs(lite, "cases", "elsewhere", env={"LD_PRELOAD": ""})


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=600)
def test_threads_that_fork(lab):
    lite, = _nodes(lab)
    for least in ("1M", "4096"):
        _mallocs(lite, "random", "arena", lab.rng.getrandbits(31), max(lab.scale(300), 40), 3, env={"LITE_ARENA_MIN": least})
        lite.check_idle()


@vmtest(nodes=1, cpus=2, mem_mb=1024, timeout=600)
def test_threads_that_fork_with_another_allocator(lab):
    """Small blocks are jemalloc's, which also locks its heap during fork(2)."""
    lite, = _nodes(lab)
    lab.n1.put(_JEMALLOC, f"/usr/lib/{_JEMALLOC.name}")
    _mallocs(lite, "random", "arena", lab.rng.getrandbits(31), max(lab.scale(300), 40), 3,
             env={"LITE_ARENA_MIN": "4096", "LD_PRELOAD": f"{_LIBRARY} /usr/lib/{_JEMALLOC.name}"})
    lite.check_idle()


@vmtest(timeout=120)
def test_registering_is_a_look_up(lab):
    """That works even for a user that may pin nothing."""
    here, there = _nodes(lab)

    def register(where, user, env):
        command = f"ulimit -l 0; exec {program_path('mallocs')} register {where} buffer 8"
        return here.vm.spawn(["sh", "-c", command], env=env, user=user)

    p = register("arena", "alice", _PRELOAD)
    p.wait_output("ready")
    stats = here.stats()
    assert stats["pinned_pages"] == 0 and stats["arenas"] > 0, stats
    there.lite("write", "buffer", 1 << 20, "from afar")
    p.close_stdin()
    assert p.wait(60, check=True).out == "ready\ngood\n"
    here.check_idle()
    # Without the library, memory is pinned.
    plain = register("elsewhere", "alice", {})
    assert plain.wait(60).out .startswith("lite_register: the user's share of memory"), plain.out
    plain = register("elsewhere", None, {})
    plain.wait_output("ready")
    stats = here.stats()
    assert stats["pinned_pages"] == (8 << 20) >> 12 and stats["arenas"] == 0, stats
    plain.kill(9)
    plain.wait()
    here.check_idle()


@vmtest(nodes=1, mem_mb=1024, timeout=120)
def test_at_the_limit(lab):
    """At a user's limit large mallocs are ordinary memory, until blocks are free again."""
    lite, = _nodes(lab)
    _mallocs(lite, "limit", user="alice")
    lite.check_idle()


@vmtest(nodes=1, timeout=120)
def test_killed(lab):
    lite, = _nodes(lab)
    for delay in (0, 0.3, 1, 2):
        p = lite.vm.spawn([program_path("mallocs"), "random", "arena", "1", "100000", "3"], env=_PRELOAD)
        wait_until("large mallocs", lambda: lite.stats()["arenas"] > 0, 30)
        lite.vm.run(["sleep", str(delay)])
        # Children may just have ended by themselves.
        lite.vm.run("kill -9 $(pidof mallocs)", check=False)
        assert p.wait().rc == -9, p
        lite.check_idle()


@vmtest(nodes=1, timeout=120)
def test_node_stops(lab):
    """A program keeps its memory, touched or not; later mallocs are ordinary. It has no open file for which the node
    would have to wait, or that a child would inherit."""
    lite, = _nodes(lab)
    p = lite.vm.spawn([program_path("mallocs"), "outlive"], env=_PRELOAD)
    p.wait_output("ready")
    stats = lite.stats()
    assert stats["arenas"] > 0 and stats["ctxs"] == 0, stats
    lite.stop()
    p.close_stdin()
    assert p.wait(60, check=True).out == "ready\ngood\n", p.out


def _put_python(vm, program):
    """Installs the host's python3 with what this program imports; returns what the program prints on the host."""
    vm.write("/tmp/program.py", program)
    command = [_PYTHON, "-I", "-S", "-c", program + "\nimport sys\nfor m in list(sys.modules.values()):\n"
               "    if getattr(m, '__file__', None): print('FILE', m.__file__)"]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={}).stdout.splitlines()
    libraries = [line.split("=> ")[1].split()[0] for line in
                 subprocess.run(["ldd", _PYTHON], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines() if "=>" in line]
    landmark = f"/usr/lib/{_PYTHON.name}/os.py"
    for path in {str(_PYTHON), landmark, *libraries, *(line.split()[1] for line in out if line.startswith("FILE "))}:
        if not vm.run(["test", "-e", path], check=False).ok:
            vm.run(f"mkdir -p {shlex.quote(str(pathlib.Path(path).parent))}")
            vm.put(path, path)
    return "".join(f"{line}\n" for line in out if not line.startswith("FILE "))


_PROGRAM = """
import os, zlib
data = bytes(range(256)) * (3 << 12)
numbers = sorted(i * 7919 % 1000003 for i in range(200000))
print(zlib.crc32(data * 2), numbers[::20000], len(('x' * (5 << 20)).replace('x', 'yy')))
reader, writer = os.pipe()
if not os.fork():
    more = data + data[::-1]
    os.write(writer, str(zlib.crc32(more)).encode())
    os._exit(0)
data = bytes(len(data))
os.wait()
print(os.read(reader, 100), zlib.crc32(data), os.system('true'))
"""


@vmtest(nodes=1, mem_mb=1024, timeout=240)
def test_unmodified_programs(lab):
    lite, = _nodes(lab)
    vm = lite.vm
    env = {**_PRELOAD, "LITE_ARENA_DEBUG": "1"}
    used = "large mallocs come from the LITE node"
    vm.put("/usr/bin/sort", "/usr/bin/real-sort")
    vm.run("seq 200000 | rev >/tmp/lines && real-sort /tmp/lines >/tmp/wanted")
    result = vm.run("real-sort -S 20M --parallel=2 /tmp/lines", env=env, timeout=60)
    assert result.out == vm.read("/tmp/wanted")
    assert used in result.err, result.err
    wanted = _put_python(vm, _PROGRAM)
    result = vm.run(f"{_PYTHON} -I -S /tmp/program.py", env=env, timeout=120)
    assert result.out == wanted, result.out
    assert used in result.err, result.err
    lite.check_idle()


@vmtest(fresh=True, timeout=240)
def test_beside_liblite_verbs(lab):
    """Both libraries at once: the buffers of verbs are in arenas."""
    here, there = on_machines(lab, unpinned=True)
    verbs = stripped("ulib/verbs/liblite-verbs.so")
    for lite in (here, there):
        lite.vm.put(verbs, "/usr/lib/liblite-verbs.so")
    env = {"LD_PRELOAD": f"/usr/lib/liblite-verbs.so {_LIBRARY}", "LITE_ARENA_MIN": "4096", "LITE_ARENA_DEBUG": "1"}
    checker = program_path("verbs_check")
    server = here.vm.spawn(f"{checker} serve 7000 8", env=env)
    server.wait_output("ready")
    client = there.vm.run(f"{checker} use {here.vm.ip} 7000 {lab.rng.getrandbits(31)} {lab.scale(200)} all", env=env, timeout=120)
    assert client.out.endswith("good\n"), client.out
    assert "come from the LITE node" in client.err, client.err
    server.wait(60, check=True)
