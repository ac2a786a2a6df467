// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** How contributions become one. */
public enum ReduceOp {
    SUM(1),
    MEAN(2),
    MIN(3),
    MAX(4),
    PROD(5);

    final int code;

    ReduceOp(int code) {
        this.code = code;
    }
}
