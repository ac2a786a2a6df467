// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * An operator of your own. Called on pieces of a tensor, from several threads at once; must not call libdist,
 * and must give the same bits wherever a tensor is cut.
 */
@FunctionalInterface
public interface Reducer {
    /** acc[i] = op(acc[i], in[i]) for all i. */
    void reduce(Elements acc, Elements in);
}
