# SPDX-License-Identifier: Apache-2.0
"""tf.errors: libdist's exceptions under TensorFlow's names."""

import libdist

from ._missing import missing

__getattr__ = missing("tf.errors")

OpError = libdist.DistError

AbortedError = libdist.Aborted
AlreadyExistsError = libdist.AlreadyExists
CancelledError = libdist.Cancelled
DataLossError = libdist.DataLoss
DeadlineExceededError = libdist.DeadlineExceeded
FailedPreconditionError = libdist.FailedPrecondition
InternalError = libdist.Internal
InvalidArgumentError = libdist.InvalidArgument
NotFoundError = libdist.NotFound
OutOfRangeError = libdist.OutOfRange
PermissionDeniedError = libdist.PermissionDenied
ResourceExhaustedError = libdist.ResourceExhausted
UnavailableError = libdist.Unavailable
UnimplementedError = libdist.Unimplemented
UnknownError = libdist.Unknown

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OpError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
]
