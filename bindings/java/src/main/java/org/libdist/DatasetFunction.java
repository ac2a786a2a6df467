// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * Makes the dataset of one input pipeline, see {@link Dataset#fromFunction}.
 *
 * @param <X> what it may throw; of a lambda the compiler finds it out
 */
@FunctionalInterface
public interface DatasetFunction<X extends Exception> {
    /** Returns a dataset, which is taken over: it is closed here. */
    Dataset make(InputContext context) throws X;
}
