// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * A function that runs once on every replica.
 *
 * @param <X> the type of exception that it may throw; inferred for lambdas
 */
@FunctionalInterface
public interface RunFunction<X extends Exception> {
    /**
     * Runs on one replica.
     *
     * @param replica this replica; valid until the function returns
     */
    void call(Replica replica) throws X;
}
