// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** Receives libdist's log lines. Called from any thread. It must not call libdist. */
@FunctionalInterface
public interface LogFunction {
    /** Receives one line, without a line terminator. */
    void call(LogLevel level, String line);
}
