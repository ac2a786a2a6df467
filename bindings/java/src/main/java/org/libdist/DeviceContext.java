// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_split_options;

/**
 * The operations of a replica of {@link StrategyKind#MESH} on its logical devices, and of these devices among
 * each other; see {@link Replica}.
 *
 * <pre>{@code
 * Value split = replica.splitToLogicalDevices(images, 1, 2, 4, 1); // each device has one tile
 * Value out = replica.runOnDevices(model, Value.createTuple(strategy, split)); // model(device d, shard d)
 * }</pre>
 *
 * <p>A logical device is a {@link Replica} too, with its own {@link Replica#id}. Its collectives are among
 * the devices of its replica. Operations of whole replicas are rejected there.
 */
public abstract class DeviceContext extends ReplicaContext {
    DeviceContext() {}

    // ---- On a replica ----

    /**
     * Splits a tensor, or each leaf of a nested value, over this replica's logical devices. The result can be
     * used like the whole tensor; {@link Value#shard} and its items are the shards. Nothing is copied.
     *
     * @param partitionDimensions the number of parts of each dimension; each size must be divisible by its
     *         number of parts
     */
    public Value splitToLogicalDevices(Value value, long... partitionDimensions) {
        return splitToLogicalDevices(value, partitionDimensions, false);
    }

    /**
     * Same as {@link #splitToLogicalDevices(Value, long...)}.
     *
     * @param uneven whether sizes that are not divisible are split as evenly as possible
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

    /**
     * Assigns a tensor, or each leaf of a nested value, to one logical device; the other devices have
     * nothing.
     */
    public Value assignToLogicalDevice(Value value, int logicalDevice) {
        long replica = active("dist_assign_to_logical_device");
        return value.ask(handle -> {
            long[] out = new long[1];
            DistModule.dist_assign_to_logical_device(replica, handle, logicalDevice, out);
            return Value.taken(out[0]);
        });
    }

    /**
     * Gives a tensor, or each leaf of a nested value, to every logical device. All devices see the same
     * memory.
     */
    public Value replicateToLogicalDevices(Value value) {
        long replica = active("dist_replicate_to_logical_devices");
        return value.ask(handle -> {
            long[] out = new long[1];
            DistModule.dist_replicate_to_logical_devices(replica, handle, out);
            return Value.taken(out[0]);
        });
    }

    /**
     * Calls a function on every logical device of this replica, concurrently, and waits for all of them. Each
     * sharded tensor in the arguments, at any depth, is replaced by the shard of that device, or by a value
     * of kind NONE if the tensor is assigned to another device. All results must have the same structure and
     * are joined leaf by leaf, according to {@link DevicesOptions#results}. Without it, tensors that fit
     * together as tiles, divided like the first split argument, become one split tensor, and tensors with
     * equal bits become one replicated tensor.
     *
     * <p>If a device throws, pending and later collectives of the others throw a DistException with ABORTED,
     * and this method rethrows the exception of the device that failed first, unchanged.
     *
     * @param args a list or tuple; any other value is the only argument; null means none
     * @param kwargs a dictionary; null means none
     * @return the joined results; null if no device returned one
     * @throws X the exception that the function threw
     */
    public <X extends Exception> Value runOnDevices(
            ValuesFunction<X> fn, Value args, Value kwargs, DevicesOptions options) throws X {
        Objects.requireNonNull(fn, "fn");
        long replica = active("dist_run_on_devices");
        long[] out = new long[1];
        new DevicesCall(strategy(), fn::call)
                .<X>runWithin(options.cancel, (token, cancel) -> {
                    try (Uses uses = new Uses()) {
                        DistModule.dist_run_on_devices(replica, token, Value.arguments(uses, strategy(), args),
                                uses.ofNullable(kwargs), options.toNative(uses, cancel), out);
                    }
                });
        return Value.taken(out[0]);
    }

    /**
     * Same as {@link #runOnDevices(ValuesFunction, Value, Value, DevicesOptions)}, with positional arguments
     * only.
     */
    public <X extends Exception> Value runOnDevices(ValuesFunction<X> fn, Value args) throws X {
        return runOnDevices(fn, args, null, DevicesOptions.DEFAULT);
    }

    // ---- On a logical device ----

    /** Returns the replica to which this logical device belongs; -1 for a replica itself. */
    public int deviceReplica() {
        return DistModule.dist_device_replica(active("dist_device_replica"));
    }

    /** Returns the position of this logical device in the mesh of the topology. */
    public int[] deviceCoordinates() {
        long device = active("dist_device_coordinates");
        return Coordinates.ints(Coordinates.asked(n -> n.device_coordinates(device)));
    }

    /**
     * Returns the position of this logical device along a named axis of its replica's devices. The names are
     * those of {@link StrategyOptions#axes}. Without that option they are "x", "y", "z" and "core" if
     * replicas are blocks of the mesh in which the core varies fastest, and otherwise "device".
     */
    public AxisPlace deviceAxis(String name) {
        int[] index = new int[1];
        int[] size = new int[1];
        DistModule.dist_device_axis(active("dist_device_axis"), Texts.bytes(name, "name"), index, size);
        return new AxisPlace(index[0], size[0]);
    }

    /**
     * Returns the group of the logical devices that differ from this one only in their position along an
     * axis, for {@link CollectiveOptions#group}. The position along the axis is the rank in the group. The
     * strategy owns the group.
     */
    public Group deviceAxisGroup(String name) {
        long[] out = new long[1];
        DistModule.dist_device_axis_group(active("dist_device_axis_group"), Texts.bytes(name, "name"), out);
        return new Group(out[0], strategy());
    }

    /**
     * Builds a tile of a tensor together with its surroundings, from the tiles of all members.
     *
     * @param in this member's tile
     * @param out receives the tile with its halo
     * @param options only group, tag and timeout are used
     */
    public void haloExchange(Tensor in, Halo halo, Tensor out, CollectiveOptions options) {
        long device = active("dist_halo_exchange");
        call(options,
                (uses, raw)
                        -> DistModule.dist_halo_exchange(device, uses.tensor(in, "in"), halo.toNative(uses),
                                uses.written(out, "out"), raw));
    }

    /**
     * Redistributes a tensor among the members from one partition to another.
     *
     * @param in null if this member has nothing under {@code from}
     * @param out null if it has nothing under {@code to}
     * @param options only group, tag and timeout are used
     */
    public void reshard(Partition from, Partition to, Tensor in, Tensor out, CollectiveOptions options) {
        long device = active("dist_reshard");
        call(options,
                (uses, raw) -> DistModule.dist_reshard(device, from.toNative(uses), to.toNative(uses),
                                uses.tensorOrNull(in), out == null ? null : uses.written(out, "out"), raw));
    }
}
