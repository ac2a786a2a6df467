// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.dist_position;

/**
 * The position of a pass over a dataset: plain numbers, which the program can store anywhere.
 *
 * @param pass number of the pass; shuffled orders depend on it
 * @param elements elements of the source that have been used up
 * @param examples examples used of the next element, if one element is split into several batches
 * @param batches batches made so far
 */
public record Position(long pass, long elements, long examples, long batches) {
    static Position of(dist_position position) {
        return new Position(
                position.getPass(), position.getElements(), position.getExamples(), position.getBatches());
    }

    dist_position toNative(Uses uses) {
        dist_position position = new dist_position();
        uses.defer(position::delete);
        position.setPass(pass);
        position.setElements(elements);
        position.setExamples(examples);
        position.setBatches(batches);
        return position;
    }
}
