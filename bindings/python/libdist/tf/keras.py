# SPDX-License-Identifier: Apache-2.0
"""tf.keras in the small: its metrics."""

from . import metrics
from ._missing import missing

__getattr__ = missing("tf.keras")

__all__ = ["metrics"]
