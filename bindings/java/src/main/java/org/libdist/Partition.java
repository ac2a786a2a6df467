// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Arrays;
import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_partition;

/**
 * Which part of a tensor each logical device of a replica has. Immutable: each method gives another
 * partition. That it fits together {@link #check} says, and whoever uses it.
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
     * Each has a tile.
     *
     * @param shape of the tensor; -1: a size that is not known
     * @param dimensions into how many parts each dimension is split
     */
    public static Partition split(int numLogicalDevices, long[] shape, long[] dimensions) {
        return new Partition(PartitionKind.SPLIT, numLogicalDevices, shape.clone(), dimensions.clone(), 0,
                false, false);
    }

    /** One has all of it. */
    public static Partition assign(int numLogicalDevices, long[] shape, int logicalDevice) {
        return new Partition(PartitionKind.ASSIGN, numLogicalDevices, shape.clone(), new long[0],
                logicalDevice, false, false);
    }

    /** Each has all of it. */
    public static Partition replicate(int numLogicalDevices, long[] shape) {
        return new Partition(
                PartitionKind.REPLICATE, numLogicalDevices, shape.clone(), new long[0], 0, false, false);
    }

    /** SPLIT: whether sizes that do not divide are split as evenly as possible. */
    public Partition uneven(boolean uneven) {
        return new Partition(kind, numLogicalDevices, shape, dimensions, logicalDevice, uneven, spmd);
    }

    /** Whether one program runs on all logical devices, so that ASSIGN is refused. */
    public Partition spmd(boolean spmd) {
        return new Partition(kind, numLogicalDevices, shape, dimensions, logicalDevice, uneven, spmd);
    }

    /** What a sharded value has told; borrowed from it. */
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

    /** How it is divided. */
    public PartitionKind kind() {
        return kind;
    }

    /** How many logical devices a replica has. */
    public int numLogicalDevices() {
        return numLogicalDevices;
    }

    /** The tensor's shape. */
    public long[] shape() {
        return shape.clone();
    }

    /** SPLIT: into how many parts each dimension is split. */
    public long[] dimensions() {
        return dimensions.clone();
    }

    /** ASSIGN: which of them has the tensor. */
    public int logicalDevice() {
        return logicalDevice;
    }

    /** See {@link #uneven(boolean)}. */
    public boolean isUneven() {
        return uneven;
    }

    /** See {@link #spmd(boolean)}. */
    public boolean isSpmd() {
        return spmd;
    }

    /** Throws INVALID_ARGUMENT where a tensor cannot be partitioned so, by TensorFlow's checks. */
    public void check() {
        try (Uses uses = new Uses()) {
            DistModule.dist_partition_check(toNative(uses));
        }
    }

    /**
     * What a logical device has of a tensor; what depends on an unknown size is -1.
     *
     * @param tile the index of its tile, for each dimension
     * @param begin where it begins, in each dimension
     * @param size how many elements it has, in each dimension
     * @param elements and in all
     */
    public record Shard(long[] tile, long[] begin, long[] size, long elements) {}

    /** What a logical device has of the tensor. */
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
     * How many bytes {@link Replica#reshard} from this partition to another brings to a logical device from
     * others.
     *
     * @param logicalDevice -1: to all of them together
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

    /** "SPLIT[4, 1] of [8, 6]". */
    @Override
    public String toString() {
        String how = kind == PartitionKind.SPLIT ? Arrays.toString(dimensions)
                : kind == PartitionKind.ASSIGN   ? "(" + logicalDevice + ")"
                                                 : "";
        return kind + how + " of " + Arrays.toString(shape);
    }
}
