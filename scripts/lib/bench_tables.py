# SPDX-License-Identifier: GPL-2.0
"""The tables of Documentation/performance.rst, from what lite-perf has measured."""

import re

BEGIN = ".. Figures: `make bench` replaces what follows, up to the end of them."
END = ".. End of the figures."

_TITLES = {
    "read-latency": "READ, one call after the other",
    "write-latency": "WRITE, one call after the other",
    "fetch-add": "FETCH-ADD, one call after the other",
    "read-throughput": "READ, throughput",
    "write-throughput": "WRITE, throughput",
    "rpc-latency": "Echo by a program, one after the other",
    "rpc-rate": "Echo by a program, several callers at once",
}


def _size(count):
    for unit, name in ((1 << 20, "MB"), (1 << 10, "KB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B"


def _number(value):
    """Three significant digits, but never fewer than what stands before the point."""
    return f"{value:.{3 if value < 1 else 2 if value < 10 else 1 if value < 1000 else 0}f}"


def _row(result, outcome):
    ratio = outcome.get("ratio")
    return [_size(result["size"]), outcome["label"], _number(outcome["median"]),
            *([_number(outcome["p99"]) if "p99" in outcome else "-"] if result["better"] == "lower" else []),
            f"{ratio['value']:.2f} ({ratio['low']:.2f} .. {ratio['high']:.2f})" if ratio else "1"]


def _table(head, rows):
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    line = " ".join("=" * width for width in widths)
    return [line, *(" ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in (head, )), line,
            *(" ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows), line]


def render(document):
    """reStructuredText of all results in a JSON document that lite-perf has written."""
    lines = [f"Linux {document['kernel']}, {document['cpus']} CPU; {', '.join(document['arms'])} in turns, "
             f"{document['rounds']} rounds."]
    for workload in dict.fromkeys(result["workload"] for result in document["results"]):
        results = [result for result in document["results"] if result["workload"] == workload]
        unit = results[0]["unit"]
        lower = results[0]["better"] == "lower"
        head = ["Size", "Arm", f"Median, {unit}", *(["p99"] if lower else []), f"Against {results[0]['baseline']}"]
        title = _TITLES.get(workload, workload)
        rows = [_row(result, outcome) for result in results for outcome in result["outcomes"]]
        lines += ["", title, "-" * len(title), "", *_table(head, rows)]
    return "\n".join(lines) + "\n"


def replace(page, document):
    """The page with new figures in the place of the old ones."""
    pattern = re.escape(BEGIN) + r"\n.*?" + re.escape(END)
    if not re.search(pattern, page, re.S):
        raise ValueError("the page has no place for figures")
    figures = f"{BEGIN}\n\n{render(document)}\n{END}"
    return re.sub(pattern, lambda _: figures, page, count=1, flags=re.S)
