// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;

/** Rejects lists of a collective and its options that native code would read beyond. */
final class CollectiveChecks {
    private CollectiveChecks() {}

    /** Returns how many lists like {@code out} there are in {@code in}. */
    static long numLists(CollectiveOptions options) {
        return Math.max(1, options.contributions);
    }

    /** Checks that {@code in} has one list like {@code out} for each contribution, and the number of splits. */
    static void sizes(CollectiveOptions options, List<Tensor> in, List<Tensor> out, int numReplicas) {
        long lists = numLists(options);
        if (in != null && out != null && (lists > Integer.MAX_VALUE || in.size() != lists * out.size())) {
            throw new IllegalArgumentException("in has " + in.size() + " tensors and out has " + out.size()
                    + ", but in must have " + (lists == 1 ? "as many as" : lists + " for each of") + " out");
        }
        int members = options.group == null ? numReplicas : options.group.size();
        if (options.splits != null && options.splits.length != members) {
            throw new IllegalArgumentException("splits has " + options.splits.length
                    + " numbers, but must have one for each of " + members + " replicas");
        }
    }

    static void weights(CollectiveOptions options) {
        if (options.weights != null && options.weights.length != numLists(options)) {
            throw new IllegalArgumentException("weights has " + options.weights.length
                    + " numbers, but must have " + numLists(options) + ", one for each contribution");
        }
    }
}
