# SPDX-License-Identifier: Apache-2.0
"""The part of Strategy that looks inside: explain, traces, metrics, stragglers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Optional

from . import _cdist
from ._arguments import Rule, Unfit, checked
from ._prometheus import register
from .constants import Collective


if TYPE_CHECKING:
    from .strategy import Strategy


class Straggler(NamedTuple):
    """How often a replica was the last to come to the rounds of one tag, collective and group."""

    collective: Collective
    group: int
    """Which group of replicas met; 0: all."""
    replica: int
    """-1: the worker itself, outside of its replicas' functions."""
    worker: int
    """The replica's; 0 in a strategy of one process."""
    rounds: int
    """Of this tag, collective and group, whoever was last."""
    times_last: int
    mean_late_ns: int
    """How long all others, all there, waited for it."""
    max_late_ns: int
    tag: str


def _fit_registry(given: Any) -> Any:
    if given is None or callable(getattr(given, "register", None)):
        return given
    raise Unfit(given, _A_REGISTRY)


_A_REGISTRY = "a prometheus_client.CollectorRegistry or None"
Registry = Annotated[Any, Rule(_fit_registry, _A_REGISTRY)]
"""Of prometheus_client, which has types, but need not be installed."""


@checked
class Inspection:
    """See Strategy."""

    _part_of = "Strategy"

    def _native(self, name: str = "Strategy") -> int:
        raise NotImplementedError

    def explain(self) -> str:
        """What the strategy came to on this machine, and why: lines for people."""
        text = _cdist.Text()
        text.explain(self._native("Strategy.explain"))
        return str(text.text())

    def write_trace(self) -> str:
        """What the flight recorder holds as a trace for Perfetto or chrome://tracing: JSON."""
        text = _cdist.Text()
        text.write_trace(self._native("Strategy.write_trace"))
        return str(text.text())

    def write_metrics(self, name: Optional[str] = None) -> str:
        """Counters and gauges in Prometheus' text format; `name` becomes the label `strategy`."""
        text = _cdist.Text()
        text.write_metrics(self._native("Strategy.write_metrics"), name)
        return str(text.text())

    def register_metrics(self, registry: Registry = None, name: Optional[str] = None) -> None:
        """Adds write_metrics() to the pages of a prometheus_client registry, until the strategy is closed.

        registry: a CollectorRegistry; None: prometheus_client.REGISTRY. name: the label `strategy`, by which a program with
        several strategies tells them apart.
        """
        self._native("Strategy.register_metrics")
        register(self._self(), registry, name)

    def _self(self) -> Strategy:
        raise NotImplementedError

    def stragglers(self) -> list[Straggler]:
        """Who comes last: a table over the rounds that the recorder still holds, most often last first."""
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
