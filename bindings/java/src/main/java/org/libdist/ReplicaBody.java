// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * The function that runs once on every replica.
 *
 * @param <X> what it may throw; of a lambda the compiler finds it out
 */
@FunctionalInterface
public interface ReplicaBody<X extends Exception> {
    /**
     * @param replica this replica; valid until the function returns
     */
    void run(Replica replica) throws X;
}
