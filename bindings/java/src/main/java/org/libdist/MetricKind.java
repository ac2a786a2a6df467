// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The number that a metric computes over all updates of all replicas. */
public enum MetricKind {
    /** The sum of w * x. */
    SUM(0x1501),
    /** The sum of w * x, divided by the sum of w. */
    MEAN(0x1502),
    /** The fraction of predictions that equal their labels. */
    ACCURACY(0x1503);

    final int code;

    MetricKind(int code) {
        this.code = code;
    }

    static MetricKind of(int code) {
        return switch (code) {
            case 0x1501 -> SUM;
            case 0x1502 -> MEAN;
            case 0x1503 -> ACCURACY;
            default -> throw new DistException(Status.INTERNAL, "MetricKind: libdist gave " + code);
        };
    }
}
