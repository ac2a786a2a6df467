# SPDX-License-Identifier: Apache-2.0
"""Metrics of strategies in a registry of prometheus_client. The package is needed only when this is used."""

from __future__ import annotations

import importlib
import threading
import weakref
from typing import TYPE_CHECKING, Any, Iterable, Optional

from .errors import FailedPrecondition

if TYPE_CHECKING:
    from .strategy import Strategy


class Collector:
    """The strategies of one registry, in one collector, because a page may contain each family of metrics only once."""

    def __init__(self) -> None:
        self._names: weakref.WeakKeyDictionary[Strategy, Optional[str]] = weakref.WeakKeyDictionary()

    def add(self, strategy: Strategy, name: Optional[str]) -> None:
        self._names[strategy] = name

    def describe(self) -> Iterable[Any]:
        """Returns no names, because strategies are added and closed at any time."""
        return ()

    def collect(self) -> Iterable[Any]:
        """Called by the registry for each page."""
        parser = importlib.import_module("prometheus_client.parser")
        families: dict[str, Any] = {}
        for strategy, name in list(self._names.items()):
            try:
                page = strategy.write_metrics(name)
            except FailedPrecondition:  # the strategy is closed
                continue
            for family in parser.text_string_to_metric_families(page):
                families.setdefault(family.name, family)
                if families[family.name] is not family:
                    families[family.name].samples.extend(family.samples)
        return families.values()


_lock = threading.Lock()
_collectors: weakref.WeakKeyDictionary[Any, Collector] = weakref.WeakKeyDictionary()


def register(strategy: Strategy, registry: Any, name: Optional[str]) -> None:
    """Adds a strategy to the collector of a registry; None = the default registry."""
    if registry is None:
        registry = importlib.import_module("prometheus_client").REGISTRY
    with _lock:
        collector = _collectors.get(registry)
        if collector is None:
            collector = Collector()
            registry.register(collector)
            _collectors[registry] = collector
        collector.add(strategy, name)
