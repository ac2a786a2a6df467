// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The severity of a log line. */
public enum LogLevel {
    /** Something failed. */
    ERROR(1),
    /** Something may fail. */
    WARNING(2),
    /** For who looks. */
    INFO(3);

    final int code;

    LogLevel(int code) {
        this.code = code;
    }

    static LogLevel of(int code) {
        return switch (code) {
            case 1 -> ERROR;
            case 2 -> WARNING;
            case 3 -> INFO;
            default -> throw new DistException(Status.INTERNAL, "LogLevel: libdist gave " + code);
        };
    }
}
