# SPDX-License-Identifier: Apache-2.0
"""Implements bench.py --picture: plots latency and throughput against the request rate, one line per server."""

import sys

from servers import percentile

try:
    import matplotlib
except ImportError:
    sys.exit("bench.py: --picture needs matplotlib; on Debian: apt install python3-matplotlib")
matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)

COLOURS = ("#d1495b", "#8a8f98", "#3d85c6", "#e07b39")

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
        "svg.hashsalt": "inference_host",
    }
)


def draw(servers, given):
    figure, (latency, throughput) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for server, colour in zip(servers, COLOURS):
        tallies = sorted(server.tallies.values(), key=lambda tally: tally.rate)
        rates = [tally.rate for tally in tallies]
        look = {"color": colour, "marker": "o", "markersize": 4, "label": server.name}
        latency.plot(rates, [percentile(tally.times, 0.99) for tally in tallies], **look)
        throughput.plot(rates, [tally.answered / tally.seconds for tally in tallies], **look)
    latency.set(title="p99 of the answered, ms", yscale="log")
    latency.yaxis.set_major_formatter("{x:g}")
    latency.yaxis.set_minor_formatter("{x:g}")
    throughput.set(title="answered a second", ylim=(0, None))
    for panel in latency, throughput:
        panel.set(xlabel="asked a second", xlim=(0, None))
        panel.grid(True, which="both")
    throughput.legend()
    figure.savefig(given.picture, metadata={"Date": None} if given.picture.suffix == ".svg" else None)
    print(f"bench.py: wrote {given.picture}", file=sys.stderr)
