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
    """As lite-perf writes them."""
    arm = label.split()[0]
    return {"arm": arm, "label": label, "width": width, "median": sorted(medians)[len(medians) // 2], "samples": 900,
            "round_medians": medians, **more}


def document(workload, size, outcomes, better="lower", unit="us"):
    """What lite-perf writes about one workload."""
    return {"kernel": "6.1.0", "cpus": 1, "arms": ["lite", "verbs"], "rounds": 3, "measured": "2026-01-02",
            "results": [{"workload": workload, "size": size, "unit": unit, "better": better, "baseline": "verbs",
                         "outcomes": outcomes}]}


def verdict_of(documents, what):
    """The one about that."""
    found, = (verdict for verdict in bench_targets.verdicts(documents) if what in verdict.what)
    return found


class Verdicts(unittest.TestCase):
    """Promises."""

    def small(self, lite, verbs=(100, 102, 98)):
        """About reads of 64 B."""
        return {"small": document("read-latency", 64, [outcome("lite", list(lite)), outcome("verbs", list(verbs))])}

    def test_met(self):
        """Clearly."""
        verdict = verdict_of(self.small((80, 81, 79)), "64 B read, user level")
        self.assertAlmostEqual(verdict.value, 0.8)
        self.assertTrue(verdict.met)
        self.assertEqual(verdict.text(), "met")
        self.assertLessEqual(verdict.low, verdict.value)
        self.assertLessEqual(verdict.value, verdict.high)

    def test_missed(self):
        """By how much is said."""
        self.assertEqual(verdict_of(self.small((99, 99, 99), (100, 100, 100)), "64 B read, user").text(), "missed by 10 %")

    def test_noise(self):
        """An interval with the limit in it decides nothing."""
        self.assertEqual(verdict_of(self.small((60, 89, 120)), "64 B read, user").text(), "met, within the noise")
        self.assertIn("within the noise", verdict_of(self.small((60, 95, 120)), "64 B read, user").text())

    def test_far(self):
        """Percents of some hundred say little."""
        documents = {"setup": document("connect", 8, [outcome("lite", [20, 20, 20]), outcome("verbs", [100, 100, 100])])}
        self.assertEqual(verdict_of(documents, "first remote byte").text(), "missed by 4.0 x")

    def test_lite_perf_has_compared_them(self):
        """Then its interval it is."""
        ratio = {"against": "verbs", "value": 0.7, "low": 0.6, "high": 0.8}
        documents = {"small": document("read-latency", 64, [outcome("lite", [99] * 3, ratio=ratio), outcome("verbs", [98] * 3)])}
        verdict = verdict_of(documents, "64 B read, user")
        self.assertEqual((verdict.value, verdict.low, verdict.high), (0.7, 0.6, 0.8))

    def test_best_of_windows(self):
        """Of several ways to use an arm the best counts, and any arm of LITE's at user level."""
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
        """The most against the least, whatever is between them."""
        outcomes = [outcome(f"lite of {n}", [value] * 3) for n, value in ((1, 100), (100, 200), (10000, 104))]
        documents = {"lmrs": document("lmrs", 64, outcomes)}
        self.assertEqual(verdict_of(documents, "most LMRs").over, "lite of 10000 / lite of 1")
        self.assertEqual(verdict_of(documents, "most LMRs").text(), "met")

    def test_not_measured(self):
        """Is said, too."""
        self.assertEqual({verdict.text() for verdict in bench_targets.verdicts({})}, {"not measured"})

    def test_same_figures_same_interval(self):
        """No luck in it."""
        documents = self.small((80, 95, 90))
        self.assertEqual(bench_targets.verdicts(documents), bench_targets.verdicts(documents))


class Tables(unittest.TestCase):
    """reStructuredText."""

    def documents(self):
        """A little of everything."""
        ratio = {"against": "verbs", "value": 0.9, "low": 0.8, "high": 1.0}
        return {
            "latency": document("read-latency", 4096, [outcome("lite", [90] * 3, p99=200.0, p999=900.0, ratio=ratio),
                                                       outcome("verbs", [100] * 3, p99=150.0)]),
            "processes": document("read-processes", 64,
                                  [outcome("lite x8", [5000] * 3, 8, facts={"queue_pairs_made": 0.0}),
                                   outcome("verbs x8", [4000] * 3, 8, facts={"queue_pairs_made": 8.0})], "higher", "calls/s"),
        }

    def test_render(self):
        """All that was measured is there."""
        text = bench_tables.render(self.documents())
        for wanted in ("Linux 6.1.0, two machines with 1 CPU each, 2026-01-02.", "0.90 (0.80 .. 1.00)", "READ by several processes",
                       "Queue pairs that processes add", "4 KB", "not measured"):
            self.assertIn(wanted, text)
        # Every table is closed, and all of its lines of "=" have the same length.
        for block in text.split("\n\n"):
            lines = [line for line in block.split("\n") if line.startswith("=")]
            self.assertIn(len(lines), (0, 3))
            self.assertLessEqual(len(set(lines)), 1)

    def test_images(self):
        """Those that were drawn."""
        self.assertEqual(bench_tables.images([]), "")
        self.assertIn("\n.. image:: performance/lmrs.svg\n", bench_tables.images(["rate.svg", "lmrs.svg"]))

    def test_nothing(self):
        """No figures, no tables."""
        self.assertEqual(bench_tables.render({}), "Nothing was measured.\n")

    def test_replace(self):
        """Only what is between the marks."""
        page = f"before\n{bench_tables.BEGIN}\n\nold\n\n{bench_tables.END}\nafter\n"
        new = bench_tables.replace(page, "new \\1 figures\n")
        self.assertIn("new \\1 figures", new)
        self.assertNotIn("old", new)
        self.assertTrue(new.startswith("before\n") and new.endswith("after\n"))
        self.assertEqual(bench_tables.replace(new, "new \\1 figures\n"), new)
        with self.assertRaises(ValueError):
            bench_tables.replace("no marks", "new")

    def test_the_page_has_the_marks(self):
        """Else --write would fail after ten minutes."""
        bench_tables.replace((ROOT / "Documentation/performance.rst").read_text(), "")


class Parts(unittest.TestCase):
    """What is measured."""

    def test_sizes_fit(self):
        """As far as the memory goes, and no further."""
        self.assertEqual(bench_parts.lmr_sizes(2048), [1, 64, 1024])
        self.assertEqual(bench_parts.lmr_sizes(1024), [])
        self.assertEqual(bench_parts.lmr_sizes(10752)[-1], 8192)
        for memory in range(1100, 12000, 100):
            self.assertLess(sum(bench_parts.lmr_sizes(memory)), memory)

    def test_load(self):
        """Parts that are there, in their order."""
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            for part in ("rpc", "latency", "other"):
                (directory / f"{part}.json").write_text(json.dumps({"part": part}))
            self.assertEqual(list(bench_parts.load(directory)), ["latency", "rpc"])


class Plots(unittest.TestCase):
    """What gnuplot is told."""

    def test_script(self):
        """A line for each arm, with its points."""
        outcomes = [outcome(f"{arm} of {n}", [100, 110, 105]) for arm in ("lite", "verbs") for n in (1, 1000)]
        plot, = (plot for plot in bench_plots.PLOTS if plot.name == "lmrs")
        text = bench_plots.script(plot, document("lmrs", 64, outcomes)["results"])
        self.assertIn("1000 105 100 110", text)
        self.assertEqual(text.count("title 'lite'"), 1)
        self.assertEqual(text.count("title 'verbs'"), 1)
        self.assertIn("set yrange [0:]", text)

    def test_nothing_to_draw(self):
        """Then nothing is."""
        with tempfile.TemporaryDirectory() as name:
            self.assertEqual(bench_plots.draw({}, pathlib.Path(name)), [])


if __name__ == "__main__":
    unittest.main()
