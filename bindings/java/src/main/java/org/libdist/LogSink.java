// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Takes the lines that libdist has to say. Called from any thread; must not call libdist.
 */
@FunctionalInterface
public interface LogSink {
    /** One line without its end. */
    void log(LogLevel level, String line);
}
