// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * A reduction operator of your own. Called on parts of tensors, from several threads at the same time. It
 * must not call libdist, and its result must not depend on how a tensor is split.
 */
@FunctionalInterface
public interface ReduceFunction {
    /** Computes acc[i] = op(acc[i], in[i]) for all i. */
    void call(Elements acc, Elements in);
}
