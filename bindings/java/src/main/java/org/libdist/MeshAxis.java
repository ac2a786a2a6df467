// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;

/**
 * A named axis of a replica's logical devices; see {@link StrategyOptions#axes}.
 *
 * @param name the name, for {@link Replica#deviceAxis} and {@link Replica#deviceAxisGroup}
 * @param size the number of logical devices along the axis
 */
public record MeshAxis(String name, int size) {
    /** Creates an axis with a name and a size. */
    public MeshAxis {
        Objects.requireNonNull(name, "name");
    }
}
