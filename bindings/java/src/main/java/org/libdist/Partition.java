// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Arrays;
import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_partition;

/**
 * Specifies which part of a tensor each logical device of a replica has. Immutable: each method returns a new
 * partition. {@link #check}, and every call that uses a partition, verify that it is consistent.
 *
 * <pre>{@code
 * Partition rows = Partition.split(4, new long[] {8, 6}, new long[] {4, 1});
 * rows.shard(3); // begins at row 6
 * }</pre>
 */
public final class Partition {
    private final PartitionKind kind;
    private final int numLogicalDevices;
    private final long[] shape;
    private final long[] dimensions;
    private final int logicalDevice;
    private final boolean uneven;
    private final boolean spmd;

    private Partition(PartitionKind kind, int numLogicalDevices, long[] shape, long[] dimensions,
            int logicalDevice, boolean uneven, boolean spmd) {
        this.kind = kind;
        this.numLogicalDevices = numLogicalDevices;
        this.shape = shape;
        this.dimensions = dimensions;
        this.logicalDevice = logicalDevice;
        this.uneven = uneven;
        this.spmd = spmd;
    }

    /**
     * Returns a partition in which each device has a tile.
     *
     * @param shape the shape of the tensor; -1 for a size that is not known
     * @param dimensions the number of parts of each dimension
     */
    public static Partition split(int numLogicalDevices, long[] shape, long[] dimensions) {
        return new Partition(PartitionKind.SPLIT, numLogicalDevices, shape.clone(), dimensions.clone(), 0,
                false, false);
    }

    /** Returns a partition in which one device has the whole tensor. */
    public static Partition assign(int numLogicalDevices, long[] shape, int logicalDevice) {
        return new Partition(PartitionKind.ASSIGN, numLogicalDevices, shape.clone(), new long[0],
                logicalDevice, false, false);
    }

    /** Returns a partition in which each device has the whole tensor. */
    public static Partition replicate(int numLogicalDevices, long[] shape) {
        return new Partition(
                PartitionKind.REPLICATE, numLogicalDevices, shape.clone(), new long[0], 0, false, false);
    }

    /** SPLIT: sets whether sizes that are not divisible are split as evenly as possible. */
    public Partition uneven(boolean uneven) {
        return new Partition(kind, numLogicalDevices, shape, dimensions, logicalDevice, uneven, spmd);
    }

    /** Sets whether one program runs on all logical devices; ASSIGN is then rejected. */
    public Partition spmd(boolean spmd) {
        return new Partition(kind, numLogicalDevices, shape, dimensions, logicalDevice, uneven, spmd);
    }

    /** Returns the partition that a sharded value has described. */
    static Partition of(dist_partition raw) {
        return new Partition(PartitionKind.of(raw.getKind()), raw.getNum_logical_devices(),
                Coordinates.asked(n -> n.partition_shape(raw)),
                Coordinates.asked(n -> n.partition_dimensions(raw)), raw.getLogical_device(),
                raw.getUneven() != 0, raw.getSpmd() != 0);
    }

    dist_partition toNative(Uses uses) {
        dist_partition raw = new dist_partition();
        uses.defer(raw::delete);
        raw.setKind(kind.code);
        raw.set_shape(shape, shape.length);
        if (dimensions.length > 0) {
            raw.set_dimensions(dimensions, dimensions.length);
        }
        raw.setNum_logical_devices(numLogicalDevices);
        raw.setLogical_device(logicalDevice);
        raw.setUneven(uneven ? 1 : 0);
        raw.setSpmd(spmd ? 1 : 0);
        return raw;
    }

    /** Returns the kind of division. */
    public PartitionKind kind() {
        return kind;
    }

    /** Returns the number of logical devices of a replica. */
    public int numLogicalDevices() {
        return numLogicalDevices;
    }

    /** Returns the shape of the tensor. */
    public long[] shape() {
        return shape.clone();
    }

    /** SPLIT: returns the number of parts of each dimension. */
    public long[] dimensions() {
        return dimensions.clone();
    }

    /** ASSIGN: returns the device that has the tensor. */
    public int logicalDevice() {
        return logicalDevice;
    }

    /** Returns the setting of {@link #uneven(boolean)}. */
    public boolean isUneven() {
        return uneven;
    }

    /** Returns the setting of {@link #spmd(boolean)}. */
    public boolean isSpmd() {
        return spmd;
    }

    /**
     * Throws INVALID_ARGUMENT if a tensor cannot be partitioned in this way. The checks are those of
     * TensorFlow.
     */
    public void check() {
        try (Uses uses = new Uses()) {
            DistModule.dist_partition_check(toNative(uses));
        }
    }

    /**
     * The part of a tensor that a logical device has. Values that depend on an unknown size are -1.
     *
     * @param tile index of the tile, for each dimension
     * @param begin first element, in each dimension
     * @param size number of elements, in each dimension
     * @param elements total number of elements
     */
    public record Shard(long[] tile, long[] begin, long[] size, long elements) {}

    /** Returns the part of the tensor that a logical device has. */
    public Shard shard(int logicalDevice) {
        try (Uses uses = new Uses()) {
            dist_partition raw = toNative(uses);
            long[] all = Coordinates.asked(n -> n.partition_shard(raw, logicalDevice));
            int ndim = shape.length;
            return new Shard(Arrays.copyOf(all, ndim), Arrays.copyOfRange(all, ndim, 2 * ndim),
                    Arrays.copyOfRange(all, 2 * ndim, 3 * ndim), all[3 * ndim]);
        }
    }

    /**
     * Returns the number of bytes that {@link Replica#reshard} from this partition to another moves to a
     * logical device from others.
     *
     * @param logicalDevice -1 means all devices together
     */
    public long reshardBytes(Partition to, DType dtype, int logicalDevice) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_reshard_bytes(
                    toNative(uses), to.toNative(uses), dtype.code, logicalDevice, out);
            return out[0];
        }
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof Partition)) {
            return false;
        }
        Partition that = (Partition) other;
        return kind == that.kind && numLogicalDevices == that.numLogicalDevices
                && Arrays.equals(shape, that.shape) && Arrays.equals(dimensions, that.dimensions)
                && logicalDevice == that.logicalDevice && uneven == that.uneven && spmd == that.spmd;
    }

    @Override
    public int hashCode() {
        return Objects.hash(kind, numLogicalDevices, Arrays.hashCode(shape), Arrays.hashCode(dimensions),
                logicalDevice, uneven, spmd);
    }

    /** Returns a text such as "SPLIT[4, 1] of [8, 6]". */
    @Override
    public String toString() {
        String how = kind == PartitionKind.SPLIT ? Arrays.toString(dimensions)
                : kind == PartitionKind.ASSIGN   ? "(" + logicalDevice + ")"
                                                 : "";
        return kind + how + " of " + Arrays.toString(shape);
    }
}
