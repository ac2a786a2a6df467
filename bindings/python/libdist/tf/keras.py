# SPDX-License-Identifier: Apache-2.0
"""A small tf.keras: its metrics."""

from . import metrics
from ._missing import missing

__getattr__ = missing("tf.keras")

__all__ = ["metrics"]
