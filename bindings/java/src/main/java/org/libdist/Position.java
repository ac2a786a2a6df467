// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.dist_position;

/**
 * Where a pass over a dataset is: plain numbers, to be kept wherever the program likes.
 *
 * @param pass its number: shuffled orders depend on it
 * @param elements of the source, that are used up
 * @param examples of the element after them, where one is cut into several batches
 * @param batches made of them
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
