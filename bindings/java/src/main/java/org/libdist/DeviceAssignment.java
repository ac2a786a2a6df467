// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;

/**
 * Which devices of a topology are logical device 0, 1, ... of replica 0, 1, .... Immutable; it holds the
 * topology. A replica or logical device of -1 is the last one.
 */
public final class DeviceAssignment extends NativeObject {
    private final long handle;
    private final Strategy strategy; // that it belongs to; null: one of its own

    private DeviceAssignment(long handle) {
        super(new Native("device assignment", handle, DistModule::dist_device_assignment_destroy));
        this.handle = handle;
        strategy = null;
    }

    /** The one that a strategy was made with: it ends with that. */
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
     * Lays replicas out over a topology: each gets a block of devices.
     *
     * @param computationShape how many devices a block has in each direction; null: 1 everywhere
     * @param computationStride how far apart they are; null: 1 everywhere
     */
    public static DeviceAssignment build(Topology topology, int[] computationShape, int[] computationStride,
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

    /** As {@link #build(Topology, int[], int[], int, DeviceOrder)}, of blocks without gaps. */
    public static DeviceAssignment build(Topology topology, int[] computationShape, int numReplicas) {
        return build(topology, computationShape, null, numReplicas, DeviceOrder.AUTO);
    }

    private static int length(int[] shape, int[] stride) {
        int[] given = stride != null ? stride : shape;
        return given == null ? 0 : given.length;
    }

    /**
     * An assignment by hand: where each logical device of each replica is. A device may be given to several,
     * and may be one that is missing.
     *
     * @param coreAssignment four numbers for each logical device of each replica
     */
    public static DeviceAssignment create(Topology topology, int[][][] coreAssignment) {
        int rank = Coordinates.width(
                Objects.requireNonNull(coreAssignment, "coreAssignment"), topology.meshRank());
        int[] coordinates = Coordinates.flat(coreAssignment, rank);
        int devices = coreAssignment.length == 0 ? 0 : coreAssignment[0].length;
        return made(topology,
                (handle, out) -> DistModule.dist_device_assignment_create(
                                handle, coordinates, coreAssignment.length, devices, rank, out));
    }

    /**
     * As {@link #create(Topology, int[][][])}, of coordinates one after another: there may be logical devices
     * without a replica.
     */
    public static DeviceAssignment create(
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

    /** One replica of one logical device, at (0, 0, 0, 0). */
    public static DeviceAssignment createSingle(Topology topology) {
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

    /** The topology that it was made with. */
    public Topology topology() {
        return ask(handle -> new Topology(DistModule.dist_device_assignment_topology(handle), this));
    }

    /** The number of replicas. */
    public int numReplicas() {
        return askInt(DistModule::dist_device_assignment_num_replicas);
    }

    /** The number of logical devices of each replica. */
    public int numLogicalDevices() {
        return askInt(DistModule::dist_device_assignment_num_logical_devices);
    }

    private int rank(long handle) {
        return DistModule.dist_topology_mesh_rank(DistModule.dist_device_assignment_topology(handle));
    }

    /** Where each logical device of each replica is. */
    public int[][][] coreAssignment() {
        return ask(handle
                -> Coordinates.tables(Coordinates.asked(n -> n.device_assignment_core_assignment(handle)),
                        numReplicas(), numLogicalDevices(), rank(handle)));
    }

    /** Where one logical device is. */
    public int[] coordinates(int replica, int logicalDevice) {
        return ask(handle -> Coordinates.ints(Coordinates.asked(
                        n -> n.device_assignment_coordinates(handle, replica, logicalDevice))));
    }

    /** Which device of its task a logical device is; -1 where it is missing. */
    public int device(int replica, int logicalDevice) {
        return askInt(handle -> {
            int[] out = new int[1];
            DistModule.dist_device_assignment_device(handle, replica, logicalDevice, out);
            return out[0];
        });
    }

    /** A logical device's name, see {@link Topology#deviceNameAt}. */
    public String deviceName(int replica, int logicalDevice, String job) {
        return ask(handle -> Topology.name(job,
                        (bytes, out) -> DistModule.dist_device_assignment_device_name(
                                        handle, replica, logicalDevice, bytes, out, out.length)));
    }

    /** The name of a logical device's host, see {@link Topology#hostNameAt}. */
    public String hostName(int replica, int logicalDevice, String job) {
        return ask(handle -> Topology.name(job,
                        (bytes, out) -> DistModule.dist_device_assignment_host_name(
                                        handle, replica, logicalDevice, bytes, out, out.length)));
    }

    /** Which replicas have their logical device {@code logicalDevice} in a task, ascending. */
    public int[] lookupReplicas(int task, int logicalDevice) {
        return ask(handle -> Coordinates.ints(Coordinates.asked(
                        n -> n.device_assignment_lookup_replicas(handle, task, logicalDevice))));
    }

    /** Whether both are the same assignment of libdist's: a strategy's is the one that it was made with. */
    @Override
    public boolean equals(Object other) {
        return other instanceof DeviceAssignment && ((DeviceAssignment) other).handle == handle;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(handle);
    }
}
