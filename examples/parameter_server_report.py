#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws which worker ran which closure when: parameter_server_report.py TRACE.json PAGE.html (a trace of
dist_coordinator_write_trace())."""

import html
import io
import json
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  (after the choice of what it draws with)

COLORS = {"OK": "#4878a8"}
OTHER = "#c04040"


def main(trace: str, page: str) -> int:
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    closures = [e for e in events if e["ph"] == "X"]
    if not closures:
        print(f"{trace} has no closure", file=sys.stderr)
        return 1
    begin = min(e["ts"] for e in closures)
    seconds = (max(e["ts"] + e["dur"] for e in closures) - begin) / 1e6
    rows = [tid for tid in sorted(names) if any(e["tid"] == tid for e in closures)]
    figure, (line, rate) = pyplot.subplots(2, 1, figsize=(11, 2.5 + len(rows)), sharex=True)
    for place, tid in enumerate(rows):
        own = [e for e in closures if e["tid"] == tid]
        spans = [((e["ts"] - begin) / 1e6, e["dur"] / 1e6) for e in own]
        colors = [COLORS.get(e["args"]["status"], OTHER) for e in own]
        line.broken_barh(spans, (place - 0.4, 0.8), facecolors=colors)
    line.set_yticks(range(len(rows)), [names[tid] for tid in rows])
    line.invert_yaxis()
    line.set_title("closures, from when they were sent until their end (red: failed or cancelled)")
    ends = sorted((e["ts"] + e["dur"] - begin) / 1e6 for e in closures)
    rate.plot(ends, range(1, len(ends) + 1), color=COLORS["OK"])
    rate.set_xlabel("seconds")
    rate.set_ylabel("closures that have ended")
    figure.tight_layout()
    picture = io.StringIO()
    figure.savefig(picture, format="svg")
    table = "".join(
        f"<tr><td>{html.escape(names[tid])}</td><td>{sum(e['tid'] == tid for e in closures)}</td></tr>" for tid in rows
    )
    with open(page, "w", encoding="utf-8") as file:
        file.write(
            "<!doctype html><meta charset='utf-8'><title>libdist: parameter servers</title>"
            f"<h1>{len(closures)} closures in {seconds:.2f} s</h1><table>{table}</table>{picture.getvalue()}"
        )
    print(f"{page}: {len(closures)} closures in {seconds:.2f} s, {len(closures) / seconds:.0f} a second")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1], sys.argv[2]))
