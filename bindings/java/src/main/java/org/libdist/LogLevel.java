// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModuleConstants;

/** How much a log line matters. */
public enum LogLevel {
    /** Something failed. */
    ERROR(DistModuleConstants.DIST_LOG_ERROR),
    /** Something may fail. */
    WARNING(DistModuleConstants.DIST_LOG_WARNING),
    /** For who looks. */
    INFO(DistModuleConstants.DIST_LOG_INFO);

    final int code;

    LogLevel(int code) {
        this.code = code;
    }

    static LogLevel of(int code) {
        for (LogLevel each : values()) {
            if (each.code == code) {
                return each;
            }
        }
        throw new DistException(Status.INTERNAL, "LogLevel: libdist gave " + code);
    }
}
