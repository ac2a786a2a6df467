// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Creates the dataset of one input pipeline; see {@link Dataset#fromFunction}.
 *
 * @param <X> the type of exception that it may throw; inferred for lambdas
 */
@FunctionalInterface
public interface DatasetFunction<X extends Exception> {
    /** Returns a dataset. libdist takes ownership of it: the returned object is closed. */
    Dataset call(InputContext context) throws X;
}
