#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The report of `make bench`: from figures to verdicts, tables and plots."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))

import bench_parts  # noqa: E402  # pylint: disable=wrong-import-position
import bench_plots  # noqa: E402  # pylint: disable=wrong-import-position
import bench_tables  # noqa: E402  # pylint: disable=wrong-import-position
import bench_targets  # noqa: E402  # pylint: disable=wrong-import-position


def outcome(label, medians, width=1, **more):
    """An outcome, in the form of lite-perf."""
    arm = label.split()[0]
    return {"arm": arm, "label": label, "width": width, "median": sorted(medians)[len(medians) // 2], "samples": 900,
            "round_medians": medians, **more}


def document(workload, size, outcomes, better="lower", unit="us"):
    """A document of lite-perf with one workload."""
    return {"kernel": "6.1.0", "cpus": 1, "arms": ["lite", "verbs"], "rounds": 3, "measured": "2026-01-02",
            "results": [{"workload": workload, "size": size, "unit": unit, "better": better, "baseline": "verbs",
                         "outcomes": outcomes}]}


def verdict_of(documents, what):
    """The only verdict with this text in its name."""
    found, = (verdict for verdict in bench_targets.verdicts(documents) if what in verdict.what)
    return found


class Verdicts(unittest.TestCase):
    """The verdicts on targets."""

    def small(self, lite, verbs=(100, 102, 98)):
        """Documents with reads of 64 B."""
        return {"small": document("read-latency", 64, [outcome("lite", list(lite)), outcome("verbs", list(verbs))])}

    def test_met(self):
        """A target that is clearly met."""
        verdict = verdict_of(self.small((80, 81, 79)), "64 B read, user level")
        self.assertAlmostEqual(verdict.value, 0.8)
        self.assertTrue(verdict.met)
        self.assertEqual(verdict.text(), "met")
        self.assertLessEqual(verdict.low, verdict.value)
        self.assertLessEqual(verdict.value, verdict.high)

    def test_missed(self):
        """A missed target: the text says by how much."""
        self.assertEqual(verdict_of(self.small((99, 99, 99), (100, 100, 100)), "64 B read, user").text(), "missed by 10 %")

    def test_noise(self):
        """If the limit is within the interval, the text says so."""
        self.assertEqual(verdict_of(self.small((60, 89, 120)), "64 B read, user").text(), "met, within the noise")
        self.assertIn("within the noise", verdict_of(self.small((60, 95, 120)), "64 B read, user").text())

    def test_far(self):
        """A large miss is shown as a factor, not in percent."""
        documents = {"setup": document("connect", 8, [outcome("lite", [20, 20, 20]), outcome("verbs", [100, 100, 100])])}
        self.assertEqual(verdict_of(documents, "first remote byte").text(), "missed by 4.0 x")

    def test_lite_perf_has_compared_them(self):
        """The verdict takes the interval of lite-perf if there is one."""
        ratio = {"against": "verbs", "value": 0.7, "low": 0.6, "high": 0.8}
        documents = {"small": document("read-latency", 64, [outcome("lite", [99] * 3, ratio=ratio), outcome("verbs", [98] * 3)])}
        verdict = verdict_of(documents, "64 B read, user")
        self.assertEqual((verdict.value, verdict.low, verdict.high), (0.7, 0.6, 0.8))

    def test_best_of_windows(self):
        """The best outcome counts, over all windows and all arms of one kind at user level."""
        outcomes = [outcome("lite", [5000] * 3), outcome("lite-vector x64", [30000] * 3, 64),
                    outcome("kernel-lite", [99999] * 3), outcome("verbs", [6000] * 3),
                    outcome("verbs x16", [12000] * 3, 16), outcome("verbs x64", [10000] * 3, 64)]
        documents = {"rate": document("read-rate", 64, outcomes, "higher", "calls/s")}
        verdict = verdict_of(documents, "rate of 64 B reads")
        self.assertEqual(verdict.over, "lite-vector x64 / verbs x16")
        self.assertEqual(verdict.value, 2.5)
        self.assertEqual(verdict.text(), "met")
        outcomes.append(outcome("verbs-events x64", [15000] * 3, 64))
        verdict = verdict_of(documents, "rate of 64 B reads")
        self.assertEqual(verdict.over, "lite-vector x64 / verbs-events x64")
        self.assertEqual(verdict.value, 2.0)

    def test_flat(self):
        """The last outcome is compared with the first, whatever is between them."""
        outcomes = [outcome(f"lite of {n}", [value] * 3) for n, value in ((1, 100), (100, 200), (10000, 104))]
        documents = {"lmrs": document("lmrs", 64, outcomes)}
        self.assertEqual(verdict_of(documents, "most LMRs").over, "lite of 10000 / lite of 1")
        self.assertEqual(verdict_of(documents, "most LMRs").text(), "met")

    def test_files(self):
        """The best sets count. Processor time is that of both machines."""
        def moved(label, rate, cpu):
            return outcome(label, [rate] * 3, facts={"cpu_here": cpu, "cpu_there": 1.0, "held": 4096.0})

        outcomes = [moved("lite 1x256", 300, 3.0), moved("lite 2x256", 440, 2.0), moved("read-write 1x256", 250, 4.0),
                    moved("static 1x256", 400, 4.0), moved("register 1x256", 100, 9.0), moved("register 2x256", 200, 9.0)]
        documents = {"file": document("file", 1 << 20, outcomes, "higher", "MB/s")}
        verdict = verdict_of(documents, "1 MB, throughput beside mapping")
        self.assertEqual((verdict.over, verdict.value), ("lite 2x256 / register 2x256", 2.2))
        self.assertAlmostEqual(verdict_of(documents, "1 MB, throughput beside read").value, 1.1)
        verdict = verdict_of(documents, "1 MB, processors")
        self.assertEqual((verdict.value, verdict.text()), (0.6, "met"))
        self.assertEqual(verdict_of(documents, "file of 4 KB").text(), "not measured")
        text = bench_tables.render(documents)
        self.assertRegex(text, r"CPU here, ns/B there +Held here\n")
        self.assertRegex(text, r"\n1 MB +lite 1x256 .* 3\.00 +1\.00 +4 KB\n")
        documents["file-large"] = document("file", 256 << 20, outcomes, "higher", "MB/s")
        self.assertEqual(verdict_of(documents, "256 MB, throughput beside mapping").value, 2.2)
        self.assertEqual(verdict_of(documents, "8 MB, throughput beside mapping").text(), "not measured")
        documents["file-sets"] = document("file", 4 << 20, [outcome("lite 1x16", [100] * 3), outcome("lite 2x16", [150] * 3)])
        self.assertEqual(verdict_of(documents, "16 pages").value, 1.5)

    def test_received_files(self):
        """Of received files, only those of 4 MB count; the part has also files that are sent."""
        def moved(label, rate, cpu):
            return outcome(label, [rate] * 3, facts={"cpu_here": cpu, "cpu_there": 20.0})

        outcomes = [moved("lite 1x256", 28, 24.0), moved("lite 2x256", 30, 25.0), moved("read-write 1x256", 31, 20.0),
                    moved("static 1x256", 35, 10.0), moved("static 2x256", 40, 10.0), moved("tcp 1x256", 72, 1.0)]
        small = [moved("lite 1x256", 90, 1.0), moved("static 1x256", 10, 1.0)]
        documents = {"file-more": document("file-cold", 4 << 20, small, "higher", "MB/s")}
        documents["file-more"]["results"] += document("file-receive", 64 << 10, small, "higher", "MB/s")["results"]
        self.assertEqual(verdict_of(documents, "received, throughput").text(), "not measured")
        documents["file-more"]["results"] += document("file-receive", 4 << 20, outcomes, "higher", "MB/s")["results"]
        verdict = verdict_of(documents, "received, throughput")
        self.assertEqual((verdict.over, verdict.value), ("lite 2x256 / static 2x256", 0.75))
        verdict = verdict_of(documents, "received, processors")
        self.assertEqual((verdict.value, verdict.text()), (1.5, "missed by 88 %"))

    def test_callers(self):
        """Calls by as many threads are compared: with the better of the native ways, and with TCP."""
        rates = {"lite": (900, 1300, 1600), "write-imm": (800, 1000, 2000), "send": (700, 900, 900), "tcp": (1500, 1700, 2000)}
        outcomes = [outcome(arm if count == 1 else f"{arm} x{count}", [rate] * 3, count)
                    for arm, of in rates.items() for count, rate in zip((1, 4, 16), of)]
        documents = {"rpc-threads": document("rpc-rate", 64, outcomes, "higher", "calls/s")}
        verdict = verdict_of(documents, "of 4 threads")
        self.assertEqual((verdict.over, verdict.value, verdict.text()), ("lite x4 / write-imm x4", 1.3, "met, within the noise"))
        verdict = verdict_of(documents, "of 16 threads beside native's best")
        self.assertEqual((verdict.over, verdict.value), ("lite x16 / write-imm x16", 0.8))
        verdict = verdict_of(documents, "of 16 threads beside TCP")
        self.assertEqual((verdict.over, verdict.value, verdict.text()), ("lite x16 / tcp x16", 0.8, "met, within the noise"))

    def test_opening_by_name(self):
        """The first opening and later ones are different outcomes of one arm."""
        outcomes = [outcome("lite", [4] * 3), outcome("lite, first", [1800] * 3), outcome("verbs", [1000] * 3)]
        outcomes[1]["arm"] = "lite"
        documents = {"setup": document("map", 1 << 20, outcomes)}
        self.assertEqual(verdict_of(documents, "for the first time").value, 1.8)
        self.assertEqual(verdict_of(documents, "by name again").text(), "met")

    def test_not_measured(self):
        """Targets without results are listed, too."""
        self.assertEqual({verdict.text() for verdict in bench_targets.verdicts({})}, {"not measured"})

    def test_same_figures_same_interval(self):
        """The resampling is reproducible."""
        documents = self.small((80, 95, 90))
        self.assertEqual(bench_targets.verdicts(documents), bench_targets.verdicts(documents))


class Tables(unittest.TestCase):
    """The tables in reStructuredText."""

    def documents(self):
        """Documents with some results of each kind."""
        ratio = {"against": "verbs", "value": 0.9, "low": 0.8, "high": 1.0}
        return {
            "latency": document("read-latency", 4096, [outcome("lite", [90] * 3, p99=200.0, p999=900.0, ratio=ratio),
                                                       outcome("verbs", [100] * 3, p99=150.0)]),
            "processes": document("read-processes", 64,
                                  [outcome("lite x8", [5000] * 3, 8, facts={"queue_pairs_made": 0.0}),
                                   outcome("verbs x8", [4000] * 3, 8, facts={"queue_pairs_made": 8.0})], "higher", "calls/s"),
        }

    def test_render(self):
        """The report has all results."""
        text = bench_tables.render(self.documents())
        for wanted in ("Linux 6.1.0, two machines with 1 CPU each, 2026-01-02.", "0.90 (0.80 .. 1.00)", "READ by several processes",
                       "Queue pairs that processes add", "4 KB", "not measured"):
            self.assertIn(wanted, text)
        # Every table has all three lines of "=", and they have the same length.
        for block in text.split("\n\n"):
            lines = [line for line in block.split("\n") if line.startswith("=")]
            self.assertIn(len(lines), (0, 3))
            self.assertLessEqual(len(set(lines)), 1)

    def test_facts(self):
        """The stream's figures have columns; a row without them has dashes."""
        documents = {"qos-write": document("qos-write", 64, [
            outcome("lite fair", [90] * 3, facts={"stream_alone": 9.5, "stream_beside": 9.0, "kept": 0.95}),
            outcome("lite fair idle", [10] * 3, 0)])}
        lines = [line.split() for line in bench_tables.render(documents).split("\n") if line.startswith("64 B lite")]
        self.assertEqual([line[-2:] for line in lines], [["9.50", "9.00"], ["-", "-"]])

    def test_images(self):
        """The page shows the plots that were drawn."""
        self.assertEqual(bench_tables.images([]), "")
        self.assertIn("\n.. image:: performance/lmrs.svg\n", bench_tables.images(["rate.svg", "lmrs.svg"]))

    def test_nothing(self):
        """Without results there are no tables."""
        self.assertEqual(bench_tables.render({}), "Nothing was measured.\n")

    def test_replace(self):
        """Only the text between the marks is replaced."""
        page = f"before\n{bench_tables.BEGIN}\n\nold\n\n{bench_tables.END}\nafter\n"
        new = bench_tables.replace(page, "new \\1 figures\n")
        self.assertIn("new \\1 figures", new)
        self.assertNotIn("old", new)
        self.assertTrue(new.startswith("before\n") and new.endswith("after\n"))
        self.assertEqual(bench_tables.replace(new, "new \\1 figures\n"), new)
        with self.assertRaises(ValueError):
            bench_tables.replace("no marks", "new")

    def test_the_page_has_the_marks(self):
        """Without the marks in the page, --write would fail after ten minutes."""
        bench_tables.replace((ROOT / "Documentation/performance.rst").read_text(), "")


class Parts(unittest.TestCase):
    """The parts of a measurement."""

    def test_sizes_fit(self):
        """The LMRs fit into the memory of a node."""
        self.assertEqual(bench_parts.lmr_sizes(2048), [1, 64, 1024])
        self.assertEqual(bench_parts.lmr_sizes(1024), [])
        self.assertEqual(bench_parts.lmr_sizes(10752)[-1], 8192)
        for memory in range(1100, 12000, 100):
            self.assertLess(sum(bench_parts.lmr_sizes(memory)), memory)

    def test_load(self):
        """load() finds the parts that have results, in order."""
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            for part in ("rpc", "latency", "other"):
                (directory / f"{part}.json").write_text(json.dumps({"part": part}))
            self.assertEqual(list(bench_parts.load(directory)), ["latency", "rpc"])


class Plots(unittest.TestCase):
    """The commands for gnuplot."""

    def test_script(self):
        """The plot has a line for each arm, with its points."""
        outcomes = [outcome(f"{arm} of {n}", [100, 110, 105]) for arm in ("lite", "verbs") for n in (1, 1000)]
        plot, = (plot for plot in bench_plots.PLOTS if plot.name == "lmrs")
        text = bench_plots.script(plot, document("lmrs", 64, outcomes)["results"])
        self.assertIn("1000 105 100 110", text)
        self.assertEqual(text.count("title 'lite'"), 1)
        self.assertEqual(text.count("title 'verbs'"), 1)
        self.assertIn("set yrange [0:]", text)

    def test_lines_of_sets(self):
        """There is a line for each number of sets at a time, and a point for each length of a set."""
        outcomes = [outcome(f"lite {n}x{pages}", [n * pages] * 3, n) for n in (1, 6) for pages in (16, 1024)]
        outcomes.append(outcome("read-write 1x16", [5] * 3, 1))
        plot, = (plot for plot in bench_plots.PLOTS if plot.name == "file-sets")
        text = bench_plots.script(plot, document("file", 4 << 20, outcomes, "higher", "MB/s")["results"])
        self.assertIn("$arm2 << end\n16 96 96 96\n1024 6144 6144 6144\nend", text)
        self.assertEqual(text.count("title '6 at a time'"), 1)
        self.assertEqual(text.count("title 'read-write'"), 1)

    def test_lines_of_modes(self):
        """Outcomes of one arm in several modes have a line each, from idle to many processes."""
        outcomes = [outcome("lite none", [200] * 3, 1), outcome("lite none x8", [300] * 3, 8), outcome("lite none idle", [10] * 3, 0),
                    outcome("lite fair", [20] * 3, 1)]
        plot, = (plot for plot in bench_plots.PLOTS if plot.name == "qos-write")
        text = bench_plots.script(plot, document("qos-write", 64, outcomes)["results"])
        self.assertIn("0 10 10 10\n1 200 200 200\n8 300 300 300\nend", text)
        self.assertIn("title 'lite none'", text)
        self.assertIn("title 'lite fair'", text)

    def test_nothing_to_draw(self):
        """Without results there are no plots."""
        with tempfile.TemporaryDirectory() as name:
            self.assertEqual(bench_plots.draw({}, pathlib.Path(name)), [])


if __name__ == "__main__":
    unittest.main()
