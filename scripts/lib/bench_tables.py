# SPDX-License-Identifier: GPL-2.0
"""Makes the report of `make bench`, and the figures of Documentation/performance.rst, from the results of lite-perf."""

import re

import bench_targets

BEGIN = ".. Figures: `make bench BENCH_ARGS=--write` replaces what follows, up to the end of them."
END = ".. End of the figures."

_TITLES = {
    "read-latency": "READ, one call after the other",
    "write-latency": "WRITE, one call after the other",
    "fetch-add": "FETCH-ADD, one call after the other",
    "read-rate": "READ of few bytes, so many under way",
    "write-rate": "WRITE of few bytes, so many under way",
    "read-throughput": "READ of many bytes, so many under way",
    "write-throughput": "WRITE of many bytes, so many under way",
    "read-threads": "READ by several threads",
    "read-processes": "READ by several processes",
    "rpc-latency": "Echo by a program, one after the other",
    "rpc-rate": "Echo by a program, several threads at once",
    "map": "Making 1 MB usable",
    "connect": "A new process until its first remote bytes",
    "lmrs": "READ of one of so many regions of 4 KB",
    "lmr-size": "READ somewhere in a region of so many bytes",
    "file": "A file from the page cache to memory of the other machine",
    "file-cold": "A file from the disk to memory of the other machine",
    "file-receive": "Memory of the other machine to a file in the page cache",
    "qos-read": "Urgent READ beside WRITEs of 2 MB, and idle",
    "qos-write": "Urgent WRITE beside WRITEs of 2 MB, and idle",
    "qos-rpc": "Urgent echo beside WRITEs of 2 MB, and idle",
    "qos-share": "Share of a high class beside a low one, WRITEs of 2 MB",
}
# Columns of figures other than samples.
_FACTS = {"stream_alone": "Stream alone, MB/s", "stream_beside": "beside", "high_alone": "High alone, MB/s", "high": "beside",
          "low": "Low, MB/s", "cpu_here": "CPU here, ns/B", "cpu_there": "there", "held": "Held here"}
# Measured again, for longer, only for the targets.
_PROMISES_ONLY = ("small",)


def _size(count):
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B"


def _number(value):
    """Three significant digits, but all digits before the point."""
    return f"{value:.{3 if value < 1 else 2 if value < 10 else 1 if value < 1000 else 0}f}"


def _fact(outcome, name):
    value = outcome.get("facts", {}).get(name)
    if value is None:
        return "-"
    return _size(round(value)) if name == "held" else _number(value)


def _table(head, rows):
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    line = " ".join("=" * width for width in widths)
    text = [" ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in (head, *rows)]
    return [line, text[0], line, *text[1:], line]


def _heading(text, mark):
    return ["", text, mark * len(text), ""]


def _ratio(outcome, baseline):
    ratio = outcome.get("ratio")
    if not ratio:
        return "1"
    digits = 2 if ratio["value"] >= 0.1 else 4
    of = "" if ratio["against"] == baseline else f" of {ratio['against']}"
    return f"{ratio['value']:.{digits}f} ({ratio['low']:.{digits}f} .. {ratio['high']:.{digits}f}){of}"


def _row(result, outcome, facts):
    tail = []
    if result["better"] == "lower":
        tail = [_number(outcome[name]) if name in outcome else "-" for name in ("p99", "p999")]
    return [_size(result["size"]), outcome["label"], _number(outcome["median"]), *tail, _ratio(outcome, result["baseline"]),
            *(_fact(outcome, name) for name in facts)]


def _workload(name, results):
    known = {fact for result in results for outcome in result["outcomes"] for fact in outcome.get("facts", {})}
    facts = [fact for fact in _FACTS if fact in known]
    head = ["Size", "Arm", f"Median, {results[0]['unit']}", *(["p99", "p99.9"] if results[0]["better"] == "lower" else []),
            f"Against {results[0]['baseline']}", *(_FACTS[fact] for fact in facts)]
    rows = [_row(result, outcome, facts) for result in results for outcome in result["outcomes"]]
    return [*_heading(_TITLES.get(name, name), "-"), *_table(head, rows)]


def _limit(verdict):
    return f"{'<=' if verdict.at_most else '>='} {verdict.limit:.2f}"


def _seen(verdict):
    if verdict.value is None:
        return "-"
    return f"{verdict.value:.3f} ({verdict.low:.3f} .. {verdict.high:.3f})"


def _targets(documents):
    rows = [[verdict.what, verdict.over or "-", _limit(verdict), _seen(verdict), verdict.text()]
            for verdict in bench_targets.verdicts(documents)]
    return _table(["Promise", "Outcomes", "Ratio", "Seen", "Verdict"], rows)


def _queue_pairs(documents):
    seen = bench_targets.queue_pairs(documents)
    if not seen:
        return []
    rows = [[arm, str(count), str(made)] for arm, count, made in seen]
    return [*_heading("Queue pairs that processes add", "-"), *_table(["Arm", "Processes", "Queue pairs"], rows)]


def targets_text(documents):
    """The targets and their verdicts, for a terminal."""
    return "\n".join(_targets(documents))


def render(documents):
    """reStructuredText of {part: document of lite-perf}."""
    first = next(iter(documents.values()), None)
    if not first:
        return "Nothing was measured.\n"
    days = sorted({document["measured"] for document in documents.values() if "measured" in document})
    lines = [f"Linux {first['kernel']}, two machines with {first['cpus']} CPU{'s' * (first['cpus'] > 1)} each"
             f"{', ' + ' to '.join(dict.fromkeys((days[0], days[-1]))) if days else ''}."]
    lines += [*_heading("Promises", "-"), *_targets(documents), *_queue_pairs(documents)]
    results = [result for part, document in documents.items() if part not in _PROMISES_ONLY for result in document["results"]]
    for workload in dict.fromkeys(result["workload"] for result in results):
        lines += _workload(workload, [result for result in results if result["workload"] == workload])
    return "\n".join(lines) + "\n"


def images(names):
    """reStructuredText of plots in a directory beside the page."""
    if not names:
        return ""
    return "\n".join([*_heading("Plots", "-"), "A point is a median, its bar reaches from the lowest to the highest of a round.", "",
                      *(f".. image:: performance/{name}" for name in names)]) + "\n"


def replace(page, text):
    """The page with new figures in place of the old ones."""
    pattern = re.escape(BEGIN) + r"\n.*?" + re.escape(END)
    if not re.search(pattern, page, re.S):
        raise ValueError("the page has no place for figures")
    figures = f"{BEGIN}\n\n{text}\n{END}"
    return re.sub(pattern, lambda _: figures, page, count=1, flags=re.S)
