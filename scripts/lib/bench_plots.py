# SPDX-License-Identifier: GPL-2.0
"""Plots of what lite-perf has measured: SVG, drawn by gnuplot."""

import dataclasses
import re
import subprocess


@dataclasses.dataclass(frozen=True)
class Plot:
    """A file, and what is in it. A line is an arm."""
    name: str
    title: str
    parts: tuple
    workload: str
    x_label: str
    x_of: object     # from a result and one of its outcomes
    logarithmic: bool = True
    from_zero: bool = False


def _size(result, _):
    return result["size"]


def _width(_, outcome):
    return outcome["width"]


def _count(_, outcome):
    """"lite of 100"."""
    return int(outcome["label"].split()[-1])


def _bytes(_, outcome):
    """"lite in 64 MB", in MB."""
    number, unit = outcome["label"].split()[-2:]
    return int(number) * {"KB": 1 / 1024, "MB": 1, "GB": 1024}[unit]


PLOTS = (
    Plot("read-latency", "READ, one call after the other", ("latency", "large"), "read-latency", "bytes", _size),
    Plot("write-latency", "WRITE, one call after the other", ("latency", "large"), "write-latency", "bytes", _size),
    Plot("read-rate", "READ of 64 B", ("rate",), "read-rate", "under way", _width),
    Plot("write-rate", "WRITE of 64 B", ("rate",), "write-rate", "under way", _width),
    Plot("rpc-latency", "Echo by a program", ("rpc",), "rpc-latency", "bytes", _size),
    Plot("rpc-threads", "Echoes of 64 B by a program", ("rpc-threads",), "rpc-rate", "threads", _width, from_zero=True),
    Plot("processes", "READ of 64 B by several processes", ("processes",), "read-processes", "processes", _width, from_zero=True),
    Plot("lmrs", "READ of 64 B of one of many regions", ("lmrs",), "lmrs", "regions of 4 KB", _count, from_zero=True),
    Plot("lmr-size", "READ of 64 B in a large region", ("lmr-size",), "lmr-size", "MB", _bytes, from_zero=True),
)


def _lines(plot, results):
    """{arm: [(x, median, lowest and highest median of a round)]}."""
    lines = {}
    for result in results:
        for outcome in result["outcomes"]:
            medians = outcome["round_medians"]
            lines.setdefault(outcome["arm"], []).append((plot.x_of(result, outcome), outcome["median"], min(medians),
                                                         max(medians)))
    return lines


def script(plot, results):
    """What gnuplot is to be told; the picture goes to its standard output."""
    lines = _lines(plot, results)
    text = ["set terminal svg size 720,440 dynamic enhanced font 'sans-serif,13' background rgb 'white'",
            f"set title '{plot.title}'", f"set xlabel '{plot.x_label}'", f"set ylabel '{results[0]['unit']}'",
            "set grid", "set key outside right", "set border 3", "set tics nomirror"]
    if plot.logarithmic:
        text.append("set logscale x 2" if plot.x_of is not _count else "set logscale x 10")
    # Where it is said that something does not grow, the axis begins at nothing.
    text.append("set yrange [0:]" if plot.from_zero else "set logscale y 10")
    curves = []
    for number, (arm, points) in enumerate(lines.items(), 1):
        text += [f"$arm{number} << end", *(" ".join(f"{value:.6g}" for value in point) for point in points), "end"]
        curves.append(f"$arm{number} using 1:2:3:4 with yerrorlines linetype {number} pointtype 7 pointsize 0.5 title '{arm}'")
    text.append("plot " + ", ".join(curves))
    return "\n".join(text) + "\n"


def draw(documents, directory):
    """Draws what was measured; returns the files."""
    directory.mkdir(parents=True, exist_ok=True)
    made = []
    for plot in PLOTS:
        results = [result for part in plot.parts for result in documents.get(part, {}).get("results", [])
                   if result["workload"] == plot.workload]
        if not results:
            continue
        picture = subprocess.run(["gnuplot"], input=script(plot, results), stdout=subprocess.PIPE, text=True, check=True).stdout
        target = directory / f"{plot.name}.svg"
        # The same figures make the same file.
        target.write_text(re.sub(r"[ \t]+$", "", picture, flags=re.M))
        made.append(target)
    return made
