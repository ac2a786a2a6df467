#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a timeline of a parameter-server run: parameter_server_report.py FOLDER PAGE.html

FOLDER holds the traces that dist_coordinator_write_trace() and dist_server_write_trace() wrote on one machine.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "charts"))
from charts import Page, table, tiles  # noqa: E402  (found through the path above)

KINDS = (("closure", "compute"), ("reading or changing variables", "reduce"), ("failed", "bad"))
CATEGORIES = ("closure", "ps")


def rows_of(trace):
    """The slices of each thread, by "process: thread"."""
    names = [e for e in trace["traceEvents"] if e["ph"] == "M"]
    process = next(e["args"]["name"] for e in names if e["name"] == "process_name").removeprefix("libdist ")
    threads = {e["tid"]: f"{process}: {e['args']['name']}" for e in names if e["name"] == "thread_name"}
    rows = {name: [] for name in threads.values()}
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["cat"] in CATEGORIES:
            rows[threads[event["tid"]]].append(event)
    return {name: slices for name, slices in rows.items() if slices}


def end_of(event):
    return event["ts"] + event["dur"]


def make_page(rows, closures):
    begin = min(e["ts"] for slices in rows.values() for e in slices)
    seconds = (max(map(end_of, closures)) - min(e["ts"] for e in closures)) / 1e6
    failed = sum(e["args"]["status"] != "OK" for slices in rows.values() for e in slices)
    page = Page("libdist: parameter servers")
    page.add(
        "<h1>A parameter-server run with libdist</h1><p class=quiet>The coordinator schedules closures on the workers, which "
        "read and change variables on the parameter servers.</p>"
    )
    rate = f"{len(closures) / seconds:,.0f}" if seconds else "–"
    page.add(
        tiles((("closures", f"{len(closures):,}"), ("time", f"{seconds:.2f} s"), ("closures/s", rate), ("failed", f"{failed:,}")))
    )
    spans = []
    for row, slices in enumerate(rows.values()):
        for e in slices:
            is_ok = e["args"]["status"] == "OK"
            note = e["name"] + ("" if is_ok else f": {e['args']['status']}")
            kind = CATEGORIES.index(e["cat"]) if is_ok else 2
            spans.append((row, kind, (e["ts"] - begin) / 1e6, (end_of(e) - begin) / 1e6, note))
    page.add("<h2>Timeline of each task</h2><p>To zoom, drag across a chart or use the buttons; a double click shows all of it.</p>")
    page.timeline("Closures and accesses to variables", list(rows), KINDS, spans)
    counts = [(name, *(f"{sum(e['cat'] == c for e in slices):,}" for c in CATEGORIES)) for name, slices in rows.items()]
    page.add(table(("", "closures", "reads and changes"), counts, "Number of slices in each row"))
    ends = sorted((end_of(e) - begin) / 1e6 for e in closures)
    page.add("<h2>Progress</h2>")
    page.lines("Completed closures", ends, "time", [("closures", "test", list(range(1, len(ends) + 1)))], from_zero=True)
    return page, seconds


def main(folder, path):
    tasks = {}
    for trace in sorted(pathlib.Path(folder).glob("*.json")):
        tasks[trace.stem] = rows_of(json.loads(trace.read_text(encoding="utf-8")))
    chief = tasks.get("chief-0", {})
    closures = [e for slices in chief.values() for e in slices if e["cat"] == "closure"]
    if not closures:
        sys.exit(f"{folder}: chief-0.json is missing or has no closures. Pass the folder that the run wrote its traces to.")
    # The coordinator's rows come first.
    order = sorted(tasks, key=lambda task: (task.split("-")[0] != "chief", task))
    page, seconds = make_page({name: slices for task in order for name, slices in tasks[task].items()}, closures)
    page.write(path)
    print(f"{path}: {len(closures)} closures in {seconds:.2f} s, {len(closures) / max(seconds, 1e-9):.0f} per second")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
