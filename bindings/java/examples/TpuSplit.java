// SPDX-License-Identifier: Apache-2.0

import java.util.List;
import java.util.stream.IntStream;
import org.libdist.BatchIterator;
import org.libdist.Dataset;
import org.libdist.DatasetOptions;
import org.libdist.DeviceAssignment;
import org.libdist.Replica;
import org.libdist.Strategy;
import org.libdist.StrategyKind;
import org.libdist.StrategyOptions;
import org.libdist.Tensor;
import org.libdist.Tensors;
import org.libdist.Topology;
import org.libdist.Value;

/**
 * The example of TPUStrategy with logical devices from the tf.distribute documentation, in Java: one replica
 * with eight logical devices. A batch of images is split over them, 2 ways in height and 4 ways in width. The
 * model of this example inverts the images. The program prints each device's part of the output.
 */
public final class TpuSplit {
    private static final int WHITE = 1000;
    private static final long[] IMAGES = {4, 4, 8, 3}; // images, height, width, channels
    private static final int PIXELS = 4 * 4 * 8 * 3;

    public static void main(String[] args) {
        try (Topology topology = initialize();
                DeviceAssignment assignment = DeviceAssignment.create(topology, new int[] {1, 2, 2, 2}, 1);
                Strategy strategy = Strategy.create(StrategyOptions.DEFAULT.kind(StrategyKind.MESH)
                                                         .deviceAssignment(assignment)
                                                         .useSpmdPartitioning(true));
                Dataset inputs = Dataset.fromTensors(strategy, List.of(images()),
                        DatasetOptions.DEFAULT.globalBatchSize(IMAGES[0]));
                BatchIterator iterator = inputs.iterator()) {
            Value batch = Value.createList(strategy, List.of(iterator.next()));
            print(strategy.run(TpuSplit::step, batch));
        }
    }

    /** Returns a topology of eight devices. Topology.fromHost() would return one with this machine's CPUs. */
    private static Topology initialize() {
        int[][] devices = new int[8][];
        for (int d = 0; d < 8; d++) {
            devices[d] = new int[] {0, d / 4, d / 2 % 2, d % 2};
        }
        return Topology.create(new int[] {1, 2, 2, 2}, new int[][][] {devices});
    }

    private static Tensor images() {
        return Tensors.copyOf(IntStream.range(0, PIXELS).toArray(), IMAGES);
    }

    /** Runs on the replica: executes the model on 8 logical devices, with the inputs split 2 * 4 ways. */
    private static Value step(Replica replica, Value args, Value kwargs) {
        Value inputs = replica.splitToLogicalDevices(args.item(0), 1, 2, 4, 1);
        return replica.runOnDevices(TpuSplit::model, Value.createList(replica.strategy(), List.of(inputs)));
    }

    /** Runs on one logical device: inverts the device's part of the images. */
    private static Value model(Replica device, Value args, Value kwargs) {
        Tensor part = args.item(0).tensor();
        int[] pixels = Tensors.toInts(part);
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = WHITE - pixels[i];
        }
        return Value.createTensor(device.strategy(), Tensors.copyOf(pixels, part.shape()));
    }

    /** The output can still be read as one tensor of all images. */
    private static void print(Value output) {
        for (int d = 0; d < 8; d++) {
            Value.Shard shard = output.shard(d);
            long row = shard.begin()[1];
            long column = shard.begin()[2];
            Tensor part = shard.tensor();
            System.out.printf("logical device %d: rows %d-%d, columns %d-%d, first pixel %d%n", d, row,
                    row + part.shape(1) - 1, column, column + part.shape(2) - 1, Tensors.toInts(part)[0]);
        }
        int[] all = Tensors.toInts(output.tensor());
        long wrong = IntStream.range(0, PIXELS).filter(i -> all[i] != WHITE - i).count();
        System.out.printf("all %d pixels: %d wrong%n", PIXELS, wrong);
    }
}
