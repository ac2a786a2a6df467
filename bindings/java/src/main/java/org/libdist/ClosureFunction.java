// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** A function that workers run, see {@link Server#register}. */
@FunctionalInterface
public interface ClosureFunction {
    /**
     * Gets what was scheduled with it, a value of kind NONE where that was nothing; both end when it returns. Returns a
     * result, or null: nothing. Where it throws, nothing changes on any parameter server, and the coordinator hears of it:
     * of a {@link DistException} the status and the message, of others UNKNOWN and their text. With {@link
     * ServerOptions#numThreads} it is called on several threads at a time. Values are made with {@link Strategy#current}.
     */
    Value call(Closure closure, Value arguments) throws Exception;
}
