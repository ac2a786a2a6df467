// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * A function that one replica runs, and what it gives: see {@link Strategy#submit}.
 *
 * @param <T> what it gives
 */
@FunctionalInterface
public interface ReplicaFunction<T> {
    /**
     * @param replica this replica; valid until the function returns
     */
    T call(Replica replica) throws Exception;
}
