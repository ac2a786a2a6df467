// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;

/**
 * Maps the devices of a topology to the logical devices 0, 1, ... of the replicas 0, 1, ... Immutable; it
 * keeps the topology. A replica or logical device of -1 is the last one.
 */
public final class DeviceAssignment extends NativeObject {
    private final long handle;
    private final Strategy strategy; // that it belongs to; null: one of its own

    private DeviceAssignment(long handle) {
        super(new Native("device assignment", handle, DistModule::dist_device_assignment_destroy));
        this.handle = handle;
        strategy = null;
    }

    /** Wraps the assignment of a strategy, which ends with the strategy. */
    DeviceAssignment(long handle, Strategy strategy) {
        super(strategy);
        this.handle = handle;
        this.strategy = strategy;
    }

    @Override
    long acquire() {
        super.acquire();
        return handle;
    }

    /**
     * Distributes replicas over a topology: each gets a block of devices.
     *
     * @param computationShape the shape of a block; null means 1 in each direction
     * @param computationStride the distance of its devices; null means 1 in each direction
     */
    public static DeviceAssignment create(Topology topology, int[] computationShape, int[] computationStride,
            int numReplicas, DeviceOrder order) {
        Objects.requireNonNull(order, "order");
        int rank = length(computationShape, computationStride);
        if (computationShape != null && computationStride != null && computationShape.length != rank) {
            throw new IllegalArgumentException("a shape of " + computationShape.length
                    + " numbers and a stride of " + computationStride.length);
        }
        return made(topology,
                (handle, out) -> DistModule.dist_device_assignment_build(handle, computationShape,
                                computationStride, rank, numReplicas, order.code, out));
    }

    /** Same as {@link #create(Topology, int[], int[], int, DeviceOrder)}, with blocks without gaps. */
    public static DeviceAssignment create(Topology topology, int[] computationShape, int numReplicas) {
        return create(topology, computationShape, null, numReplicas, DeviceOrder.AUTO);
    }

    private static int length(int[] shape, int[] stride) {
        int[] given = stride != null ? stride : shape;
        return given == null ? 0 : given.length;
    }

    /**
     * Creates an assignment with explicit coordinates. A device can be assigned several times, and can be one
     * that is missing.
     *
     * @param coreAssignment four numbers for each logical device of each replica
     */
    public static DeviceAssignment fromCoreAssignment(Topology topology, int[][][] coreAssignment) {
        int rank = Coordinates.width(
                Objects.requireNonNull(coreAssignment, "coreAssignment"), topology.meshRank());
        int[] coordinates = Coordinates.flat(coreAssignment, rank);
        int devices = coreAssignment.length == 0 ? 0 : coreAssignment[0].length;
        return made(topology,
                (handle, out) -> DistModule.dist_device_assignment_create(
                                handle, coordinates, coreAssignment.length, devices, rank, out));
    }

    /**
     * Same as {@link #fromCoreAssignment(Topology, int[][][])}, with all coordinates in one array. There may be logical
     * devices without a replica.
     */
    public static DeviceAssignment fromCoreAssignment(
            Topology topology, int[] coreAssignment, int numReplicas, int numLogicalDevices) {
        int rank = topology.meshRank();
        boolean counted = numReplicas >= 0 && numLogicalDevices >= 0;
        if (counted && coreAssignment.length != (long) numReplicas * numLogicalDevices * rank) {
            throw new IllegalArgumentException(coreAssignment.length + " numbers for " + numReplicas
                    + " replicas of " + numLogicalDevices + " logical devices of " + rank + " coordinates");
        }
        return made(topology,
                (handle, out) -> DistModule.dist_device_assignment_create(
                                handle, coreAssignment, numReplicas, numLogicalDevices, rank, out));
    }

    /** Creates an assignment of one replica with one logical device, at (0, 0, 0, 0). */
    public static DeviceAssignment create(Topology topology) {
        return made(topology, DistModule::dist_device_assignment_create_single);
    }

    @FunctionalInterface
    private interface Create {
        void with(long topology, long[] out);
    }

    private static DeviceAssignment made(Topology topology, Create create) {
        return topology.ask(handle -> {
            long[] out = new long[1];
            create.with(handle, out);
            return new DeviceAssignment(out[0]);
        });
    }

    /** Returns the topology with which the assignment was created. */
    public Topology topology() {
        return ask(handle -> new Topology(DistModule.dist_device_assignment_topology(handle), this));
    }

    /** Returns the number of replicas. */
    public int numReplicas() {
        return askInt(DistModule::dist_device_assignment_num_replicas);
    }

    /** Returns the number of logical devices of each replica. */
    public int numLogicalDevices() {
        return askInt(DistModule::dist_device_assignment_num_logical_devices);
    }

    private int rank(long handle) {
        return DistModule.dist_topology_mesh_rank(DistModule.dist_device_assignment_topology(handle));
    }

    /** Returns the position of each logical device of each replica. */
    public int[][][] coreAssignment() {
        return ask(handle
                -> Coordinates.tables(Coordinates.asked(n -> n.device_assignment_core_assignment(handle)),
                        numReplicas(), numLogicalDevices(), rank(handle)));
    }

    /** Returns the position of one logical device. */
    public int[] coordinates(int replica, int logicalDevice) {
        return ask(handle -> Coordinates.ints(Coordinates.asked(
                        n -> n.device_assignment_coordinates(handle, replica, logicalDevice))));
    }

    /** Returns the index of a logical device within its task; -1 if the device is missing. */
    public int device(int replica, int logicalDevice) {
        return askInt(handle -> {
            int[] out = new int[1];
            DistModule.dist_device_assignment_device(handle, replica, logicalDevice, out);
            return out[0];
        });
    }

    /** Returns the name of a logical device, in the form of {@link Topology#deviceNameAt}. */
    public String deviceName(int replica, int logicalDevice, String job) {
        return ask(handle -> Topology.name(job,
                        (bytes, out) -> DistModule.dist_device_assignment_device_name(
                                        handle, replica, logicalDevice, bytes, out, out.length)));
    }

    /** Returns the name of the host of a logical device, in the form of {@link Topology#hostNameAt}. */
    public String hostName(int replica, int logicalDevice, String job) {
        return ask(handle -> Topology.name(job,
                        (bytes, out) -> DistModule.dist_device_assignment_host_name(
                                        handle, replica, logicalDevice, bytes, out, out.length)));
    }

    /** Returns the replicas whose logical device {@code logicalDevice} is in a task, in ascending order. */
    public int[] lookupReplicas(int task, int logicalDevice) {
        return ask(handle -> Coordinates.ints(Coordinates.asked(
                        n -> n.device_assignment_lookup_replicas(handle, task, logicalDevice))));
    }

    /**
     * Returns whether both are the same native assignment. The assignment of a strategy equals the one with
     * which it was created.
     */
    @Override
    public boolean equals(Object other) {
        return other instanceof DeviceAssignment && ((DeviceAssignment) other).handle == handle;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(handle);
    }
}
