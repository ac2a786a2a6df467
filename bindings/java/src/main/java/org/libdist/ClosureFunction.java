// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** A function that workers run; see {@link Server#register}. */
@FunctionalInterface
public interface ClosureFunction {
    /**
     * Receives the value that was scheduled with it, of kind NONE if there was none; both arguments are
     * closed when it returns. Returns a result, or null for none. If it throws, no parameter server changes
     * anything, and the coordinator receives the status and message of a {@link DistException}, or UNKNOWN
     * and the text of another exception. If {@link ServerOptions#numThreads} is above 1, it is called on
     * several threads at the same time. Use {@link Strategy#current} to create values.
     */
    Value call(Closure closure, Value arguments) throws Exception;
}
