#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a run of train_digits (--report FILE) into one HTML page that needs nothing else.

    report.py RUN.json PAGE.html

The charts are matplotlib's (Debian: python3-matplotlib), inline as SVG; they take the page's colours,
light or dark.
"""

import argparse
import html
import io
import json
import pathlib
import string
import sys

try:
    import matplotlib
except ImportError:
    sys.exit("report.py: matplotlib is missing; on Debian: apt install python3-matplotlib")
matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)
from matplotlib.ticker import MaxNLocator  # noqa: E402

KINDS = {"compute": "#3d85c6", "all_reduce": "#e07b39", "update": "#4e9f6d"}
TRAIN, TEST = "#8a8f98", "#3d85c6"
MAX_PICTURES = 32
MAX_REPLICAS = 32
# matplotlib writes colours it knows; the page wants its own, which change with the reader's light or dark
# mode.
INK, LINE = "#010203", "#040506"
PAGE_COLOURS = {INK: "currentColor", LINE: "var(--line)"}

plt.rcParams.update(
    {
        "axes.edgecolor": LINE,
        "axes.labelcolor": INK,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.axisbelow": True,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "grid.color": LINE,
        "font.size": 9.5,
        "legend.frameon": False,
        "savefig.transparent": True,
        "svg.hashsalt": "digits",
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "xtick.labelsize": 8.5,
        "ytick.labelsize": 8.5,
    }
)


def svg(figure, what):
    """The figure as an inline <svg>; `what` is for readers who cannot see it."""
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", pad_inches=0.05, metadata={"Date": None})
    plt.close(figure)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    for ours, page in PAGE_COLOURS.items():
        text = text.replace(ours, page)
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(what)}"', 1)


def curves(run):
    """Loss and accuracy by epoch."""
    epochs = range(1, len(run["epochs"]) + 1)
    figure, (loss, accuracy) = plt.subplots(1, 2, figsize=(10, 3.1), gridspec_kw={"wspace": 0.18})
    for axes, field, title in ((loss, "loss", "Loss (cross-entropy)"), (accuracy, "accuracy", "Accuracy")):
        marker = "o" if len(epochs) < 3 else None
        for part, name, colour in (("train", "training", TRAIN), ("test", "held out", TEST)):
            values = [epoch[f"{part}_{field}"] for epoch in run["epochs"]]
            axes.plot(epochs, values, color=colour, label=name, linewidth=1.8, marker=marker)
        axes.set_title(title)
        axes.set_xlabel("epoch")
        axes.set_xlim(0.5, len(epochs) + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y", linewidth=0.6)
    loss.set_ylim(bottom=0)
    accuracy.set_ylim(top=1.005)
    loss.legend(loc="upper right")
    return svg(figure, "Loss and accuracy by epoch")


def mark_steps(axes, events, steps, origin, unit_ns):
    """A line where a step begins, and its number where there is room for it."""
    room_ns = (max(e[3] for e in events) - origin) * 0.085
    free_from = origin
    for step in steps:
        start_ns = min(e[2] for e in events if e[0] == step)
        start = (start_ns - origin) / unit_ns
        axes.axvline(start, color=LINE, linewidth=0.8, zorder=0)
        if start_ns >= free_from:
            where = ("data", "axes fraction")
            axes.annotate(f" step {step}", (start, 1), xycoords=where, va="bottom", fontsize=8)
            free_from = start_ns + room_ns


def name_of(run, replica):
    """Replicas are numbered through all workers, worker by worker, each with as many."""
    if run["num_workers"] == 1:
        return f"replica {replica}"
    return f"worker {replica * run['num_workers'] // run['num_replicas']}, replica {replica}"


def draw_events(axes, run, steps, unit_ns):
    """One row a replica: what it did in `steps`, from the first one's start."""
    events = [[e for e in replica["events"] if e[0] in steps] for replica in run["replicas"]]
    origin = min(e[2] for row in events for e in row)
    for kind, colour in KINDS.items():
        for row, of_replica in enumerate(events):
            bars = [((e[2] - origin) / unit_ns, (e[3] - e[2]) / unit_ns) for e in of_replica if e[1] == kind]
            axes.broken_barh(bars, (row - 0.36, 0.72), facecolors=colour, label=kind if row == 0 else None)
    mark_steps(axes, [e for row in events for e in row], steps, origin, unit_ns)
    axes.set_yticks(range(len(events)), [name_of(run, r) for r in range(len(events))])
    axes.set_ylim(len(events) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def typical_step(run, steps):
    """The step of median length."""

    def length(step):
        events = [e for replica in run["replicas"] for e in replica["events"] if e[0] == step]
        return max(e[3] for e in events) - min(e[2] for e in events)

    return sorted(steps, key=length)[len(steps) // 2]


def timeline(run):
    """The latest steps, and below them one step."""
    steps = sorted({e[0] for replica in run["replicas"] for e in replica["events"]})
    if not steps:
        return "<p>No step was taken.</p>"
    height = max(0.8, min(0.32 * len(run["replicas"]), 8))
    figure, (wide, near) = plt.subplots(
        2, 1, figsize=(10, 2 * height + 1.1), gridspec_kw={"hspace": 0.9 / height}
    )
    draw_events(wide, run, steps, 1e6)
    wide.set_xlabel("milliseconds")
    draw_events(near, run, [typical_step(run, steps)], 1e3)
    near.set_xlabel("microseconds")
    handles, labels = wide.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower right", ncols=3, bbox_to_anchor=(0.9, 0.92 + 0.04 / height))
    return svg(figure, "What each replica did in the latest steps")


def pictures(run):
    """The held-out digits that the model got wrong."""
    wrong = run["wrong"][:MAX_PICTURES]
    columns = 8
    rows = -(-len(wrong) // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(10, 1.5 * rows), squeeze=False, gridspec_kw={"hspace": 0.45, "wspace": 0.2}
    )
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, digit in zip(grid.flat, wrong):
        pixels = [digit["features"][8 * row : 8 * row + 8] for row in range(8)]
        axes.imshow(pixels, cmap="gray_r", vmin=0, interpolation="nearest")
        axes.set_title(f"{digit['label']} read as {digit['predicted']}", fontsize=9, loc="center", pad=4)
    return svg(figure, "Digits that the model got wrong")


def replicas_shown(run):
    left_out = run["num_replicas"] > MAX_REPLICAS
    return f"the first {MAX_REPLICAS} replicas" if left_out else "each replica"


def time_table(run):
    """Where each replica's time went."""
    rows = []
    for r, replica in enumerate(run["replicas"]):
        total = sum(replica["total_ns"].values()) or 1
        cells = "".join(
            f"<td>{replica['total_ns'][kind] / 1e6:,.1f} ms <small>{replica['total_ns'][kind] / total:.1%}"
            "</small></td>"
            for kind in KINDS
        )
        rows.append(f"<tr><th scope=row>{name_of(run, r)}</th>{cells}</tr>")
    head = "".join(f'<th scope=col><i style="background:{c}"></i>{k}</th>' for k, c in KINDS.items())
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def runs_section(run):
    """The same training with several numbers of replicas."""
    if len(run["runs"]) < 2:
        return ""
    first = run["runs"][0]["seconds"]
    kinds = ("compute", "all_reduce", "update")
    rows = "".join(
        f"<tr><th scope=row>{'one core' if one['one_core'] else one['num_replicas']}</th><td>{one['seconds']:,.3f}</td>"
        + "".join(f"<td>{one[kind]:,.3f}</td>" for kind in kinds)
        + f"<td>{one['seconds'] - sum(one[kind] for kind in kinds):,.3f}</td>"
        f"<td>{first / one['seconds']:.2f}</td><td>{one['test_accuracy']:.3f}</td>"
        f"<td><code>{one['parameters'][:16]}</code></td></tr>"
        for one in run["runs"]
    )
    equal = len({one["parameters"] for one in run["runs"]}) == 1
    heads = ("replicas", "seconds", *kinds, "rest", "speed-up", "test accuracy", "parameters (SHA-256)")
    head = "".join(f"<th scope=col>{name}</th>" for name in heads)
    return (
        f"<h2>One training, {len(run['runs'])} runs</h2><p class=lead>Their parameters "
        f"{'are equal, bit for bit' if equal else 'differ'}. The seconds are made of the four next "
        f"columns, in the mean over the replicas; the speed-up is against one core. The rest of this page is about the last "
        f"run.</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def wrong_section(run):
    wrong, total = run["wrong"], run["test_rows"]
    title = f"<h2>What it got wrong: {len(wrong)} of {total:,}</h2>"
    if run["features"] != 64 or not wrong:
        return title
    shown = f"<p>The first {MAX_PICTURES} of them.</p>" if len(wrong) > MAX_PICTURES else ""
    return f"{title}{shown}<div class=chart>{pictures(run)}</div>"


def notices(run):
    """What was out of the ordinary."""
    out = []
    if run["interrupted"]:
        out.append(f"<p class=notice>Stopped by Ctrl-C after step {run['steps']:,}.</p>")
    if run["failure"]:
        failure = run["failure"]
        out.append(
            f"<div class=notice><p>Replica {failure['replica']} failed in step {failure['step']:,}; training "
            f"went on from that step. What the others were told ({failure['status']}):</p>"
            f"<pre>{html.escape(failure['text'])}</pre></div>"
        )
    return "".join(out)


def tiles(run):
    speed = run["examples_per_second"]
    shown = [
        ("test accuracy", f"{run['test_accuracy']:.3f}"),
        ("replicas", str(run["num_replicas"])),
        ("parameters", f"{run['num_parameters']:,}"),
        ("steps", f"{run['steps']:,}"),
    ]
    if run["num_workers"] > 1:
        shown.insert(1, ("workers", str(run["num_workers"])))
    if speed:
        shown.append(("examples/s in the whole training", f"{speed['training']:,}"))
    return "".join(f"<div><b>{value}</b>{name}</div>" for name, value in shown)


def clock_of(worker, clock):
    """How a worker's clock was brought together with worker 0's."""
    if clock["same_machine"]:
        return f"worker {worker}: on worker 0's machine, so the same clock"
    offset, uncertainty = clock["offset_ns"] / 1e3, clock["uncertainty_ns"] / 1e3
    return (
        f"worker {worker}: {abs(offset):,.1f} us {'behind' if offset < 0 else 'ahead'}, give or take "
        f"{uncertainty:,.1f} us; its times are shown by worker 0's clock"
    )


def facts(run):
    shown = [
        ("command", run["command"]),
        ("seed", str(run["seed"])),
        ("numerics", run["numerics"]),
        (
            "data",
            f"{pathlib.PurePath(run['data']).name}: {run['rows']:,} rows "
            f"({run['train_rows']:,} to train on, {run['test_rows']:,} "
            f"held out), {run['features']} features, {run['classes']} classes",
        ),
        ("parameters", f"SHA-256 {run['parameters']}"),
    ]
    speed = run["examples_per_second"]
    if speed:
        shown.append(
            (
                "examples/s",
                f"{speed['training']:,} in the whole training, {speed['median_epoch']:,} in the median epoch, "
                f"{speed['best_epoch']:,} in the best",
            )
        )
    if run["clocks"] and run["num_workers"] > 1:
        clocks = [clock_of(w, clock) for w, clock in enumerate(run["clocks"]) if w > 0]
        shown.append(("clocks", "; ".join(clocks)))
    if run["contrast"]:
        ours, theirs = run["contrast"]["libdist_ns"], run["contrast"]["std_barrier_ns"]
        shown.append(
            (
                "all_reduce",
                f"{run['num_parameters']:,} gradients: libdist {ours / 1e3:,.1f} us, std::barrier "
                f"and loops {theirs / 1e3:,.1f} us",
            )
        )
    return "".join(f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in shown)


PAGE = string.Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>libdist: a training run</title>
<style>
:root { color-scheme: light dark; --ground: #fbfbfa; --card: #fff; --ink: #22262b; --quiet: #667;
  --line: #d9dce1; --notice: #fff4d6; }
@media (prefers-color-scheme: dark) { :root { --ground: #15181c; --card: #1d2126; --ink: #e4e7eb;
  --quiet: #98a0aa; --line: #3a4049; --notice: #3d3417; } }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 4rem; background: var(--ground);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p.lead, small, dt { color: var(--quiet); } p.lead { margin: .2rem 0 1.4rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .8rem; }
.tiles div, .chart { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.tiles div { padding: .7rem 1rem; color: var(--quiet); font-size: .9rem; }
.tiles b { display: block; color: var(--ink); font-size: 1.55rem; font-variant-numeric: tabular-nums; }
.chart { padding: 1rem; } .chart svg { display: block; width: 100%; height: auto; }
.chart image { image-rendering: pixelated; }
table { border-collapse: collapse; width: 100%; margin-top: .9rem; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); }
th i { display: inline-block; width: .7rem; height: .7rem; border-radius: .15rem; margin-right: .45rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; margin: 0; }
dd { margin: 0; overflow-wrap: anywhere; font-family: ui-monospace, monospace;
  font-size: .88rem; padding-top: .1rem; }
.notice { background: var(--notice); border-radius: .6rem; padding: .7rem 1rem; margin: 1.2rem 0 0; }
.notice p { margin: 0; } .notice pre { margin: .5rem 0 0; white-space: pre-wrap; font-size: .85rem; }
</style>
<h1>A training run on libdist</h1>
<p class="lead">Data-parallel: every replica learns on its part of each batch, and all add up their
gradients.</p>
<div class="tiles">$tiles</div>
$notices
$runs
<h2>How it learned</h2>
<div class="chart">$curves</div>
<h2>What $replicas did</h2>
<p class="lead">Above, the latest steps; below, the one of median length. In all_reduce a replica waits for
the slowest, then they add. White is none of the three: before its first bar a replica's thread
wakes up or waits for a core; between steps the next batch is made, and after an epoch the model is tested.</p>
<div class="chart">$timeline</div>
$times
$wrong
<h2>The run</h2>
<dl>$facts</dl>
</html>
""")


def page(run):
    return PAGE.substitute(
        tiles=tiles(run),
        notices=notices(run),
        runs=runs_section(run),
        timeline=timeline(run),
        replicas=replicas_shown(run),
        times=time_table(run),
        curves=curves(run) if run["epochs"] else "<p>No epoch was finished.</p>",
        wrong=wrong_section(run),
        facts=facts(run),
    )


def main():
    parser = argparse.ArgumentParser(description="Turns a run of train_digits into one HTML page.")
    parser.add_argument("run", type=pathlib.Path, help="what train_digits --report wrote")
    parser.add_argument("page", type=pathlib.Path, help="the page to write")
    arguments = parser.parse_args()
    try:
        run = json.loads(arguments.run.read_text(encoding="utf-8", errors="replace"))
        run["replicas"] = run["replicas"][:MAX_REPLICAS]
        arguments.page.write_text(page(run), encoding="utf-8")
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"report.py: {arguments.run}: {type(error).__name__}: {error}")
    print(f"report: {arguments.page}")


if __name__ == "__main__":
    main()
