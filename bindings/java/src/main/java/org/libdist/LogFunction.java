// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import java.util.function.Consumer;

/** Receives libdist's log lines. Called from any thread. It must not call libdist. */
@FunctionalInterface
public interface LogFunction {
    /** Receives one line, without a line terminator. */
    void call(LogLevel level, String line);

    /**
     * Returns a function that passes the lines of each level to a function of a logger, for example of SLF4J:
     * {@code LogFunction.of(logger::error, logger::warn, logger::info)}.
     */
    static LogFunction of(Consumer<String> error, Consumer<String> warning, Consumer<String> info) {
        Objects.requireNonNull(error, "error");
        Objects.requireNonNull(warning, "warning");
        Objects.requireNonNull(info, "info");
        return (level, line) -> (switch (level) {
            case ERROR -> error;
            case WARNING -> warning;
            case INFO -> info;
        }).accept(line);
    }
}
