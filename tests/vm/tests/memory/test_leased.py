# SPDX-License-Identifier: MIT
"""Leased LMRs: unpinned ones of which pages in use are pinned for a while."""

from litelab import in_one_machine, patient, prepare_all, program_path, wait_until
from vmlab.testing import vmtest

setup = prepare_all
_WAYS = ("numa=fake=2", "secretmem.enable=1")
_LEASED = {"LEASED": "1"}
_MB = 1
_PAGES = (_MB << 20) >> 12


def _unpinned(vm, *words, **options):
    return vm.run([program_path("unpinned"), *(str(word) for word in words)], **options)


class _Owner:
    """A process of the first node with an LMR that it never touches; a user of the second one fills it."""

    def __init__(self, lab, lites, limit_kb=None):
        self.vm = lab.n1
        self.home = lites[0]
        limit = f"ulimit -l {limit_kb}; " if limit_kb else ""
        self.process = self.vm.spawn(f"{limit}exec {program_path('unpinned')} hold 0 held {_MB}", env=_LEASED,
                                     user=1000 if limit_kb else None)
        self.process.wait_output("ready")

    def fill(self):
        _unpinned(self.vm, "fill", 1, "held", _MB)

    def leased(self):
        return self.home.stats()["leased_pages"]

    def page_out(self):
        """Asks the kernel to swap the pages out; returns how many it does not."""
        before = len(self.process.out)
        self.process.write("pageout\n")
        wait_until("its answer", lambda: "KB\n" in self.process.out[before:] or not self.process.running)
        return int(self.process.out[before:].split()[0])

    def end(self):
        self.process.close_stdin()
        self.process.wait(check=True)


def _check_idle(lites):
    for lite in lites:
        lite.check_idle()


@vmtest(nodes=1, cpus=2, mem_mb=768, swap_mb=256, kernel_args=_WAYS, timeout=300)
def test_each_way_to_change_memory(lab):
    """With leases, too, another node sees after each event what the process sees, or gets EFAULT."""
    lites = in_one_machine(lab.n1, unpinned=True, **patient(lab.n1))
    print(_unpinned(lab.n1, "ways", 0, 1, env=_LEASED, timeout=250).out)
    _check_idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=768, swap_mb=256, kernel_args=_WAYS, timeout=400)
def test_flood_of_events(lab):
    """No canary in a page that the process has given up is read or damaged."""
    lites = in_one_machine(lab.n1, unpinned=True, **patient(lab.n1))
    print(_unpinned(lab.n1, "flood", 0, 1, lab.scale(1500 * lab.part, 250), 3, lab.rng.getrandbits(31), env=_LEASED,
                    timeout=350).out)
    _check_idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=768, swap_mb=256)
def test_pages_in_use_are_not_swapped_out(lab):
    """When memory is short the kernel takes them nevertheless, and other nodes see the same bytes."""
    lites = in_one_machine(lab.n1, unpinned=True)
    owner = _Owner(lab, lites)
    assert owner.leased() == 0

    def stay_leased():
        owner.fill()
        stayed = owner.page_out()
        # On a slow host some leases may have ended before: the chunks end, and are leased again.
        if owner.leased() != _PAGES:
            lab.n1.run("echo 2 >/proc/sys/vm/drop_caches")
            owner.page_out()
            return False
        assert stayed == _PAGES, stayed
        return True

    wait_until("a lease of all pages", stay_leased, 60)
    # Calls all shrinkers.
    lab.n1.run("echo 2 >/proc/sys/vm/drop_caches")
    assert owner.leased() == 0
    assert owner.page_out() < _PAGES
    owner.fill()
    owner.end()
    _check_idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=768, swap_mb=256)
def test_leases_end_by_age(lab):
    """Nothing else ends with a lease: its chunk, and what other nodes know of it, stay."""
    lites = in_one_machine(lab.n1, unpinned=True)
    owner = _Owner(lab, lites)
    user = lab.n1.spawn([program_path("unpinned"), "use", "1", "held"])
    user.wait_output("using")
    before = lites[0].stats()
    wait_until("the ends of all leases", lambda: owner.leased() == 0, 30)
    after = lites[0].stats()
    for name in ("chunks", "chunk_ends", "chunk_faults"):
        assert after[name] == before[name], (name, before, after)
    assert before["chunks"] == _PAGES // 64, before
    user.kill()
    user.wait()
    assert owner.page_out() < _PAGES
    owner.end()
    _check_idle(lites)


@vmtest(nodes=1, cpus=2, mem_mb=768)
def test_half_of_the_limit(lab):
    """Leases take half of RLIMIT_MEMLOCK, as the rest is for what must be pinned. Other chunks are unpinned."""
    lites = in_one_machine(lab.n1, unpinned=True)
    owner = _Owner(lab, lites, limit_kb=1024)
    most = 0

    def lease():
        nonlocal most
        owner.fill()
        most = max(most, owner.leased())
        # Chunks end with their pages, and are made anew.
        owner.process.write("unmap\n")
        return most

    wait_until("a lease", lease, 60)
    assert 0 < most <= _PAGES // 2, most
    owner.end()
    _check_idle(lites)
