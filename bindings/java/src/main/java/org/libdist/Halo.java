// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Arrays;
import org.libdist.internal.dist_halo;

/**
 * The width of the halo around each logical device's tile of a tensor. Immutable: each method returns a new
 * halo.
 *
 * <pre>{@code
 * Halo rows = Halo.of(4, 1).low(1, 0).high(1, 0).edges(Edge.WRAP, Edge.ZERO); // 4 tiles, one row around each
 * }</pre>
 */
public final class Halo {
    private final long[] parts;
    private final long[] low;
    private final long[] high;
    private final Edge[] edges;

    private Halo(long[] parts, long[] low, long[] high, Edge[] edges) {
        this.parts = parts;
        this.low = low;
        this.high = high;
        this.edges = edges;
    }

    /**
     * Creates a halo of width 0, with the given number of tiles in each dimension. Zeros are beyond the
     * edges.
     */
    public static Halo of(long... parts) {
        Edge[] edges = new Edge[parts.length];
        Arrays.fill(edges, Edge.ZERO);
        return new Halo(parts.clone(), new long[parts.length], new long[parts.length], edges);
    }

    /** Sets the number of elements before the tile, for each dimension. */
    public Halo low(long... widths) {
        check(widths.length);
        return new Halo(parts, widths.clone(), high, edges);
    }

    /** Sets the number of elements after the tile, for each dimension. */
    public Halo high(long... widths) {
        check(widths.length);
        return new Halo(parts, low, widths.clone(), edges);
    }

    /** Sets the content beyond the edges of the whole tensor, for each dimension. */
    public Halo edges(Edge... edges) {
        check(edges.length);
        return new Halo(parts, low, high, edges.clone());
    }

    private void check(int length) {
        if (length != parts.length) {
            throw new IllegalArgumentException(length + " numbers for " + parts.length + " dimensions");
        }
    }

    dist_halo toNative(Uses uses) {
        dist_halo halo = new dist_halo();
        uses.defer(halo::delete);
        halo.set_parts(parts, parts.length);
        halo.set_low(low, low.length);
        halo.set_high(high, high.length);
        int[] codes = Arrays.stream(edges).mapToInt(edge -> edge.code).toArray();
        halo.set_edges(codes, codes.length);
        return halo;
    }
}
