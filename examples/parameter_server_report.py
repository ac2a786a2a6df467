#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what coordinator, workers and parameter servers did when: parameter_server_report.py FOLDER PAGE.html (a folder of
traces of dist_coordinator_write_trace() and dist_server_write_trace(), of one machine)."""

import html
import io
import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import patches, pyplot  # noqa: E402  (after the choice of what it draws with)

COLORS = {"closure": "#4878a8", "ps": "#e0a030"}
FAILED = "#c04040"


class Row:
    """A row of the timeline: its name, and its slices."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.slices: list[dict] = []

    def ended(self, category: str) -> list[dict]:
        return [e for e in self.slices if e["cat"] == category]


def rows_of(trace: dict) -> list[Row]:
    names = [e for e in trace["traceEvents"] if e["ph"] == "M"]
    process = next(e["args"]["name"] for e in names if e["name"] == "process_name").removeprefix("libdist ")
    rows = {e["tid"]: Row(f"{process}: {e['args']['name']}") for e in names if e["name"] == "thread_name"}
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            rows[event["tid"]].slices.append(event)
    return [row for row in rows.values() if row.slices]


def draw(rows: list[Row], closures: list[dict], begin: float) -> str:
    figure, (line, rate) = pyplot.subplots(2, 1, figsize=(11, 2.5 + 0.5 * len(rows)), sharex=True)
    for place, row in enumerate(rows):
        for category, color in COLORS.items():
            own = row.ended(category)
            spans = [((e["ts"] - begin) / 1e6, e["dur"] / 1e6) for e in own]
            colors = [color if e["args"]["status"] == "OK" else FAILED for e in own]
            line.broken_barh(spans, (place - 0.4, 0.8), facecolors=colors, edgecolors=colors, linewidth=0.2)
    line.set_yticks(range(len(rows)), [row.name for row in rows])
    line.invert_yaxis()
    shown = {"closures": COLORS["closure"], "reading, changing variables": COLORS["ps"], "failed": FAILED}
    line.legend(handles=[patches.Patch(color=c, label=w) for w, c in shown.items()], loc="upper right", fontsize=8)
    line.set_title("what each task did when")
    ends = sorted((e["ts"] + e["dur"] - begin) / 1e6 for e in closures)
    rate.plot(ends, range(1, len(ends) + 1), color=COLORS["closure"])
    rate.set_xlabel("seconds")
    rate.set_ylabel("closures that have ended")
    figure.tight_layout()
    picture = io.StringIO()
    figure.savefig(picture, format="svg")
    return picture.getvalue()


def main(folder: str, page: str) -> int:
    tasks: dict[str, list[Row]] = {}
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        tasks[path.stem] = rows_of(json.loads(path.read_text(encoding="utf-8")))
    # The coordinator's rows come first: what it knows of the workers.
    rows = [row for task in sorted(tasks, key=lambda task: (task.split("-")[0] != "chief", task)) for row in tasks[task]]
    closures = [e for row in tasks.get("chief-0", []) for e in row.ended("closure")]
    if not closures:
        print(f"{folder} has no trace chief-0.json with closures", file=sys.stderr)
        return 1
    begin = min(e["ts"] for row in rows for e in row.slices)
    seconds = (max(e["ts"] + e["dur"] for e in closures) - min(e["ts"] for e in closures)) / 1e6
    table = "".join(
        f"<tr><td>{html.escape(row.name)}</td><td>{len(row.ended('closure'))}</td><td>{len(row.ended('ps'))}</td></tr>"
        for row in rows
    )
    with open(page, "w", encoding="utf-8") as file:
        file.write(
            "<!doctype html><meta charset='utf-8'><title>libdist: parameter servers</title>"
            f"<h1>{len(closures)} closures in {seconds:.2f} s</h1>"
            f"<table><tr><th>row</th><th>closures</th><th>reads and changes</th></tr>{table}</table>"
            f"{draw(rows, closures, begin)}"
        )
    print(f"{page}: {len(closures)} closures in {seconds:.2f} s, {len(closures) / seconds:.0f} a second")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1], sys.argv[2]))
