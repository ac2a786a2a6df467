// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;

/**
 * A named axis of a replica's logical devices, see {@link StrategyOptions#axes}.
 *
 * @param name for {@link Replica#deviceAxis} and its like
 * @param size how many logical devices there are along it
 */
public record MeshAxis(String name, int size) {
    /** An axis of a name and a size. */
    public MeshAxis {
        Objects.requireNonNull(name, "name");
    }
}
