#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a run of train_digits (--report FILE) into one HTML page with interactive charts, which needs no network.

    report.py RUN.json PAGE.html
"""

import argparse
import base64
import json
import pathlib
import statistics
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "charts"))
from charts import Page, table, text, tiles  # noqa: E402  (found through the path above)

KINDS = (("compute", "compute"), ("wait", "wait"), ("reduce", "reduce"), ("update", "update"))
MAX_PICTURES = 32
MAX_REPLICAS = 32


def split_all_reduce(run):
    """Each replica's events as (step, kind, start, end, CPU time), in seconds since the first one. An all_reduce becomes
    the wait for the last replica, and the reduce after it."""
    origin = min((e[2] for replica in run["replicas"] for e in replica["events"]), default=0)
    arrived = {}
    for replica in run["replicas"]:
        for step, kind, start, _, _ in replica["events"]:
            if kind == "all_reduce":
                arrived[step] = max(start, arrived.get(step, start))
    out = []
    for replica in run["replicas"]:
        events = []
        for step, kind, start, end, cpu in replica["events"]:
            parts = [(kind, start, end)]
            if kind == "all_reduce":
                last = min(arrived[step], end)
                parts = [("wait", start, last), ("reduce", last, end)]
            events += [(step, k, (a - origin) / 1e9, (b - origin) / 1e9, cpu / 1e9) for k, a, b in parts]
        out.append(events)
    return out


def name_of(run, replica):
    """Replicas are numbered across the workers; each worker has the same number of them."""
    if run["num_workers"] == 1:
        return f"replica {replica}"
    return f"worker {replica * run['num_workers'] // run['num_replicas']}, replica {replica}"


def count(number, noun):
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def typical(events, kind):
    """How long a replica takes for `kind` in a step: the mean over the replicas, the median over the steps."""
    steps = {}
    for step, _, start, end, _ in (e for row in events for e in row if e[1] == kind):
        steps.setdefault(step, []).append(end - start)
    return f"{1e6 * statistics.median(map(statistics.mean, steps.values())):,.0f} µs" if steps else "0 µs"


def busy_machine(run):
    """The reason why waiting shows a busy machine, as a clause; None if it does not show one.

    The threads must have spent at least 20% of the replicas' time ready to run without a CPU, and there must be a cause.
    If the kernel does not report that time, computing must have been off the CPU as much.
    """
    processes = len(run["machines"])
    for machine in {m["machine"]: m for m in run["machines"] if m["machine"] is not None}.values():
        own = [m for m in run["machines"] if m["machine"] == machine["machine"]]
        replicas = run["num_replicas"] * len(own) // processes
        wall, cpus = machine["wall_ns"] or 1, machine["all_cpus"]
        others = (machine["busy_ns"] - sum(m["own_ns"] for m in own)) / wall
        stolen = machine["stolen_ns"] / wall / cpus
        delay = sum(m["delay_ns"] for m in own)
        computing = sum(r["total_ns"]["compute"] for r in run["replicas"]) or 1
        off_cpu = 1 - sum(r["cpu_ns"]["compute"] for r in run["replicas"]) / computing
        if (delay / (wall * replicas) if delay else off_cpu) < 0.2:
            continue
        causes = []
        if 0 < machine["cpus"] < replicas:
            causes.append(f"{replicas} replicas shared {count(machine['cpus'], 'CPU')}")
        if others > 0.1 * cpus:
            causes.append(f"other programs used {min(others, cpus):.1f} of {count(cpus, 'CPU')}")
        if stolen > 0.05:
            causes.append(f"the hypervisor gave {stolen:.0%} of the CPU time to other virtual machines")
        if causes:
            waited = f", and the run's threads waited {delay / 1e9:,.1f} s in total for a free CPU" if delay else ""
            return " and ".join(causes) + waited
    return None


def notices(run):
    out = []
    if run["interrupted"]:
        out.append(f"<p>The run was stopped by Ctrl-C after step {run['steps']:,}.</p>")
    if failure := run["failure"]:
        out.append(
            f"<p>Replica {failure['replica']} failed in step {failure['step']:,}. The training then repeated that step and "
            f"continued. In the failed step, the other replicas got {failure['status']} with this report:</p>"
            f"<pre>{text(failure['text'])}</pre>"
        )
    if reason := busy_machine(run):
        what = "Waiting" if run["num_replicas"] > 1 else "A slow run"
        out.append(f"<p>{what} in this report shows a busy machine, not the cost of libdist: {text(reason)}.</p>")
    return "".join(f"<div class=notice role=note>{notice}</div>" for notice in out)


def summary(run, seconds):
    numbers = [("test accuracy", f"{run['test_accuracy']:.3f}")]
    if run["epochs"]:
        numbers.append(("training time", f"{seconds:,.2f} s"))
    if run["num_workers"] > 1:
        numbers.append(("workers", run["num_workers"]))
    numbers += [("replicas", run["num_replicas"]), ("steps", f"{run['steps']:,}")]
    numbers.append(("parameters", f"{run['num_parameters']:,}"))
    if run["examples_per_second"]:
        numbers.append(("examples/s", f"{run['examples_per_second']['training']:,}"))
    same = "data, seed, number of epochs and " + ("number of replicas" if run["numerics"] == "ordered" else "reproducible sums")
    told = f"<p>SHA-256 of all parameters: <code>{run['parameters']}</code>"
    if not run["interrupted"]:
        told += f"<br><span class=quiet>Every run with the same {same} gives this hash, on any machine.</span>"
    return f"{tiles(numbers)}{told}</p>"


def what_to_look_at(run, events):
    items = []
    if len(run["runs"]) > 1:
        items.append('<a href="#runs">The runs</a> compare several numbers of replicas.')
    if run["epochs"]:
        best = max(range(len(run["epochs"])), key=lambda i: run["epochs"][i]["test_accuracy"])
        items.append(
            f'<a href="#curves">The curves</a>: the accuracy on held-out rows was highest in epoch {best + 1}, with '
            f"{run['epochs'][best]['test_accuracy']:.3f}."
        )
    if any(events):
        told = f"in a typical step, a replica computes for {typical(events, 'compute')}"
        if run["num_replicas"] > 1:
            adds = "adds" if run["num_workers"] == 1 else "exchanges and adds"
            told += f", waits {typical(events, 'wait')} for the slowest replica and {adds} gradients for "
            told += typical(events, "reduce")
        items.append(f'<a href="#timeline">The timeline</a>: {told}.')
    items.append(f'<a href="#wrong">The errors</a>: {len(run["wrong"])} of {count(run["test_rows"], "held-out row")}.')
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def add_runs(page, run):
    """The same training with several numbers of replicas."""
    if len(run["runs"]) < 2:
        return
    equal = len({one["parameters"] for one in run["runs"]}) == 1
    names = ["one core" if one["one_core"] else count(one["num_replicas"], "replica") for one in run["runs"]]
    kinds = (("compute", "compute"), ("all_reduce", "reduce"), ("update", "update"), ("rest", "rest"))
    spans, rows = [], []
    for row, one in enumerate(run["runs"]):
        parts = [one[kind] for kind, _ in kinds[:3]]
        parts.append(max(one["seconds"] - sum(parts), 0))
        starts = [sum(parts[:i]) for i in range(4)]
        spans += [(row, kind, starts[kind], starts[kind] + parts[kind], "") for kind in range(4)]
        speed_up = run["runs"][0]["seconds"] / one["seconds"]
        numbers = (f"{seconds:,.3f}" for seconds in (one["seconds"], *parts))
        rows.append((names[row], *numbers, f"{speed_up:.2f}", f"{one['test_accuracy']:.3f}", one["parameters"][:16]))
    page.add(
        f"<h2 id=runs>{len(rows)} runs of the same training</h2><p>The parameters of all runs "
        f"{'are equal, bit for bit' if equal else 'differ'}. The bars show the mean over the replicas; all_reduce includes the "
        f"wait for the slowest replica, and the rest is the time between steps. The remaining sections are about the last "
        f"run.</p>"
    )
    page.timeline("Training time", names, kinds, spans)
    head = ("replicas", "seconds", *(kind for kind, _ in kinds), "speed-up", "accuracy", "parameters")
    page.add(table(head, rows, "Seconds, speed-up over one core, and the first 16 digits of the hash"))


def add_curves(page, run):
    page.add("<h2 id=curves>Loss and accuracy</h2>")
    if not run["epochs"]:
        page.add("<p>No epoch was finished.</p>")
        return
    page.add("<div class=pair>")
    epochs = list(range(1, len(run["epochs"]) + 1))
    for field, title in (("loss", "Loss (cross-entropy)"), ("accuracy", "Accuracy")):
        series = [
            (name, color, [epoch[f"{color}_{field}"] for epoch in run["epochs"]])
            for name, color in (("training", "train"), ("held out", "test"))
        ]
        page.lines(title, epochs, "epoch", series, from_zero=field == "loss")
    page.add("</div>")


def step_views(events):
    """Parts of the timeline for its buttons: eight steps, and the step of median length, which is the first of them."""
    bounds = {}
    for step, _, start, end, _ in (e for row in events for e in row):
        low, high = bounds.get(step, (start, end))
        bounds[step] = min(low, start), max(high, end)
    steps = sorted(bounds)
    typical = sorted(steps, key=lambda step: bounds[step][1] - bounds[step][0])[len(steps) // 2]
    first = max(0, min(steps.index(typical), len(steps) - 8))
    eight = steps[first : first + 8]
    return [("8 steps", bounds[eight[0]][0], bounds[eight[-1]][1]), ("1 step", *bounds[typical])]


def add_timeline(page, run, events):
    shown = "each replica" if len(events) == len(run["replicas"]) else f"the first {len(events)} replicas"
    page.add(f"<h2 id=timeline>Timeline of {shown}</h2>")
    if not any(events):
        page.add("<p>No step was taken.</p>")
        return
    page.add(
        "<p>In an all-reduce, each replica waits until the last one arrives; then they add the gradients. Gaps are the time "
        "between steps: the replica's thread wakes up or waits for a CPU, the next batch is prepared, or the model is tested "
        "after an epoch. To zoom, drag across a chart or use the buttons; a double click shows all of it.</p>"
    )
    numbers = {kind: number for number, (kind, _) in enumerate(KINDS)}
    notes = {"compute": ", {} µs on a CPU", "update": ", {} µs on a CPU"}
    spans = [
        (row, numbers[kind], start, end, f"step {step}" + notes.get(kind, "").format(f"{cpu * 1e6:,.0f}"))
        for row, own in enumerate(events)
        for step, kind, start, end, cpu in own
        if start < end
    ]
    names = [name_of(run, replica) for replica in range(len(events))]
    page.timeline("The latest steps", names, KINDS, spans, step_views(events))
    rows = []
    kinds = ("compute", "all_reduce", "update")
    for name, replica in zip(names, run["replicas"]):
        total, cpu = replica["total_ns"], replica["cpu_ns"]
        whole = sum(total.values()) or 1
        cells = [f"{total[kind] / 1e6:,.1f} ({total[kind] / whole:.0%})" for kind in kinds]
        rows.append((name, *cells, f"{cpu['compute'] / (total['compute'] or 1):.0%}"))
    page.add(table(("", *kinds, "compute on a CPU"), rows, "Milliseconds in the whole training"))


def picture(features):
    """An 8x8 PNG, gray and alpha, as a data URI."""
    most = max(max(features), 1e-9)
    alpha = [max(0, min(255, round(255 * value / most))) for value in features]
    rows = b"".join(b"\0" + bytes(v for a in alpha[i : i + 8] for v in (0, a)) for i in range(0, 64, 8))

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 4, 0, 0, 0))
    png = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()


def add_wrong(page, run):
    wrong = run["wrong"]
    page.add(f"<h2 id=wrong>Errors: {len(wrong)} of {count(run['test_rows'], 'held-out row')}</h2>")
    if run["features"] != 64 or not wrong:
        return
    if len(wrong) > MAX_PICTURES:
        page.add(f"<p>The first {MAX_PICTURES} of them:</p>")
    items = ""
    for digit in wrong[:MAX_PICTURES]:
        words = text(f"{digit['label']} read as {digit['predicted']}")
        items += f'<li><img src="{picture(digit["features"])}" alt="" width=104 height=104>{words}</li>'
    page.add(f"<ul class=digits>{items}</ul>")


def clock_of(worker, clock):
    if clock["same_machine"]:
        return f"worker {worker} runs on worker 0's machine and has the same clock"
    offset, uncertainty = clock["offset_ns"] / 1e3, clock["uncertainty_ns"] / 1e3
    return (
        f"worker {worker}'s clock is {abs(offset):,.1f} µs {'behind' if offset < 0 else 'ahead of'} worker 0's "
        f"(± {uncertainty:,.1f} µs); its times are shown on worker 0's clock"
    )


def add_facts(page, run):
    rows = f"{run['rows']:,} rows ({run['train_rows']:,} for training, {run['test_rows']:,} held out)"
    data = f"{pathlib.PurePath(run['data']).name}: {rows}, {run['features']} features, {run['classes']} classes"
    shown = [("command", run["command"]), ("seed", run["seed"]), ("numerics", run["numerics"]), ("data", data)]
    if speed := run["examples_per_second"]:
        told = f"{speed['training']:,} in the whole training, {speed['median_epoch']:,} in the median epoch"
        shown.append(("examples/s", f"{told}, {speed['best_epoch']:,} in the best"))
    if run["clocks"] and run["num_workers"] > 1:
        shown.append(("clocks", "; ".join(clock_of(w, clock) for w, clock in enumerate(run["clocks"]) if w > 0)))
    if run["contrast"]:
        ours, theirs = run["contrast"]["libdist_ns"] / 1e3, run["contrast"]["std_barrier_ns"] / 1e3
        told = f"{run['num_parameters']:,} gradients: {ours:,.1f} µs with libdist"
        shown.append(("all_reduce", f"{told}, {theirs:,.1f} µs with std::barrier and loops"))
    items = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in shown)
    page.add(f"<h2>Details</h2><dl class=facts>{items}</dl>")


def make_page(run):
    page = Page("libdist: a training run")
    events = split_all_reduce(run)
    page.add(
        "<h1>A training run with libdist</h1><p class=quiet>Data-parallel training: every replica computes gradients on its "
        "part of each batch, and an all-reduce adds them up.</p>"
    )
    page.add(summary(run, sum(epoch["seconds"] for epoch in run["epochs"])))
    page.add(notices(run))
    page.add(what_to_look_at(run, events))
    add_runs(page, run)
    add_curves(page, run)
    add_timeline(page, run, events[:MAX_REPLICAS])
    add_wrong(page, run)
    add_facts(page, run)
    return page


def main():
    parser = argparse.ArgumentParser(description="Turns a run of train_digits into one HTML page.")
    parser.add_argument("run", type=pathlib.Path, help="the file that train_digits --report wrote")
    parser.add_argument("page", type=pathlib.Path, help="the page to write")
    arguments = parser.parse_args()
    try:
        run = json.loads(arguments.run.read_text(encoding="utf-8", errors="replace"))
        make_page(run).write(arguments.page)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"report.py: {arguments.run}: {type(error).__name__}: {error}")
    print(f"report: {arguments.page}")


if __name__ == "__main__":
    main()
