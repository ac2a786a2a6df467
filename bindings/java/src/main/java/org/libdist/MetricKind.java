// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The number that a metric computes over all updates of all replicas. */
public enum MetricKind {
    /** The sum of w * x. */
    SUM(1),
    /** That, divided by the sum of w. */
    MEAN(2),
    /** The fraction of predictions that equal their labels. */
    ACCURACY(3);

    final int code;

    MetricKind(int code) {
        this.code = code;
    }

    static MetricKind of(int code) {
        return switch (code) {
            case 1 -> SUM;
            case 2 -> MEAN;
            case 3 -> ACCURACY;
            default -> throw new DistException(Status.INTERNAL, "MetricKind: libdist gave " + code);
        };
    }
}
