// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The severity of a log line. */
public enum LogLevel {
    /** Something failed. */
    ERROR(0x1401),
    /** Something may fail. */
    WARNING(0x1402),
    /** Information for diagnosis. */
    INFO(0x1403);

    final int code;

    LogLevel(int code) {
        this.code = code;
    }

    static LogLevel of(int code) {
        return switch (code) {
            case 0x1401 -> ERROR;
            case 0x1402 -> WARNING;
            case 0x1403 -> INFO;
            default -> throw new DistException(Status.INTERNAL, "LogLevel: libdist gave " + code);
        };
    }
}
