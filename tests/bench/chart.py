# SPDX-License-Identifier: Apache-2.0
"""Draws the time of an all-reduce against its size, libdist next to its peers, as an SVG picture.

The picture shows work loops: each replica writes its whole tensor before the operation and reads it afterwards, and only
the operation is timed. It follows the reader's light or dark mode and needs no package to draw.
"""

import math
from html import escape

# A peer's group in the file, its name in the picture and its colours in light and dark mode.
PEERS = {
    "": ("libdist", "#c2255c", "#ff6b9d"),
    "mpi": ("MPI", "#1c6fb5", "#6cb2f0"),
    "oneccl": ("oneCCL", "#6741a8", "#b197fc"),
    "gloo": ("Gloo", "#2b8a3e", "#69db7c"),
    "vllm": ("vLLM", "#b35c00", "#ffa94d"),
    "deepspeed": ("DeepSpeed", "#0b7285", "#4dd4e0"),
    "loops": ("plain loops", "#868e96", "#868e96"),
}
LOOPS = "spin barrier, fused slices"  # loops without checks, between spinning barriers
WIDTH, HEIGHT = 560, 440
LEFT, RIGHT, TOP, BOTTOM = 72, 122, 70, 58
LABEL_GAP = 20

STYLE = """
text { font: 17px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #24292f }
.small { font-size: 15px; fill: #57606a }
.title { font-size: 19px; font-weight: 600 }
.page { fill: #ffffff }
.grid { stroke: #d8dee4; stroke-width: 1 }
.line { fill: none; stroke-width: 2.5; stroke-linejoin: round }
.line.ours { stroke-width: 4.5 }
.line.loops { stroke-dasharray: 4 4 }
.line.label { stroke-width: 1; stroke-dasharray: none }
.bold { font-weight: 600 }
"""
DARK = """
text { fill: #e6edf3 }
.small { fill: #9aa4ae }
.page { fill: #0d1117 }
.grid { stroke: #30363d }
"""


def lines_of(run):
    """Returns {group: {bytes: microseconds}} of the work loops in place with two replicas."""
    lines = {}
    for row in run["rows"]:
        wanted = ("all_reduce", "f32", "in place", 2)
        if (row["operation"], row.get("dtype"), row.get("layout"), row["replicas"]) != wanted or not row["sides"]:
            continue
        if not row["pace"].startswith("work"):
            continue
        median_us = {side["name"]: side["median_us"] for side in row["sides"]}
        lines.setdefault("", {})[row["bytes"]] = row["sides"][0]["median_us"]
        for comparison in row["comparisons"]:
            group = "loops" if comparison["with"] == LOOPS else comparison.get("group")
            if group in PEERS and group and comparison["unit"] == "times_as_fast":
                lines.setdefault(group, {})[row["bytes"]] = median_us[comparison["with"]]
    return lines


def size_text(size):
    for unit, factor in ("MiB", 1 << 20), ("KiB", 1 << 10):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size} B"


def time_text(us):
    return f"{us / 1000:g} ms" if us >= 1000 else f"{us:g} µs"


def spread(ends):
    """Returns the heights of the labels, such that none covers another."""
    placed = {}
    lowest = -math.inf
    for y, group in sorted(ends):
        lowest = max(y, lowest + LABEL_GAP)
        placed[group] = lowest
    over = max(placed.values()) - (HEIGHT - BOTTOM)
    return {group: y - max(over, 0) for group, y in placed.items()}


def draw(run):
    """Returns the picture of a run that `dist_bench --json` wrote, or "" if it has no such row."""
    lines = lines_of(run)
    if not lines:
        return ""
    sizes = sorted(lines[""])
    times = [us for line in lines.values() for us in line.values()]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    first, last = math.log2(sizes[0]), math.log2(sizes[-1])

    def x(size):
        return LEFT + (math.log2(size) - first) / ((last - first) or 1) * (WIDTH - LEFT - RIGHT)

    def y(us):
        return HEIGHT - BOTTOM - (math.log10(us) - low) / ((high - low) or 1) * (HEIGHT - TOP - BOTTOM)

    machine = run["machine"]
    where = f"2 replicas on {machine['cpu']}, {machine['usable_cpus']} CPUs"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>Time of an all-reduce against its size</title>",
        f"<desc>{escape(where)}; measured {escape(machine['date'][:10])}</desc>",
        f"<style>{STYLE}"
        + "".join(f".{group or 'ours'} {{ stroke: {light} }}\n" for group, (_, light, _) in PEERS.items())
        + f"@media (prefers-color-scheme: dark) {{{DARK}"
        + "".join(f".{group or 'ours'} {{ stroke: {dark} }}\n" for group, (_, _, dark) in PEERS.items())
        + "}</style>",
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
        '<text class="title" x="12" y="28">Time of an all-reduce (less is better)</text>',
        f'<text class="small" x="12" y="52">{escape(where)}</text>',
    ]
    for power in range(low, high + 1):
        height = y(10.0**power)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>')
        out.append(f'<text class="small" x="{LEFT - 6}" y="{height + 5:.1f}" text-anchor="end">{time_text(10.0**power)}</text>')
    for size in [s for s in (4, 1 << 10, 64 << 10, 1 << 20, 64 << 20) if sizes[0] <= s <= sizes[-1]]:
        place = f'x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle"'
        out.append(f'<text class="small" {place}>{size_text(size)}</text>')
    out.append(f'<text class="small" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">size of the tensor</text>')
    labels = spread([(y(line[max(line)]), group) for group, line in lines.items()])
    over = ["", "loops"]  # drawn last, on top of the others
    for group in sorted((group for group in PEERS if group in lines), key=lambda group: over.index(group) if group in over else -1):
        points = " ".join(f"{x(size):.1f},{y(us):.1f}" for size, us in sorted(lines[group].items()))
        end = max(lines[group])
        kind = group or "ours"
        out.append(f'<polyline class="line {kind}" points="{points}"/>')
        out.append(
            f'<path class="line {kind} label" d="M{x(end) + 2:.1f},{y(lines[group][end]):.1f} '
            f'L{WIDTH - RIGHT + 12},{labels[group]:.1f}"/>'
        )
        bold = ' class="bold"' if not group else ""
        out.append(f'<text x="{WIDTH - RIGHT + 16}" y="{labels[group] + 5:.1f}"{bold}>{PEERS[group][0]}</text>')
    return "\n".join(out) + "\n</svg>\n"
