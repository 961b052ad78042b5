# SPDX-License-Identifier: GPL-2.0
"""Compares LITE's targets with the results.

Every target is a ratio of two medians of one run. Its interval is lite-perf's, if lite-perf compared these two arms. Else
it comes from resampling the rounds: the same rounds for both arms, each represented by its median.
"""

import dataclasses
import operator
import random
import statistics

_RESAMPLES = 1000


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A target and its result."""
    what: str
    over: str        # which outcomes were compared
    limit: float
    at_most: bool    # else at least
    value: float = None   # None: not measured
    low: float = None
    high: float = None

    @property
    def met(self):
        """Whether the ratio of the medians meets the target."""
        return self.value <= self.limit if self.at_most else self.value >= self.limit

    def text(self):
        """"met", "met, within the noise", "missed by 12 %", "not measured"."""
        if self.value is None:
            return "not measured"
        # If the interval contains the limit, another run might decide otherwise.
        open_ = self.low <= self.limit <= self.high
        if self.met:
            return "met, within the noise" if open_ else "met"
        if self.at_most and self.value > 2 * self.limit:
            by = f"{self.value / self.limit:.1f} x"
        else:
            by = f"{abs(self.value / self.limit - 1):.0%}".replace("%", " %")
        return f"missed by {by}" + (", within the noise" if open_ else "")


def ratio(over, under):
    """(value, low, high) of the ratio of the medians of two outcomes of one result."""
    known = over.get("ratio")
    if known and known["against"] == under["label"]:
        return known["value"], known["low"], known["high"]
    rounds = range(len(over["round_medians"]))
    dice = random.Random(1)
    ratios = []
    for _ in range(_RESAMPLES):
        chosen = dice.choices(rounds, k=len(rounds))
        ratios.append(statistics.median(over["round_medians"][i] for i in chosen)
                      / statistics.median(under["round_medians"][i] for i in chosen))
    ratios.sort()
    return over["median"] / under["median"], ratios[round(_RESAMPLES * 0.025)], ratios[round(_RESAMPLES * 0.975) - 1]


def _outcomes(documents, part, workload, size=None):
    """The outcomes of one result; none if it was not measured."""
    for result in documents.get(part, {}).get("results", []):
        if result["workload"] == workload and size in (None, result["size"]):
            return result["outcomes"]
    return []


def _labelled(outcomes, label):
    return next((outcome for outcome in outcomes if outcome["label"] == label), None)


def _best(outcomes, wanted):
    """The outcome with the highest median among the wanted arms; for rates."""
    return max((outcome for outcome in outcomes if wanted(outcome["arm"])), key=lambda outcome: outcome["median"], default=None)


def _is_lite(arm):
    """An arm of LITE at user level, by any way into the kernel."""
    return arm == "lite" or arm.startswith("lite-")


def _is_native(arm):
    """An arm of native verbs at user level, with or without completion events."""
    return arm == "verbs" or arm.startswith("verbs-")


def _is_native_call(arm):
    """An arm that makes calls by native verbs."""
    return arm in ("write-imm", "send")


def _verdict(what, over, under, limit, at_most):
    if not over or not under:
        return Verdict(what, "", limit, at_most)
    return Verdict(what, f"{over['label']} / {under['label']}", limit, at_most, *ratio(over, under))


def _way(name):
    """Whether an outcome of a workload with files is of this way to move one, for any sets."""
    return lambda outcome: outcome["label"].split()[0] == name


def _fastest(outcomes, wanted):
    return max(filter(wanted, outcomes), key=lambda outcome: outcome["median"], default=None)


def _processors(what, outcomes, limit):
    """Both machines' processor time per byte of LITE, beside that of a read into registered memory. There is no interval: rounds are
    not told apart."""
    lite, static = (_fastest(outcomes, _way(name)) for name in ("lite", "static"))
    if not lite or not static or "cpu_there" not in lite["facts"]:
        return Verdict(what, "", limit, True)
    value = operator.truediv(*(outcome["facts"]["cpu_here"] + outcome["facts"]["cpu_there"] for outcome in (lite, static)))
    return Verdict(what, f"{lite['label']} / {static['label']}", limit, True, value, value, value)


def _files(documents):
    """The targets for files."""
    found = []
    for part, size, text in (("file", 1 << 20, "1 MB"), ("file", 8 << 20, "8 MB"), ("file-large", 256 << 20, "256 MB")):
        outcomes = _outcomes(documents, part, "file", size)
        lite = _fastest(outcomes, _way("lite"))
        for other, what, limit in (("register", "mapping and registering it", 2.0), ("static", "read and native write", 1.1)):
            found.append(_verdict(f"file of {text}, throughput beside {what}", lite, _fastest(outcomes, _way(other)), limit, False))
        found.append(_processors(f"file of {text}, processors of both beside read and native write", outcomes, 0.8))
    outcomes = _outcomes(documents, "file", "file", 4 << 10)
    found.append(_verdict("file of 4 KB, throughput beside read and lite_write()",
                          *(_fastest(outcomes, _way(name)) for name in ("lite", "read-write")), 1.0, False))
    outcomes = _outcomes(documents, "file-sets", "file")
    found.append(_verdict("file in sets of 16 pages, two at a time beside one",
                          *(_labelled(outcomes, label) for label in ("lite 2x16", "lite 1x16")), 1.1, False))
    outcomes = _outcomes(documents, "file-more", "file-receive", 4 << 20)
    found.append(_verdict("file of 4 MB, received, throughput beside native read and write",
                          *(_fastest(outcomes, _way(name)) for name in ("lite", "static")), 1.1, False))
    found.append(_processors("file of 4 MB, received, processors of both beside native read and write", outcomes, 0.8))
    return found


def _callers(documents):
    """The targets for calls by several threads, beside the better of the native ways, and TCP."""
    outcomes = _outcomes(documents, "rpc-threads", "rpc-rate", 64)
    found = []
    for count in (4, 16):
        equal = [outcome for outcome in outcomes if outcome["width"] == count]
        found.append(_verdict(f"RPC rate of {count} threads beside native's best", _labelled(equal, f"lite x{count}"),
                              _best(equal, _is_native_call), 1.3, False))
    found.append(_verdict("RPC rate of 16 threads beside TCP", *(_labelled(outcomes, label) for label in ("lite x16", "tcp x16")),
                          0.8, False))
    return found


def _largest(outcomes, arm="lite"):
    own = [outcome for outcome in outcomes if outcome["arm"] == arm]
    return (own[-1], own[0]) if own else (None, None)


def verdicts(documents):
    """The verdicts on all targets, measured or not."""
    found = []

    def one(what, part, workload, labels, limit, size=None, at_most=True):
        outcomes = _outcomes(documents, part, workload, size)
        found.append(_verdict(what, *(_labelled(outcomes, label) for label in labels), limit, at_most))

    for op in ("read", "write"):
        one(f"64 B {op}, user level, beside native verbs", "small", f"{op}-latency", ("lite", "verbs"), 0.90, 64)
    for op in ("read", "write"):
        one(f"64 B {op}, kernel level, beside raw kernel verbs", "small", f"{op}-latency", ("kernel-lite", "kernel-verbs"), 1.03,
            64)
    one("RPC of 64 B beside two writes with immediate", "rpc", "rpc-latency", ("lite", "write-imm"), 0.80, 64)
    for op in ("read", "write"):
        outcomes = _outcomes(documents, "rate", f"{op}-rate", 64)
        found.append(_verdict(f"rate of 64 B {op}s, windows up to 64, best beside native's best", _best(outcomes, _is_lite),
                              _best(outcomes, _is_native), 2.0, False))
    for op in ("read", "write"):
        for size, text in ((64 << 10, "64 KB"), (1 << 20, "1 MB")):
            outcomes = _outcomes(documents, "throughput", f"{op}-throughput", size)
            found.append(_verdict(f"throughput of {text} {op}s, best beside native's best", _best(outcomes, _is_lite),
                                  _best(outcomes, _is_native), 1.0, False))
    one("1 MB opened by name for the first time, beside registering it and sending its key", "setup", "map", ("lite, first", "verbs"),
        1.0)
    one("1 MB opened by name again, beside registering it and sending its key", "setup", "map", ("lite", "verbs"), 0.01)
    one("new process to first remote byte, beside RDMA CM", "setup", "connect", ("lite", "verbs"), 0.05)
    for what, part in (("most LMRs beside one", "lmrs"), ("largest LMR beside the smallest", "lmr-size")):
        found.append(_verdict(f"64 B read, {what}", *_largest(_outcomes(documents, part, part)), 1.05, True))
    one("RPC rate of two threads beside two-sided send and receive", "rpc-threads", "rpc-rate", ("lite x2", "send x2"), 1.0,
        at_most=False)
    found += _callers(documents)
    one("urgent 64 B write beside a stream, beside native verbs in one queue pair", "qos-write", "qos-write", ("lite fair", "verbs"),
        0.05)
    one("64 processes together beside 8", "processes", "read-processes", ("lite x64", "lite x8"), 0.9, at_most=False)
    return found + _files(documents)


def queue_pairs(documents):
    """[(arm, processes, queue pairs that they made)]."""
    return [(outcome["arm"], outcome["width"], round(outcome["facts"]["queue_pairs_made"]))
            for outcome in _outcomes(documents, "processes", "read-processes") if "facts" in outcome]
