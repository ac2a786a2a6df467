// SPDX-License-Identifier: Apache-2.0

import java.nio.FloatBuffer;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.libdist.DirectBuffers;

/** The replicas' f32 tensors with random nonzero values, and the expected sum. */
final class Tensors {
    /** Elements after which a tensor repeats itself, as in dist_bench. */
    private static final int PERIOD = 65521;

    static final class WrongResult extends Exception {
        private static final long serialVersionUID = 1;

        WrongResult() {
            super("wrong result");
        }
    }

    private final FloatBuffer[] data;
    private final float[][] pattern;
    private final AtomicInteger wrong = new AtomicInteger();
    private FloatBuffer expected;

    Tensors(int replicas, int elements) {
        data = new FloatBuffer[replicas];
        pattern = new float[replicas][Math.min(PERIOD, elements)];
        for (int id = 0; id < replicas; id++) {
            data[id] = DirectBuffers.floats(elements);
            Random random = new Random(id);
            for (int i = 0; i < pattern[id].length; i++) { // the same sign for all replicas
                pattern[id][i] = (i % 3 == 0 ? -1 : 1) * (1 + random.nextFloat());
            }
        }
    }

    int elements() {
        return data[0].capacity();
    }

    FloatBuffer data(int id) {
        return data[id];
    }

    /** Computes the result of this number of sums in place. */
    void expect(int iterations) {
        float[] sums = pattern[0].clone();
        for (int i = 0; i < sums.length; i++) {
            for (int id = 1; id < pattern.length; id++) {
                sums[i] += pattern[id][i];
            }
            for (int again = 1; again < iterations; again++) {
                float one = sums[i];
                for (int id = 1; id < pattern.length; id++) {
                    sums[i] += one;
                }
            }
        }
        expected = DirectBuffers.of(sums);
    }

    /** Restores a replica's values, on its own thread. */
    void reset(int id) {
        int period = pattern[id].length;
        for (int at = 0; at < elements(); at += period) {
            data[id].put(at, pattern[id], 0, Math.min(period, elements() - at));
        }
    }

    /** Compares a replica's result. No value is NaN or zero, so equal values have the same bits. */
    void check(int id) {
        int period = expected.capacity();
        for (int at = 0; at < elements(); at += period) {
            int length = Math.min(period, elements() - at);
            if (!data[id].slice(at, length).equals(expected.slice(0, length))) {
                wrong.incrementAndGet();
            }
        }
    }

    void requireRight() throws WrongResult {
        if (wrong.get() != 0) {
            throw new WrongResult();
        }
    }
}
