#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the figures of the guide's performance page and the README's chart: page.py FOLDER GUIDE

FOLDER holds what the benchmarks wrote: threads.json (dist_bench --json), and NAME.txt, the output of another benchmark.
The page marks where they go: `<!-- table TITLE -->`, `<!-- output NAME -->` or `<!-- machine -->`, up to the next
`<!-- end -->`. A mark without figures in FOLDER keeps what it has.
"""

import json
import pathlib
import re
import statistics
import sys

import chart

# The tables, and the operation, layout and pace of their rows.
TABLES = {
    "all_reduce in place": [("all_reduce", "in place", "work loop")],
    "all_reduce out of place": [("all_reduce", "out of place", "work loop")],
    "other collectives": [
        (name, None, "hot") for name in ("all_gather", "reduce_scatter", "broadcast", "all_to_all", "scatter", "scan")
    ],
    "lists": [("all_reduce_list", None, "hot")],
    "barriers and runs": [
        (name, None, pace) for name in ("barrier", "run") for pace in ("hot", "1 ms pauses", "from sleep")
    ],
}
# A peer's column, by its group, or by its name if it has none.
COLUMNS = {**{group: name for group, (name, _, _) in chart.PEERS.items() if group != "loops"}, "jax": "JAX", "tensorflow": "TensorFlow"}


def column_of(comparison):
    return COLUMNS.get(comparison["group"] or None) or comparison["with"]


def is_of(row, kinds):
    return (row["operation"], row.get("layout"), row["pace"]) in kinds and row.get("dtype", "f32") == "f32"


def number(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def table(run, kinds):
    """Returns a table: libdist's times and, for each peer, its time divided by libdist's, bold if the peer is faster."""
    lines, columns = [], []
    for row in run["rows"]:
        if not is_of(row, kinds) or not row["sides"]:
            continue
        name = re.sub(r" x\d+, .*", "", row["name"]).replace("f32 ", "").replace("all_reduce list ", "")
        if row["operation"] == "all_reduce":
            name = chart.size_text(row["bytes"])
        elif row.get("bytes") is None:
            name += f", {row['pace']}"
        cells = {}
        for comparison in row["comparisons"]:
            if comparison["unit"] == "times_as_fast":
                ratio = number(comparison["ratio"])
                cells[column_of(comparison)] = f"**{ratio}**" if comparison["ratio"] < 1 else ratio
        columns += [column for column in cells if column not in columns]
        lines.append((name, number(row["sides"][0]["median_us"]), cells))
    if not lines:
        return None
    head = ["", "libdist, µs", *columns]
    body = [[name, us, *(cells.get(column, "") for column in columns)] for name, us, cells in lines]
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *body))


def machine(run):
    hops = [row["hop_us"] for row in run["rows"] if row.get("hop_us")]
    hop = f"; a cache line needs {statistics.median(hops):.2f} µs from one to the other" if hops else ""
    facts = run["machine"]
    return f"Measured on {facts['date'][:10]} with libdist {facts['libdist']}: {facts['cpu']}, {facts['usable_cpus']} CPUs{hop}."


def figures(folder, kind, name, run):
    if kind == "machine":
        return machine(run) if run else None
    if kind == "table":
        return table(run, TABLES[name]) if run else None
    path = folder / f"{name}.txt"
    return f"```text\n{path.read_text(encoding='utf-8').strip()}\n```" if path.exists() else None


def fill(page, folder, run):
    def replaced(match):
        made = figures(folder, match["kind"], match["name"], run)
        return match[0] if made is None else f"{match['mark']}\n{made}\n<!-- end -->"

    mark = r"(?P<mark><!-- (?P<kind>table|output|machine) ?(?P<name>[^\n]*?) -->)\n.*?<!-- end -->"
    return re.sub(mark, replaced, page, flags=re.S)


def main(folder, guide):
    folder, guide = pathlib.Path(folder), pathlib.Path(guide)
    threads = folder / "threads.json"
    run = json.loads(threads.read_text(encoding="utf-8")) if threads.exists() else None
    picture = chart.draw(run) if run else ""
    if picture:
        (guide / "all_reduce.svg").write_text(picture, encoding="utf-8")
    page = guide / "performance.md"
    page.write_text(fill(page.read_text(encoding="utf-8"), folder, run), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
