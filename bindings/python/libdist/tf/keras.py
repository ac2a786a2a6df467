# SPDX-License-Identifier: Apache-2.0
"""tf.keras in the small: its metrics."""

from . import metrics

__all__ = ["metrics"]
