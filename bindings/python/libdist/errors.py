# SPDX-License-Identifier: Apache-2.0
"""The exceptions: one class for each status, with the report as attributes."""

from __future__ import annotations

from typing import Any

from . import _cdist
from ._arguments import checked
from .constants import Collective, Status


class DistError(Exception):
    """A failure that libdist reports. str() returns the complete message.

    Your own functions may raise these classes too. The class then determines the status that other replicas and workers
    see.
    """

    status: Status = Status.UNKNOWN
    """The status of the error."""

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
        """The message: what failed, with the values; what was expected; and what to do."""
        self.worker = worker
        """The worker at fault; 0 in a strategy of one process."""
        self.replica = replica
        """The id of the replica at fault; -1 = none."""
        self.collective = Collective(collective) if collective in _COLLECTIVES else collective
        """The collective in which the error was detected."""
        self.group = group
        """Number of the group of replicas; 0 = all replicas."""
        self.sequence = sequence
        """Number of the collective in this run, from 1; 0 = outside a collective."""
        self.tag = tag
        """The tag of the collective."""
        self.expected = expected
        """What most replicas, or the one with the lowest id, requested; of an argument, what it must be."""
        self.received = received
        """What the replica at fault requested, or that it left or did not arrive; of an argument, what it is."""
        self.hint = hint
        """How to fix the error."""
        self.logical_device = logical_device
        """The logical device of the replica at fault; -1 = the whole replica."""
        self.function = function
        """The function of this package that failed."""
        self.parameter = parameter
        """The argument or option at fault."""
        self._told = ""  # libdist's message with its marks; "" if the exception was created in Python

    def __str__(self) -> str:
        return self.message


_COLLECTIVES = frozenset(int(collective) for collective in Collective)


class Cancelled(DistError):
    """The call was cancelled."""

    status = Status.CANCELLED


class Unknown(DistError):
    """A function of your own failed. Where its exception is available, it is raised instead of this one."""

    status = Status.UNKNOWN


class InvalidArgument(DistError, ValueError):
    """An argument is invalid, whatever the state of the object."""

    status = Status.INVALID_ARGUMENT


class DeadlineExceeded(DistError, TimeoutError):
    """A peer did not arrive, or the call did not complete, in time."""

    status = Status.DEADLINE_EXCEEDED


class NotFound(DistError, LookupError):
    """There is no such key, name or file."""

    status = Status.NOT_FOUND


class AlreadyExists(DistError, ValueError):
    """The name is already in use."""

    status = Status.ALREADY_EXISTS


class PermissionDenied(DistError, PermissionError):
    """The operating system denied access."""

    status = Status.PERMISSION_DENIED


class ResourceExhausted(DistError, MemoryError):
    """Memory or disk space is exhausted, or a thread could not be created."""

    status = Status.RESOURCE_EXHAUSTED


class FailedPrecondition(DistError, RuntimeError):
    """The arguments are valid, but the call is not allowed now: closed, its run has ended, or in the other context."""

    status = Status.FAILED_PRECONDITION


class Aborted(DistError, RuntimeError):
    """A peer failed first; the error names it."""

    status = Status.ABORTED


class OutOfRange(DistError, IndexError):
    """The index is past the end. Iterators raise StopIteration instead."""

    status = Status.OUT_OF_RANGE


class Unimplemented(DistError, NotImplementedError):
    """Not supported by this strategy, dtype or build."""

    status = Status.UNIMPLEMENTED


class Internal(DistError, RuntimeError):
    """A bug in libdist: please report it."""

    status = Status.INTERNAL


class Unavailable(DistError, ConnectionError):
    """A worker or service cannot be reached."""

    status = Status.UNAVAILABLE


class DataLoss(DistError):
    """A file is truncated or corrupt, or the copies of a variable differ."""

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
    """Returns the exception for a status; an Internal for a status that this version does not know."""
    return _CLASSES.get(int(status), Internal)(message, **fields)


# The classes as which exceptions arrive in another process. A TypeError becomes an InvalidArgument, which is a
# ValueError, as in TensorFlow's py_function.
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
    """Returns the exception that another process gets if a function has raised `error`."""
    if isinstance(error, DistError):
        return error_of(error.status, message)
    return next((kind for given, kind in _CARRIED if isinstance(error, given)), Unknown)(message)


@checked
def status_name(status: int) -> str:
    """Returns the name of a status, for example "INVALID_ARGUMENT"; "UNKNOWN_STATUS" if this version does not know it.
    """
    name: str = _cdist.dist_status_name(int(status))
    return name


def _from_record(record: bytes) -> DistError:
    """Converts a record of dist_swig_error() in dist.i to an exception. The native layer calls this."""
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
