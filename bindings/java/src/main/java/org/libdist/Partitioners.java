// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;

/**
 * Into how many parts a variable is divided along one of its dimensions, and which rows each part has:
 * arithmetic, with the answers of TensorFlow's partitioners. A negative axis counts from the end; every other
 * dimension has one part.
 */
public final class Partitioners {
    /** TensorFlow's default of {@link #minSize}. */
    public static final long MIN_SHARD_BYTES = DistModuleConstants.DIST_PARTITIONER_MIN_SHARD_BYTES;
    /** TensorFlow's default of {@link #minSize}. */
    public static final int MAX_SHARDS = DistModuleConstants.DIST_PARTITIONER_MAX_SHARDS;
    /** The size that TensorFlow takes a text to have. */
    public static final long BYTES_PER_TEXT = DistModuleConstants.DIST_PARTITIONER_BYTES_PER_TEXT;

    private Partitioners() {}

    @FunctionalInterface
    private interface Divide {
        void into(long[] shape, long ndim, long[] out);
    }

    private static long[] divided(long[] shape, Divide divide) {
        long[] out = new long[Objects.requireNonNull(shape, "shape").length];
        divide.into(shape, shape.length, out);
        return out;
    }

    /** numShards parts, or one for each element of the dimension where that has fewer. */
    public static long[] fixedShards(long[] shape, int axis, int numShards) {
        return divided(shape,
                (sizes, ndim, out)
                        -> DistModule.partitions_fixed_shards(sizes, ndim, axis, numShards, out));
    }

    /** As many parts as all elements have minShardBytes, but at least 1 and at most maxShards. */
    public static long[] minSize(
            long[] shape, int axis, long elementBytes, long minShardBytes, int maxShards) {
        return divided(shape,
                (sizes, ndim, out)
                        -> DistModule.partitions_min_size(
                                sizes, ndim, axis, elementBytes, minShardBytes, maxShards, out));
    }

    /**
     * As few parts as have at most maxShardBytes each.
     *
     * @param maxShards the most parts; 0: any number
     */
    public static long[] maxSize(
            long[] shape, int axis, long elementBytes, long maxShardBytes, int maxShards) {
        return divided(shape,
                (sizes, ndim, out)
                        -> DistModule.partitions_max_size(
                                sizes, ndim, axis, elementBytes, maxShardBytes, maxShards, out));
    }

    /**
     * The rows of a part.
     *
     * @param begin the first one
     * @param size how many
     */
    public record Rows(long begin, long size) {}

    /** Which rows a part of a divided dimension has. */
    public static Rows rowsOfPart(long numRows, long numParts, long part) {
        long[] begin = new long[1];
        long[] size = new long[1];
        DistModule.dist_partitions_part(numRows, numParts, part, begin, size);
        return new Rows(begin[0], size[0]);
    }

    /**
     * Where a row is.
     *
     * @param part the part that it lies in
     * @param offset which row of that part it is
     */
    public record RowPlace(long part, long offset) {}

    /** Which part a row lies in, and where. */
    public static RowPlace partOfRow(long numRows, long numParts, long row) {
        long[] part = new long[1];
        long[] offset = new long[1];
        DistModule.dist_partitions_part_of(numRows, numParts, row, part, offset);
        return new RowPlace(part[0], offset[0]);
    }
}
