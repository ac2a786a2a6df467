// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Optional;
import java.util.OptionalInt;

/**
 * A cluster resolver of your own, for {@link ClusterResolver#host}. What is not overridden is an option, or
 * else not known; options count before functions, too. Several threads may ask at once. A function may call
 * libdist, but not the resolver itself; what it throws comes out of the question.
 */
@FunctionalInterface
public interface ResolverFunctions {
    /** The cluster; the spec stays yours. */
    ClusterSpec spec() throws Exception;

    /** The job of this process; empty: not known. */
    default Optional<String> taskType() throws Exception {
        return Optional.empty();
    }

    /** The index of this process in its job; empty: not known. */
    default OptionalInt taskId() throws Exception {
        return OptionalInt.empty();
    }

    /** What stands before addresses; empty: nothing is known. */
    default Optional<String> rpcLayer() throws Exception {
        return Optional.empty();
    }

    /** A word for where the cluster runs; empty: none. */
    default Optional<String> environment() throws Exception {
        return Optional.empty();
    }

    /** Where to connect to, see {@link ClusterResolver#master(String, OptionalInt, String)}. */
    default String master(String taskType, OptionalInt taskId, String rpcLayer) throws Exception {
        throw new UnsupportedOperationException("master");
    }

    /** How many accelerators a task has. */
    default int numAccelerators(String taskType, OptionalInt taskId) throws Exception {
        throw new UnsupportedOperationException("numAccelerators");
    }
}
