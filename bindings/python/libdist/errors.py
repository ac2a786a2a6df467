# SPDX-License-Identifier: Apache-2.0
"""What libdist's failures are in Python: one exception class for each status, with the report as fields."""

from __future__ import annotations

from typing import Any

from . import _cdist
from ._arguments import checked
from .constants import Collective, Status


class DistError(Exception):
    """A failure that libdist reports. str() is libdist's text: what was wrong, what was expected, what to try.

    A program may raise these classes too: in a function that libdist calls, the class is the status that the others
    see.
    """

    status: Status = Status.UNKNOWN
    """The kind of failure."""

    def __init__(
        self,
        message: str = "",
        *,
        worker: int = 0,
        replica: int = -1,
        collective: int = Collective.NONE,
        group: int = 0,
        sequence: int = 0,
        tag: str = "",
        expected: str = "",
        received: str = "",
        hint: str = "",
        logical_device: int = -1,
        function: str = "",
        parameter: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        """What was wrong, what was expected, what to try."""
        self.worker = worker
        """The culprit's process; 0 where there is one."""
        self.replica = replica
        """The culprit's id; -1: no replica is to blame."""
        self.collective = Collective(collective) if collective in _COLLECTIVES else collective
        """Where it was noticed."""
        self.group = group
        """Which group of replicas met; 0: all."""
        self.sequence = sequence
        """The collective's number in this run, from 1; 0: outside a collective."""
        self.tag = tag
        """Of the collective."""
        self.expected = expected
        """What the majority, or the lowest id, asked for; of an argument, what it must be."""
        self.received = received
        """What the culprit asked for, or that it left or did not come; of an argument, what it is."""
        self.hint = hint
        """What to try."""
        self.logical_device = logical_device
        """Which of the culprit's logical devices it was; -1: the replica as a whole."""
        self.function = function
        """The function of this package that failed."""
        self.parameter = parameter
        """The argument or option at fault."""
        self._told = ""  # the message with its marks, of libdist itself; "": made in Python

    def __str__(self) -> str:
        return self.message


_COLLECTIVES = frozenset(int(collective) for collective in Collective)


class Cancelled(DistError):
    """The run was cancelled."""

    status = Status.CANCELLED


class Unknown(DistError):
    """A function of the program failed in its own way; its own exception is raised where there is one."""

    status = Status.UNKNOWN


class InvalidArgument(DistError, ValueError):
    """The arguments are wrong whatever the state."""

    status = Status.INVALID_ARGUMENT


class DeadlineExceeded(DistError, TimeoutError):
    """A peer did not arrive, or the run did not end, in time."""

    status = Status.DEADLINE_EXCEEDED


class NotFound(DistError, LookupError):
    """No such key, name or file."""

    status = Status.NOT_FOUND


class AlreadyExists(DistError, ValueError):
    """A name is taken."""

    status = Status.ALREADY_EXISTS


class PermissionDenied(DistError, PermissionError):
    """The system refuses."""

    status = Status.PERMISSION_DENIED


class ResourceExhausted(DistError, MemoryError):
    """No memory, no space, or no thread could be made."""

    status = Status.RESOURCE_EXHAUSTED


class FailedPrecondition(DistError, RuntimeError):
    """Right arguments, wrong moment."""

    status = Status.FAILED_PRECONDITION


class Aborted(DistError, RuntimeError):
    """A peer failed first; the report names it."""

    status = Status.ABORTED


class OutOfRange(DistError, IndexError):
    """Past the end. Iterators end with StopIteration instead."""

    status = Status.OUT_OF_RANGE


class Unimplemented(DistError, NotImplementedError):
    """Not offered by this strategy, dtype or build."""

    status = Status.UNIMPLEMENTED


class Internal(DistError, RuntimeError):
    """A defect of libdist: please report it."""

    status = Status.INTERNAL


class Unavailable(DistError, ConnectionError):
    """A worker or service cannot be reached."""

    status = Status.UNAVAILABLE


class DataLoss(DistError):
    """A file is cut short or corrupt, or the copies of a variable differ."""

    status = Status.DATA_LOSS


_CLASSES: dict[int, type[DistError]] = {
    int(kind.status): kind
    for kind in (
        Cancelled,
        Unknown,
        InvalidArgument,
        DeadlineExceeded,
        NotFound,
        AlreadyExists,
        PermissionDenied,
        ResourceExhausted,
        FailedPrecondition,
        Aborted,
        OutOfRange,
        Unimplemented,
        Internal,
        Unavailable,
        DataLoss,
    )
}


@checked
def error_of(status: int, message: str, **fields: Any) -> DistError:
    """The exception of a status; Internal for a number that this version does not know."""
    return _CLASSES.get(int(status), Internal)(message, **fields)


# In another process an exception arrives as one of libdist's. As in TensorFlow's py_function, a TypeError is an
# InvalidArgument, which is a ValueError.
_CARRIED: tuple[tuple[type[Exception], type[DistError]], ...] = (
    (ValueError, InvalidArgument),
    (TypeError, InvalidArgument),
    (NotImplementedError, Unimplemented),
    (MemoryError, ResourceExhausted),
    (FileNotFoundError, NotFound),
    (FileExistsError, AlreadyExists),
    (PermissionError, PermissionDenied),
)


def carried(error: BaseException, message: str) -> DistError:
    """The exception that another process gets for what a function raised."""
    if isinstance(error, DistError):
        return error_of(error.status, message)
    return next((kind for given, kind in _CARRIED if isinstance(error, given)), Unknown)(message)


@checked
def status_name(status: int) -> str:
    """A status as a word, "INVALID_ARGUMENT"; "UNKNOWN_STATUS" for a number that this version does not have."""
    name: str = _cdist.dist_status_name(int(status))
    return name


def _from_record(record: bytes) -> DistError:
    """The exception of what dist.i's dist_swig_error() wrote; the native layer calls this where a call fails."""
    fields = [field.decode("utf-8", "replace") for field in record.split(b"\0")]
    status, worker, replica, collective, group, sequence = map(int, fields[:6])
    error = error_of(
        status,
        fields[6],
        worker=worker,
        replica=replica,
        collective=collective,
        group=group,
        sequence=sequence,
        tag=fields[7],
        expected=fields[8],
        received=fields[9],
        hint=fields[10],
        logical_device=int(fields[11]),
        function=fields[12],
        parameter=fields[13],
    )
    error._told = fields[14]
    return error


_cdist.set_error_factory(_from_record)
