// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.Text;

/**
 * The positions (x, y, z, core) of devices in a mesh, and the task of each device. Immutable. A coordinate of
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

    /** Wraps the topology of an assignment, which ends with the assignment. */
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
     * Creates a topology with explicit coordinates. Positions without a device are allowed; these devices are
     * missing.
     *
     * @param meshShape four sizes
     * @param deviceCoordinates four numbers for each device of each task; all tasks have the same number of
     *         devices
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

    /**
     * Creates a topology of the CPUs that this process may use: package, NUMA domain in it, core in that,
     * hardware thread of the core.
     */
    public static Topology fromHost() {
        long[] out = new long[1];
        DistModule.dist_topology_from_host(null, out);
        return new Topology(out[0]);
    }

    /** Returns the number of dimensions of the mesh, 4. */
    public int meshRank() {
        return askInt(DistModule::dist_topology_mesh_rank);
    }

    /** Returns the size of the mesh in each direction. */
    public int[] meshShape() {
        return ask(handle -> Coordinates.ints(Coordinates.asked(n -> n.topology_mesh_shape(handle))));
    }

    /** Returns the number of tasks. */
    public int numTasks() {
        return askInt(DistModule::dist_topology_num_tasks);
    }

    /** Returns the number of devices of each task. */
    public int numDevicesPerTask() {
        return askInt(DistModule::dist_topology_num_devices_per_task);
    }

    /** Returns the position of each device of each task, as it was given. */
    public int[][][] deviceCoordinates() {
        return ask(handle -> Coordinates.tables(Coordinates.asked(n -> n.topology_device_coordinates(handle)),
                        numTasks(), numDevicesPerTask(), meshRank()));
    }

    /** Returns the number of positions without a device. */
    public int numMissingDevices() {
        return askInt(handle -> (int) DistModule.dist_topology_num_missing_devices(handle));
    }

    /** Returns the positions without a device, in row-major order. */
    public int[][] missingDevices() {
        return ask(handle -> Coordinates.rows(
                        Coordinates.asked(n -> n.topology_missing_devices(handle)), meshRank()));
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

    /** Returns the task of the device at a position; -1 if the device is missing. */
    public int taskAt(int... coordinates) {
        return at(coordinates, DistModule::dist_topology_task_at);
    }

    /** Returns the index, within its task, of the device at a position; -1 if the device is missing. */
    public int deviceAt(int... coordinates) {
        return at(coordinates, DistModule::dist_topology_device_at);
    }

    /**
     * Returns the system's number of the CPU at a position of a topology from {@link #fromHost}; -1 if it is
     * missing.
     *
     * @throws DistException FAILED_PRECONDITION the devices are not the CPUs of this host
     */
    public int cpuAt(int... coordinates) {
        return at(coordinates, DistModule::dist_topology_cpu_at);
    }

    /**
     * Returns the name of the device at a position: "/job:worker/task:0/device:TPU:1".
     *
     * @param job null omits the job from the name
     */
    public String deviceNameAt(int[] coordinates, String job) {
        return ask(handle -> {
            int[] place = Coordinates.checked(coordinates, meshRank());
            return name(job,
                    (bytes, out) ->
                            DistModule.dist_topology_device_name_at(handle, place, bytes, out, out.length));
        });
    }

    /** Returns the name of the host of the device at a position: "/job:worker/task:0/device:CPU:0". */
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

    /** Returns a device's name in a job, which may be null. */
    static String name(String job, WriteName write) {
        byte[] bytes = Texts.orNull(job);
        byte[] out = new byte[CrossReplica.NAME_BYTES + (bytes == null ? 0 : bytes.length)];
        write.with(bytes, out);
        return Texts.written(out);
    }

    /**
     * Returns a description of the topology, as lines of the form "subject: words" for people to read. For
     * the topology of a host, it includes how the host was detected.
     */
    public String explain() {
        return written(Text::explain_topology);
    }

    /**
     * Returns whether both are the same native topology. The topology of an assignment equals the one with
     * which it was created.
     */
    @Override
    public boolean equals(Object other) {
        return other instanceof Topology && ((Topology) other).handle == handle;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(handle);
    }
}
