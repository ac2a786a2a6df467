// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Optional;
import java.util.OptionalInt;

/**
 * Your own cluster resolver, for {@link ClusterResolver#fromFunctions}. If a method is not overridden, the option is
 * used, or the answer is not known. Options take precedence over functions. Several threads may call it at
 * the same time. A function may call libdist, but not the resolver itself. Exceptions that it throws are
 * rethrown by the query.
 */
@FunctionalInterface
public interface ResolverFunctions {
    /** Returns the cluster. The function keeps ownership of the spec. */
    ClusterSpec spec() throws Exception;

    /** Returns the job of this process; empty if it is not known. */
    default Optional<String> taskType() throws Exception {
        return Optional.empty();
    }

    /** Returns the index of this process in its job; empty if it is not known. */
    default OptionalInt taskId() throws Exception {
        return OptionalInt.empty();
    }

    /** Returns the prefix of addresses; empty if it is not known. */
    default Optional<String> rpcLayer() throws Exception {
        return Optional.empty();
    }

    /** Returns the platform on which the cluster runs; empty if it is not known. */
    default Optional<String> environment() throws Exception {
        return Optional.empty();
    }

    /** Returns the address to connect to; see {@link ClusterResolver#master(String, OptionalInt, String)}. */
    default String master(String taskType, OptionalInt taskId, String rpcLayer) throws Exception {
        throw new UnsupportedOperationException("master");
    }

    /** Returns the number of accelerators of a task. */
    default int numAccelerators(String taskType, OptionalInt taskId) throws Exception {
        throw new UnsupportedOperationException("numAccelerators");
    }
}
