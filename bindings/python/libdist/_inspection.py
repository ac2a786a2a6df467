# SPDX-License-Identifier: Apache-2.0
"""The methods of Strategy for inspection: description, traces, metrics and stragglers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Optional

from . import _cdist
from ._arguments import Rule, Unfit, checked
from ._prometheus import register
from .constants import Collective


if TYPE_CHECKING:
    from .strategy import Strategy


class Straggler(NamedTuple):
    """How often a replica was the last one to arrive at the rounds of one tag, collective and group."""

    collective: Collective
    group: int
    """Number of the group of replicas; 0 = all replicas."""
    replica: int
    """Id of the replica; -1 = the worker itself, outside replica functions."""
    worker: int
    """Worker of the replica; 0 in a strategy of one process."""
    rounds: int
    """Number of rounds of this tag, collective and group."""
    times_last: int
    mean_late_ns: int
    """Mean time for which all others, already present, waited for the replica, in nanoseconds."""
    max_late_ns: int
    tag: str


def _fit_registry(given: Any) -> Any:
    if given is None or callable(getattr(given, "register", None)):
        return given
    raise Unfit(given, _A_REGISTRY)


_A_REGISTRY = "a prometheus_client.CollectorRegistry or None"
Registry = Annotated[Any, Rule(_fit_registry, _A_REGISTRY)]
"""A prometheus_client.CollectorRegistry. The package has annotations, but need not be installed."""


@checked
class Inspection:
    """The methods of Strategy for inspection."""

    _part_of = "Strategy"

    def _native(self, name: str = "Strategy") -> int:
        raise NotImplementedError

    def explain(self) -> str:
        """Describes how the strategy uses this machine, in lines for human readers, which may change in any version."""
        text = _cdist.Text()
        text.explain(self._native("Strategy.explain"))
        return str(text.text())

    def write_trace(self) -> str:
        """Returns the recorded runs and collectives as a JSON trace for Perfetto or chrome://tracing."""
        text = _cdist.Text()
        text.write_trace(self._native("Strategy.write_trace"))
        return str(text.text())

    def write_metrics(self, name: Optional[str] = None) -> str:
        """Returns counters and gauges in Prometheus' text format, as a page for a scrape.

        name: value of the label `strategy`; None = no label.
        """
        text = _cdist.Text()
        text.write_metrics(self._native("Strategy.write_metrics"), name)
        return str(text.text())

    def register_metrics(self, registry: Registry = None, name: Optional[str] = None) -> None:
        """Adds the metrics of write_metrics() to a prometheus_client registry, until the strategy is closed.

        registry: a CollectorRegistry; None = prometheus_client.REGISTRY.

        name: value of the label `strategy`, which distinguishes several strategies of a program; None = no label.
        """
        self._native("Strategy.register_metrics")
        register(self._self(), registry, name)

    def _self(self) -> Strategy:
        raise NotImplementedError

    def stragglers(self) -> list[Straggler]:
        """Lists the replicas that arrive last, over the rounds that are still recorded, most often last first."""
        rows = _cdist.Stragglers()
        rows.read(self._native("Strategy.stragglers"))
        return [
            Straggler(
                Collective(rows.collective(row)),
                rows.group(row),
                rows.replica(row),
                rows.worker(row),
                rows.rounds(row),
                rows.times_last(row),
                rows.mean_late_ns(row),
                rows.max_late_ns(row),
                rows.tag(row),
            )
            for row in range(rows.size())
        ]
