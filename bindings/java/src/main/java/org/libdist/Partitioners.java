// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;

/**
 * Computes into how many parts a variable is divided along one of its dimensions, and the rows of each part.
 * The results are those of TensorFlow's partitioners. A negative axis counts from the end. All other
 * dimensions have one part.
 */
public final class Partitioners {
    /** TensorFlow's default for {@link #minSize}. */
    public static final long MIN_SHARD_BYTES = DistModuleConstants.DIST_PARTITIONER_MIN_SHARD_BYTES;
    /** TensorFlow's default for {@link #minSize}. */
    public static final int MAX_SHARDS = DistModuleConstants.DIST_PARTITIONER_MAX_SHARDS;
    /** The size that TensorFlow assumes for a text. */
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

    /**
     * Divides a dimension into numShards parts, or into one part per element if the dimension has fewer
     * elements.
     */
    public static long[] fixedShards(long[] shape, int axis, int numShards) {
        return divided(shape,
                (sizes, ndim, out)
                        -> DistModule.partitions_fixed_shards(sizes, ndim, axis, numShards, out));
    }

    /**
     * Divides a dimension into as many parts as possible with about minShardBytes each, at least 1 and at
     * most maxShards.
     */
    public static long[] minSize(
            long[] shape, int axis, long elementBytes, long minShardBytes, int maxShards) {
        return divided(shape,
                (sizes, ndim, out)
                        -> DistModule.partitions_min_size(
                                sizes, ndim, axis, elementBytes, minShardBytes, maxShards, out));
    }

    /**
     * Divides a dimension into as few parts as possible with at most maxShardBytes each.
     *
     * @param maxShards maximum number of parts; 0 means no limit
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
     * @param begin the first row
     * @param size the number of rows
     */
    public record Rows(long begin, long size) {}

    /** Returns the rows of one part of a divided dimension. */
    public static Rows rowsOfPart(long numRows, long numParts, long part) {
        long[] begin = new long[1];
        long[] size = new long[1];
        DistModule.dist_partitions_part(numRows, numParts, part, begin, size);
        return new Rows(begin[0], size[0]);
    }

    /**
     * The place of a row.
     *
     * @param part the part in which it lies
     * @param offset the index of the row in that part
     */
    public record RowPlace(long part, long offset) {}

    /** Returns the part in which a row lies, and its index there. */
    public static RowPlace partOfRow(long numRows, long numParts, long row) {
        long[] part = new long[1];
        long[] offset = new long[1];
        DistModule.dist_partitions_part_of(numRows, numParts, row, part, offset);
        return new RowPlace(part[0], offset[0]);
    }
}
