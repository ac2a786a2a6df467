// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModuleConstants;

/** What a metric computes over all updates of all replicas. */
public enum MetricKind {
    /** The sum of w * x. */
    SUM(DistModuleConstants.DIST_METRIC_SUM),
    /** That, divided by the sum of w. */
    MEAN(DistModuleConstants.DIST_METRIC_MEAN),
    /** The share of updates whose label is the prediction. */
    ACCURACY(DistModuleConstants.DIST_METRIC_ACCURACY);

    final int code;

    MetricKind(int code) {
        this.code = code;
    }

    static MetricKind of(int code) {
        return values()[code - 1];
    }
}
