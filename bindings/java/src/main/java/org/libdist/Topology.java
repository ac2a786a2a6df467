// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.Text;

/**
 * Where devices are: positions (x, y, z, core) of a mesh, each device in a task. Immutable. A coordinate of
 * -1 is the last one in its direction.
 */
public final class Topology extends NativeObject {
    private final long handle;
    private final DeviceAssignment assignment; // that it belongs to; null: one of its own

    private Topology(long handle) {
        super(new Native("topology", handle, DistModule::dist_topology_destroy));
        this.handle = handle;
        assignment = null;
    }

    /** An assignment's topology: it ends with that. */
    Topology(long handle, DeviceAssignment assignment) {
        super(assignment);
        this.handle = handle;
        this.assignment = assignment;
    }

    @Override
    long acquire() {
        super.acquire();
        return handle;
    }

    /**
     * A topology by hand; positions without a device are missing.
     *
     * @param meshShape four sizes
     * @param deviceCoordinates four numbers for each device of each task; all tasks have as many devices
     */
    public static Topology create(int[] meshShape, int[][][] deviceCoordinates) {
        Objects.requireNonNull(meshShape, "meshShape");
        Objects.requireNonNull(deviceCoordinates, "deviceCoordinates");
        int[] coordinates = Coordinates.flat(deviceCoordinates, meshShape.length);
        int devices = deviceCoordinates.length == 0 ? 0 : deviceCoordinates[0].length;
        long[] out = new long[1];
        DistModule.dist_topology_create(
                meshShape, meshShape.length, coordinates, deviceCoordinates.length, devices, null, out);
        return new Topology(out[0]);
    }

    /** A topology of what {@link #serialized} gave, here or in TensorFlow: a TopologyProto. */
    public static Topology fromSerialized(byte[] bytes) {
        long[] numbers = new long[bytes.length];
        for (int i = 0; i < bytes.length; i++) {
            numbers[i] = bytes[i];
        }
        long[] out = new long[1];
        DistModule.topology_from_serialized(numbers, numbers.length, out);
        return new Topology(out[0]);
    }

    /**
     * A topology of the CPUs that this process may use: package, NUMA domain in it, core in that, hardware
     * thread of the core.
     */
    public static Topology fromHost() {
        long[] out = new long[1];
        DistModule.dist_topology_from_host(null, out);
        return new Topology(out[0]);
    }

    /** The number of dimensions of the mesh, 4. */
    public int meshRank() {
        return askInt(DistModule::dist_topology_mesh_rank);
    }

    /** The size of the mesh in each direction. */
    public int[] meshShape() {
        return ask(handle -> Coordinates.ints(Coordinates.asked(n -> n.topology_mesh_shape(handle))));
    }

    /** The number of tasks. */
    public int numTasks() {
        return askInt(DistModule::dist_topology_num_tasks);
    }

    /** The number of devices of each task. */
    public int numDevicesPerTask() {
        return askInt(DistModule::dist_topology_num_devices_per_task);
    }

    /** Where each device of each task is, as it was given. */
    public int[][][] deviceCoordinates() {
        return ask(handle -> Coordinates.tables(Coordinates.asked(n -> n.topology_device_coordinates(handle)),
                        numTasks(), numDevicesPerTask(), meshRank()));
    }

    /** The number of positions without a device. */
    public int numMissingDevices() {
        return askInt(handle -> (int) DistModule.dist_topology_num_missing_devices(handle));
    }

    /** The positions without a device, row-major. */
    public int[][] missingDevices() {
        return ask(handle -> Coordinates.rows(
                        Coordinates.asked(n -> n.topology_missing_devices(handle)), meshRank()));
    }

    /** The topology as a TopologyProto, in TensorFlow's bytes. */
    public byte[] serialized() {
        long[] numbers = ask(handle -> Coordinates.asked(n -> n.topology_serialized(handle)));
        byte[] bytes = new byte[numbers.length];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) numbers[i];
        }
        return bytes;
    }

    @FunctionalInterface
    private interface At {
        void ask(long topology, int[] coordinates, int[] out);
    }

    private int at(int[] coordinates, At question) {
        return askInt(handle -> {
            int[] out = new int[1];
            question.ask(handle, Coordinates.checked(coordinates, meshRank()), out);
            return out[0];
        });
    }

    /** Which task the device at a position belongs to; -1 where it is missing. */
    public int taskAt(int... coordinates) {
        return at(coordinates, DistModule::dist_topology_task_at);
    }

    /** Which device of its task is at a position; -1 where it is missing. */
    public int deviceAt(int... coordinates) {
        return at(coordinates, DistModule::dist_topology_device_at);
    }

    /**
     * Which CPU, by the system's number, is the device at a position of {@link #fromHost}; -1 where it is
     * missing.
     *
     * @throws DistException FAILED_PRECONDITION the devices are not this host's CPUs
     */
    public int cpuAt(int... coordinates) {
        return at(coordinates, DistModule::dist_topology_cpu_at);
    }

    /**
     * The name of the device at a position: "/job:worker/task:0/device:TPU:1".
     *
     * @param job null: the name is without one
     */
    public String deviceNameAt(int[] coordinates, String job) {
        return ask(handle -> {
            int[] place = Coordinates.checked(coordinates, meshRank());
            return name(job,
                    (bytes, out) ->
                            DistModule.dist_topology_device_name_at(handle, place, bytes, out, out.length));
        });
    }

    /** As {@link #deviceNameAt}, of the device's host: "/job:worker/task:0/device:CPU:0". */
    public String hostNameAt(int[] coordinates, String job) {
        return ask(handle -> {
            int[] place = Coordinates.checked(coordinates, meshRank());
            return name(job,
                    (bytes, out) ->
                            DistModule.dist_topology_host_name_at(handle, place, bytes, out, out.length));
        });
    }

    @FunctionalInterface
    interface WriteName {
        void with(byte[] job, byte[] out);
    }

    /** A device's name in a job, which may be null. */
    static String name(String job, WriteName write) {
        byte[] bytes = Texts.orNull(job);
        byte[] out = new byte[CrossReplica.NAME_BYTES + (bytes == null ? 0 : bytes.length)];
        write.with(bytes, out);
        return Texts.written(out);
    }

    /** What it is, and of a host's how that was found: lines of "subject: words", for people. */
    public String explain() {
        return written(Text::explain_topology);
    }

    /** Whether both are the same topology of libdist's: an assignment's is the one that it was made with. */
    @Override
    public boolean equals(Object other) {
        return other instanceof Topology && ((Topology) other).handle == handle;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(handle);
    }
}
