#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check that the rooms (folders) of the kernel module only call and include downwards: lint's check of layers."""

import collections
import os
import re
import sys

# From the lowest to the highest; Documentation/architecture.rst shows them, and says why. A room and the rooms within it
# share a header (memory/memory.h, function/service.h).
ROOMS = """
    core wire fabric kcall cluster
    memory/store memory/arena memory/names memory/home memory/unpinned memory/mapper memory/handle memory/io memory/memop
    memory/batch memory/file memory
    sync function/client function/server function interface
""".split()
# Files of this room are also called by the rooms within it.
SHARED = "function"
# Files in no room are above core and below all others, but for the one that starts the module.
TOP = "kernel/main.c"

RANK = {room: i for i, room in enumerate(ROOMS)}
DIAGRAM = "Documentation/architecture.rst"


def room_of(path):
    if path == TOP:
        return "main"
    return os.path.dirname(path).removeprefix("kernel").lstrip("/")


def is_above(room, other):
    """May the other room not know this one?"""
    rank = {**RANK, "": 0.5, "main": len(ROOMS)}
    return rank[room] > rank[other]


def is_within(room, other):
    return (room + "/").startswith(other + "/")


def blank(match):
    """As many lines, without what is in them."""
    return "\n" * match.group(0).count("\n")


def read(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    # A trace point may have the name of a function.
    text = re.sub(r"\b[A-Z_]*EVENT[A-Z_]*\((?:\w+,)?\s*\w+", blank, text)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def functions(text):
    """Non-static functions: (name, defined), for each definition or declaration."""
    for m in re.finditer(r"^(?!static\b|typedef\b)[a-z_][\w\s*]*?\b(\w+)\(", text, re.M):
        depth, at = 1, m.end()
        while depth and at < len(text):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        after = re.match(r"(?:\s|__\w+(?:\([^)]*\))?)*([{;])", text[at:])
        if after:
            yield m.group(1), after.group(1) == "{"


def symbols(texts):
    """Where each function, inline function and macro with arguments is defined; and faults."""
    where, declared, faults = {}, {}, []
    for path, text in texts.items():
        for name, defined in functions(text):
            (where if defined else declared).setdefault(name, path)
        if path.endswith(".h"):
            for pattern in (r"^static (?:inline|__always_inline)\b[^;{(]*?\b(lite_\w+)\(", r"^#define (lite_\w+)\("):
                # Only lite_ names: for native tests, core has stand-ins for some of the kernel's.
                for m in re.finditer(pattern, text, re.M | re.I):
                    where.setdefault(m.group(1), path)
    # What is declared must have been found: otherwise the search has missed a definition.
    for name in sorted(declared.keys() - where.keys()):
        faults.append(f"{declared[name]}: {name}() is declared, but no file of the module defines it")
    return where, faults


def calls(texts):
    where, faults = symbols(texts)
    found = collections.Counter()
    for path, text in texts.items():
        room = room_of(path)
        for m in re.finditer(r"(?<![\w.>])(?<!struct )(?<!union )(?<!enum )\w+", text):
            other = where.get(m.group(0))
            if not other or other == path:
                continue
            above = room_of(other)
            if is_above(above, room) and not (above == SHARED and is_within(room, above)):
                line = text.count("\n", 0, m.start()) + 1
                found[f"{path}:{line}: {room or 'a file in no room'} must not use {m.group(0)}() of {above}"] += 1
    return faults + list(found)


def includes(texts):
    for path in texts:
        room = room_of(path)
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                m = re.match(r'#include "((?:[^"]*/)?)[^"/]*"', line)
                other = m.group(1).rstrip("/") if m else ""
                if other in RANK and is_above(other, room) and not is_within(room, other):
                    yield f"{path}:{number}: {room or 'a file in no room'} must not include {line.split()[1]}"


def places(texts):
    known = {"", "main", *ROOMS}
    for room in sorted({room_of(path) for path in texts} - known):
        yield f"kernel/{room} has no place in the order (ROOMS)"
    for room in sorted(known - {room_of(path) for path in texts}):
        yield f"kernel/{room} has a place in the order (ROOMS), but no file"


def diagram():
    """The layers that the diagram shows, from the lowest to the highest, each with the rooms in it."""
    with open(DIAGRAM, encoding="utf-8") as f:
        text = f.read().partition("\nLayers\n")[2].partition("Each layer calls")[0]
    layers, columns = {}, {}
    for line in text.splitlines():
        if not line.startswith("    |"):
            layers |= {m.group(1): [] for m in re.finditer(r"\b(\w+): ", line)}
            columns = {} if line.startswith("    +") else columns
            continue
        for column, cell in enumerate(line.split("|")[1:-1]):
            m = re.match(r" (\w+)  +", cell)
            if m:
                columns[column] = layers.setdefault(m.group(1), [])
            if column in columns:
                columns[column] += re.findall(r"\b(\w+)/", cell)
    return dict(reversed(layers.items()))


def agreement():
    layers = [room for room in ROOMS if "/" not in room]
    wanted = {layer: [r.split("/")[1] for r in ROOMS if r.startswith(layer + "/")] for layer in layers}
    shown = diagram()
    if list(shown) != layers:
        yield f"{DIAGRAM}: shows, from the lowest, {' '.join(shown)}; the order (ROOMS) is {' '.join(layers)}"
    for layer in layers:
        if shown.get(layer) != wanted[layer]:
            yield f"{DIAGRAM}: {layer} has {shown.get(layer)}; in the order (ROOMS) it has {wanted[layer]}"


def main():
    texts = {path: read(path) for path in sys.argv[1:]}
    faults = [*places(texts), *agreement()]
    # The other checks look rooms up, and need them in the order.
    if not faults:
        faults = [*includes(texts), *calls(texts)]
    for fault in faults:
        print(fault)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
