# SPDX-License-Identifier: Apache-2.0
"""The coordinator of a ParameterServerStrategy, which reports the loss of a parameter server like TensorFlow."""

from __future__ import annotations

import functools
import re
from contextlib import contextmanager
from typing import Any, Callable, Iterator

import libdist

# A closure can fail with Aborted too, and no field of an error distinguishes the two.
_LOST = re.compile(r"parameter server \d+ at \S+ is lost\b")


class ParameterServerLost(libdist.Unavailable, libdist.Aborted):
    """A parameter server is lost: tf.errors.UnavailableError, as in TensorFlow, and libdist.Aborted."""

    status = libdist.Status.UNAVAILABLE


@contextmanager
def reporting_losses() -> Iterator[None]:
    """Raises ParameterServerLost in place of libdist's error for a lost parameter server."""
    try:
        yield
    except libdist.Aborted as error:
        if isinstance(error, ParameterServerLost) or not _LOST.search(error.message):
            raise
        raise ParameterServerLost(error.message, worker=error.worker, hint=error.hint) from error


def _reporting(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        with reporting_losses():
            return method(*args, **kwargs)

    return called


class JobCoordinator(libdist.Coordinator):
    """A libdist.Coordinator that raises ParameterServerLost."""


for _name in (
    "assign",
    "create_per_worker",
    "create_variable",
    "done",
    "join",
    "read",
    "read_rows",
    "scatter",
    "schedule",
):
    setattr(JobCoordinator, _name, _reporting(getattr(libdist.Coordinator, _name)))
