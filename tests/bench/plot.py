#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plots the output of dist_bench --json: bandwidth against size for libdist, its peers and the memory limit.

    plot.py RUN.json PICTURE.svg|.png [--layout "in place"] [--pace hot]

The picture has one panel per number of replicas. It shows a tensor's bytes divided by the time of one all_reduce of
f32. Requires Matplotlib (Debian: python3-matplotlib).
"""

import argparse
import json
import statistics
import sys
from collections import defaultdict

try:
    import matplotlib
except ImportError:
    sys.exit("plot.py: matplotlib is missing; on Debian: apt install python3-matplotlib")
matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)
from matplotlib.ticker import FuncFormatter  # noqa: E402

# A line's name, colour and order; what is not here is no all_reduce that a user could pick instead.
LINES = {
    "libdist": "#d1495b",
    "best MPI": "#3d85c6",
    "oneCCL": "#6a4c93",
    "Gloo": "#4e9f6d",
    "JAX": "#e07b39",
    "TensorFlow": "#c9a227",
    "vLLM": "#2b7a4b",
    "DeepSpeed": "#7d5a3c",
    "spin barrier, fused slices": "#8a8f98",
    "std::barrier, fused slices": "#c2c5ca",
    "OpenMP, one caller": "#5bb5b0",
}
GROUPS = {
    "mpi": "best MPI",
    "oneccl": "oneCCL",
    "gloo": "Gloo",
    "jax": "JAX",
    "tensorflow": "TensorFlow",
    "vllm": "vLLM",
    "deepspeed": "DeepSpeed",
}

plt.rcParams.update(
    {
        "axes.axisbelow": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "font.size": 9.5,
        "grid.color": "#dddddd",
        "legend.frameon": False,
        "svg.hashsalt": "dist_bench",
    }
)


def line_of(comparison):
    """Which line a peer's time belongs to; None for limits and for libdist beside itself."""
    group = GROUPS.get(comparison.get("group"))
    if group:
        return group
    name = comparison["with"]
    return name if name in LINES else None


def collect(run, layout, pace):
    """{replicas: {line: {bytes: GB/s}}} and {replicas: GB/s at the memory's limit}."""
    lines = defaultdict(lambda: defaultdict(dict))
    limits = defaultdict(list)
    for row in run["rows"]:
        wanted = ("all_reduce", "f32", layout, pace)
        if (row["operation"], row.get("dtype"), row.get("layout"), row["pace"]) != wanted or not row["sides"]:
            continue
        size, replicas, sides = row["bytes"], row["replicas"], row["sides"]
        median_us = {side["name"]: side["median_us"] for side in sides}
        ours = size / sides[0]["median_us"] / 1e3
        lines[replicas]["libdist"][size] = ours
        for comparison in row["comparisons"]:
            if comparison["unit"] == "share_of_limit":
                limits[replicas].append(ours / comparison["ratio"])
            line = line_of(comparison)
            if line and comparison["unit"] == "times_as_fast":
                lines[replicas][line][size] = size / median_us[comparison["with"]] / 1e3
    return lines, {replicas: statistics.median(found) for replicas, found in limits.items()}


def size_text(size, _=None):
    for unit, factor in ("MiB", 1 << 20), ("KiB", 1 << 10):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"


def draw_panel(axes, replicas, lines, limit):
    sizes = sorted(lines["libdist"])
    for name, colour in LINES.items():
        points = sorted(lines.get(name, {}).items())
        if points:
            style = {"linewidth": 2.4, "zorder": 3} if name == "libdist" else {"linewidth": 1.3}
            axes.plot(*zip(*points), marker="o", markersize=3.5, color=colour, label=name, **style)
    if limit:
        axes.axhline(limit, color="#444444", linestyle="--", linewidth=1)
        axes.annotate("memory", (sizes[0], limit), (0, 3), textcoords="offset points", fontsize=8.5)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes)
    axes.xaxis.set_major_formatter(FuncFormatter(size_text))
    axes.tick_params(axis="x", rotation=45)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(True, which="major")
    axes.set_title(f"{replicas} replicas")
    axes.set_xlabel("tensor")


def draw(run, layout, pace):
    lines, limits = collect(run, layout, pace)
    if not lines:
        sys.exit(f"plot.py: no all_reduce of f32, {layout}, {pace} in that run")
    figure, panels = plt.subplots(
        1, len(lines), figsize=(2.5 + 5 * len(lines), 4.8), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, replicas in zip(panels[0], sorted(lines)):
        draw_panel(axes, replicas, lines[replicas], limits.get(replicas))
    panels[0][0].set_ylabel("tensor's bytes over time, GB/s")
    handles, labels = max((axes.get_legend_handles_labels() for axes in panels[0]), key=lambda found: len(found[1]))
    panels[0][-1].legend(handles, labels, loc="upper left", bbox_to_anchor=(1.02, 1))
    machine = run["machine"]
    figure.suptitle(
        f"all_reduce, f32, {layout}, {pace}: {machine['cpu']}, {machine['usable_cpus']} usable CPUs",
        x=0.01, ha="left", fontsize=11,
    )
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="what dist_bench --json wrote")
    parser.add_argument("picture", help="SVG or PNG, by its name")
    parser.add_argument("--layout", default="in place")
    parser.add_argument("--pace", default="hot")
    arguments = parser.parse_args()
    with open(arguments.run, encoding="utf-8") as file:
        run = json.load(file)
    figure = draw(run, arguments.layout, arguments.pace)
    date = {"Date": None} if arguments.picture.endswith(".svg") else None  # the same picture for the same run
    figure.savefig(arguments.picture, dpi=150, metadata=date)


if __name__ == "__main__":
    main()
