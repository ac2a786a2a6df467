// SPDX-License-Identifier: Apache-2.0

import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.libdist.CollectiveOptions;
import org.libdist.DeviceAssignment;
import org.libdist.MeshAxis;
import org.libdist.ReduceOp;
import org.libdist.Replica;
import org.libdist.Strategy;
import org.libdist.StrategyKind;
import org.libdist.StrategyOptions;
import org.libdist.Tensor;
import org.libdist.Tensors;
import org.libdist.Topology;
import org.libdist.Value;

/**
 * devices.c in Java: one replica with 2 x 2 logical devices. A matrix is split over them, and each row of devices adds
 * up its tiles.
 */
public final class Devices {
    private static final int[] LINE = {4, 1, 1, 1};

    /** Runs on each device at the same time. args is the list (this device's tile). */
    private static Value addRows(Replica device, Value args, Value kwargs) {
        double tile = Arrays.stream(Tensors.toDoubles(args.item(0).tensor())).sum();
        System.out.printf("device %d in row %d, column %d: %.0f%n", device.id(), device.deviceAxis("row").index(),
                device.deviceAxis("column").index(), tile);
        Tensor sum = Tensors.copyOf(new double[] {tile}, 1, 1);
        // The devices of a row differ in their column.
        CollectiveOptions row = CollectiveOptions.DEFAULT.group(device.deviceAxisGroup("column"));
        device.allReduce(ReduceOp.SUM, sum.doubles(), row);
        return Value.createTensor(device.strategy(), sum);
    }

    /** Runs on the replica: splits the matrix, and joins the results of the devices. */
    private static Value step(Replica replica, Value args, Value kwargs) {
        try (Value split = replica.splitToLogicalDevices(args.item(0), 2, 2);
                Value tiles = Value.createList(replica.strategy(), List.of(split))) {
            return replica.runOnDevices(Devices::addRows, tiles);
        }
    }

    public static void main(String[] args) {
        // Four devices in a line; Topology.fromHost() would return the CPUs of this machine.
        int[][] positions = {{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 0, 0}, {3, 0, 0, 0}};
        double[] numbers = IntStream.range(0, 16).asDoubleStream().toArray();
        try (Topology topology = Topology.create(LINE, new int[][][] {positions});
                DeviceAssignment assignment = DeviceAssignment.create(topology, LINE, 1);
                Strategy strategy = Strategy.create(StrategyOptions.DEFAULT.kind(StrategyKind.MESH)
                                                         .deviceAssignment(assignment)
                                                         .axes(new MeshAxis("row", 2), new MeshAxis("column", 2)));
                Value matrix = Value.createTensor(strategy, Tensors.copyOf(numbers, 4, 4));
                Value result = strategy.run(Devices::step, matrix)) {
            double[] sums = Tensors.toDoubles(result.tensor()); // the tiles of all devices together
            System.out.printf("result: [[%.0f, %.0f], [%.0f, %.0f]]%n", sums[0], sums[1], sums[2], sums[3]);
        }
    }
}
