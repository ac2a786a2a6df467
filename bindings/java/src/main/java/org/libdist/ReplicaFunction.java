// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * A function that one replica runs, with a result; see {@link Strategy#submit}.
 *
 * @param <T> the type of the result
 */
@FunctionalInterface
public interface ReplicaFunction<T> {
    /**
     * Runs on one replica and returns a result.
     *
     * @param replica this replica; valid until the function returns
     */
    T call(Replica replica) throws Exception;
}
