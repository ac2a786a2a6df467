// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_collective_options;
import org.libdist.internal.dist_split_options;

/**
 * What a replica of {@link StrategyKind#MESH} does with its logical devices, and what they do with each
 * other; see {@link Replica}.
 *
 * <pre>{@code
 * Value split = replica.splitToLogicalDevices(images, 1, 2, 4, 1); // who has which part of it
 * Value out = replica.runOnDevices(model, Value.createTuple(strategy, split)); // model(device d, shard d)
 * }</pre>
 *
 * A logical device is a {@link Replica} too, with its own {@link Replica#id}, and has the collectives among
 * its replica's devices. What concerns whole replicas is refused there.
 */
public abstract class DeviceContext extends ReplicaContext {
    DeviceContext() {}

    // ---- On a replica ----

    /**
     * Splits a tensor, or each of a nest, over this replica's logical devices. It still reads as the whole;
     * {@link Value#shard} and its items are the shards. Nothing is copied.
     *
     * @param partitionDimensions into how many parts each dimension is split; each size is divisible by its
     *                            parts
     */
    public Value splitToLogicalDevices(Value value, long... partitionDimensions) {
        return splitToLogicalDevices(value, partitionDimensions, false);
    }

    /**
     * As {@link #splitToLogicalDevices(Value, long...)}.
     *
     * @param uneven whether sizes that do not divide are split as evenly as possible
     */
    public Value splitToLogicalDevices(Value value, long[] partitionDimensions, boolean uneven) {
        long replica = active("dist_split_to_logical_devices");
        try (Uses uses = new Uses()) {
            dist_split_options options = new dist_split_options();
            uses.defer(options::delete);
            options.setUneven(uneven ? 1 : 0);
            long[] out = new long[1];
            DistModule.split_to_logical_devices(replica, uses.of(value, "value"), partitionDimensions,
                    partitionDimensions.length, options, out);
            return Value.taken(out[0]);
        }
    }

    /** Gives a tensor, or each of a nest, to one logical device; the others have nothing. */
    public Value assignToLogicalDevice(Value value, int logicalDevice) {
        long replica = active("dist_assign_to_logical_device");
        return value.ask(handle -> {
            long[] out = new long[1];
            DistModule.dist_assign_to_logical_device(replica, handle, logicalDevice, out);
            return Value.taken(out[0]);
        });
    }

    /** Gives a tensor, or each of a nest, to each logical device: all see the same memory. */
    public Value replicateToLogicalDevices(Value value) {
        long replica = active("dist_replicate_to_logical_devices");
        return value.ask(handle -> {
            long[] out = new long[1];
            DistModule.dist_replicate_to_logical_devices(replica, handle, out);
            return Value.taken(out[0]);
        });
    }

    /**
     * Calls a function on every logical device of this replica, at the same time, and waits for all of them.
     * Where the arguments have a sharded tensor, at any depth, each device finds its shard, or nothing of one
     * that is another's. Results of the same structure are joined leaf by leaf: shards become the whole
     * again. For how see dist_run_on_devices().
     *
     * <p>If a device throws, the others' pending and later collectives throw a DistException with ABORTED,
     * and this throws what the device that failed first threw: the same object.
     *
     * @param args a list or tuple; any other value is the only argument; null: none
     * @param kwargs a dictionary; null: none
     * @return the results joined; null: no device gave one
     * @throws X what the function threw
     */
    public <X extends Exception> Value runOnDevices(
            ValuesFunction<X> fn, Value args, Value kwargs, DevicesOptions options) throws X {
        Objects.requireNonNull(fn, "fn");
        long replica = active("dist_run_on_devices");
        long[] out = new long[1];
        new DevicesCall(strategy(), fn::call)
                .<X>runWithin(options.cancel(),
                        (uses, token, cancel) -> DistModule.dist_run_on_devices(replica, token,
                                        Value.arguments(uses, strategy(), args), uses.ofNullable(kwargs),
                                        options.toNative(uses, cancel), out));
        return Value.taken(out[0]);
    }

    /**
     * As {@link #runOnDevices(ValuesFunction, Value, Value, DevicesOptions)}, with positional arguments
     * alone.
     */
    public <X extends Exception> Value runOnDevices(ValuesFunction<X> fn, Value args) throws X {
        return runOnDevices(fn, args, null, DevicesOptions.DEFAULT);
    }

    // ---- On a logical device ----

    /** The replica that this logical device is part of; -1 on a replica itself. */
    public int deviceReplica() {
        return DistModule.dist_device_replica(active("dist_device_replica"));
    }

    /** Where in the topology's mesh this logical device is. */
    public int[] deviceCoordinates() {
        long device = active("dist_device_coordinates");
        return Coordinates.ints(Coordinates.asked(n -> n.device_coordinates(device)));
    }

    /**
     * Where along a named axis of its replica's devices this one is. The names are {@link
     * StrategyOptions#axes}'s; without them "x", "y", "z" and "core" where replicas are blocks of the mesh,
     * else "device".
     */
    public AxisPlace deviceAxis(String name) {
        int[] index = new int[1];
        int[] size = new int[1];
        DistModule.dist_device_axis(active("dist_device_axis"), Texts.bytes(name, "name"), index, size);
        return new AxisPlace(index[0], size[0]);
    }

    /**
     * The logical devices that differ from this one in their place along an axis alone, for {@link
     * CollectiveOptions#group}; the place is the rank in it. It is the strategy's and ends with that.
     */
    public Group deviceAxisGroup(String name) {
        long[] out = new long[1];
        DistModule.dist_device_axis_group(active("dist_device_axis_group"), Texts.bytes(name, "name"), out);
        return new Group(out[0], strategy());
    }

    @FunctionalInterface
    private interface Exchange {
        void with(Uses uses, dist_collective_options options);
    }

    private static void exchange(CollectiveOptions options, Exchange call) {
        try (Uses uses = new Uses()) {
            call.with(uses, options.toNative(uses, 0));
        }
    }

    /**
     * A tile of a tensor with what surrounds it, out of the tiles of all members.
     *
     * @param in this member's tile
     * @param out the tile with its halo
     * @param options group, tag and timeout count
     */
    public void haloExchange(Tensor in, Halo halo, Tensor out, CollectiveOptions options) {
        long device = active("dist_halo_exchange");
        exchange(options,
                (uses, raw)
                        -> DistModule.dist_halo_exchange(device, uses.tensor(in, "in"), halo.toNative(uses),
                                uses.written(out, "out"), raw));
    }

    /**
     * What a member has of a tensor under one partition, out of what all have of it under another.
     *
     * @param in null where this member has nothing under {@code from}
     * @param out null where it has nothing under {@code to}
     * @param options group, tag and timeout count
     */
    public void reshard(Partition from, Partition to, Tensor in, Tensor out, CollectiveOptions options) {
        long device = active("dist_reshard");
        exchange(options,
                (uses, raw) -> DistModule.dist_reshard(device, from.toNative(uses), to.toNative(uses),
                                uses.tensorOrNull(in), out == null ? null : uses.written(out, "out"), raw));
    }
}
