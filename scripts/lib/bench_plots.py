# SPDX-License-Identifier: GPL-2.0
"""Plots of the results of lite-perf: SVG, drawn by gnuplot."""

import dataclasses
import re
import subprocess


def _arm(outcome):
    return outcome["arm"]


@dataclasses.dataclass(frozen=True)
class Plot:
    """A file with a plot, with one line per arm, or what line_of() tells of an outcome."""
    name: str
    title: str
    parts: tuple
    workload: str
    x_label: str
    x_of: object     # function of a result and one of its outcomes
    logarithmic: bool = True
    from_zero: bool = False
    line_of: object = _arm      # function of an outcome


def _size(result, _):
    return result["size"]


def _width(_, outcome):
    return outcome["width"]


def _count(_, outcome):
    """100 for "lite of 100"."""
    return int(outcome["label"].split()[-1])


def _bytes(_, outcome):
    """64 for "lite in 64 MB", in MB."""
    number, unit = outcome["label"].split()[-2:]
    return int(number) * {"KB": 1 / 1024, "MB": 1, "GB": 1024}[unit]


def _pages(_, outcome):
    """256 for "lite 2x256"."""
    return int(outcome["label"].split("x")[-1])


def _mode(outcome):
    """"lite fair" for "lite fair x8" and "lite fair idle"."""
    return re.sub(" (idle|x[0-9]+)$", "", outcome["label"])


def _sets(outcome):
    """"6 at a time" for "lite 6x256", "read-write" for "read-write 1x256"."""
    way = outcome["label"].split()[0]
    return f"{outcome['width']} at a time" if way == "lite" else way


PLOTS = (
    Plot("read-latency", "READ, one call after the other", ("latency", "large"), "read-latency", "bytes", _size),
    Plot("write-latency", "WRITE, one call after the other", ("latency", "large"), "write-latency", "bytes", _size),
    Plot("read-rate", "READ of 64 B", ("rate",), "read-rate", "under way", _width),
    Plot("write-rate", "WRITE of 64 B", ("rate",), "write-rate", "under way", _width),
    Plot("rpc-latency", "Echo by a program", ("rpc",), "rpc-latency", "bytes", _size),
    Plot("rpc-threads", "Echoes of 64 B by a program", ("rpc-threads",), "rpc-rate", "threads", _width, from_zero=True),
    Plot("processes", "READ of 64 B by several processes", ("processes",), "read-processes", "processes", _width, from_zero=True),
    Plot("lmrs", "READ of 64 B of one of many regions", ("lmrs",), "lmrs", "regions of 4 KB", _count, from_zero=True),
    *(Plot(f"qos-{op}", f"Urgent {name} of 64 B beside a stream", (f"qos-{op}",), f"qos-{op}", "processes that stream (0: idle)",
           _width, logarithmic=False, line_of=_mode) for op, name in (("read", "READ"), ("write", "WRITE"), ("rpc", "echo"))),
    Plot("qos-share", "What a high class gets", ("qos-share",), "qos-share", "processes that stream in a low class", _width,
         logarithmic=False, from_zero=True, line_of=_mode),
    Plot("lmr-size", "READ of 64 B in a large region", ("lmr-size",), "lmr-size", "MB", _bytes, from_zero=True),
    Plot("file", "A file to memory of the other machine", ("file", "file-large"), "file", "bytes", _size,
         line_of=lambda outcome: outcome["label"]),
    Plot("file-sets", "lite\\_sendfile() of 4 MB: sets at a time", ("file-sets",), "file", "pages of a set", _pages, from_zero=True,
         line_of=_sets),
)


def _lines(plot, results):
    """{line: [(x, median, lowest and highest median of a round)]}, in the order of x."""
    lines = {}
    for result in results:
        for outcome in result["outcomes"]:
            medians = outcome["round_medians"]
            lines.setdefault(plot.line_of(outcome), []).append((plot.x_of(result, outcome), outcome["median"], min(medians),
                                                         max(medians)))
    return {name: sorted(points) for name, points in lines.items()}


def script(plot, results):
    """The commands for gnuplot, which writes the picture to its standard output."""
    lines = _lines(plot, results)
    text = ["set terminal svg size 720,440 dynamic enhanced font 'sans-serif,13' background rgb 'white'",
            f"set title '{plot.title}'", f"set xlabel '{plot.x_label}'", f"set ylabel '{results[0]['unit']}'",
            "set grid", "set key outside right", "set border 3", "set tics nomirror"]
    if plot.logarithmic:
        text.append("set logscale x 2" if plot.x_of is not _count else "set logscale x 10")
    # A plot that is to show that a value does not grow begins at zero.
    text.append("set yrange [0:]" if plot.from_zero else "set logscale y 10")
    curves = []
    for number, (name, points) in enumerate(lines.items(), 1):
        text += [f"$arm{number} << end", *(" ".join(f"{value:.6g}" for value in point) for point in points), "end"]
        curves.append(f"$arm{number} using 1:2:3:4 with yerrorlines linetype {number} pointtype 7 pointsize 0.5 title '{name}'")
    text.append("plot " + ", ".join(curves))
    return "\n".join(text) + "\n"


def draw(documents, directory):
    """Draws the plots that have results; returns the files."""
    directory.mkdir(parents=True, exist_ok=True)
    made = []
    for plot in PLOTS:
        results = [result for part in plot.parts for result in documents.get(part, {}).get("results", [])
                   if result["workload"] == plot.workload]
        if not results:
            continue
        picture = subprocess.run(["gnuplot"], input=script(plot, results), stdout=subprocess.PIPE, text=True, check=True).stdout
        target = directory / f"{plot.name}.svg"
        # Without trailing blanks: scripts/lint refuses them.
        target.write_text(re.sub(r"[ \t]+$", "", picture, flags=re.M))
        made.append(target)
    return made
