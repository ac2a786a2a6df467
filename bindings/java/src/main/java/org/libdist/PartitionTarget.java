// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.concurrent.atomic.AtomicInteger;
import org.libdist.internal.DistModule;

/** Calls a {@link PartitionFunction} on the thread that creates a variable. */
final class PartitionTarget extends Target {
    /** The exception that the function threw in the current call of this thread. */
    private static final ThreadLocal<Throwable> THROWN = new ThreadLocal<>();

    private final PartitionFunction fn;
    private final AtomicInteger inside = new AtomicInteger();

    PartitionTarget(PartitionFunction fn) {
        this.fn = fn;
    }

    boolean runs() {
        return inside.get() > 0;
    }

    /** Makes a call that may call the function, and rethrows what it threw. */
    static void asking(Runnable call) {
        try {
            call.run();
        } catch (DistException report) {
            Throwable own = THROWN.get();
            throw own == null ? report : Target.<RuntimeException>rethrow(own);
        } finally {
            THROWN.remove();
        }
    }

    @Override
    void keep(Throwable t) {
        THROWN.set(t);
    }

    @Override
    void partition(long spec, long out) {
        long[] numbers = Tensor.room();
        DistModule.tensor_at(spec, 0, numbers);
        long[] shape = new long[(int) numbers[2]];
        System.arraycopy(numbers, 4, shape, 0, shape.length);
        inside.incrementAndGet();
        try {
            long[] parts = fn.call(DType.of((int) numbers[1]), shape.clone());
            if (parts.length != shape.length) {
                throw new DistException(Status.INVALID_ARGUMENT,
                        "the partitioner gave " + parts.length + " numbers for a variable of " + shape.length
                                + " dimensions");
            }
            for (int i = 0; i < parts.length; i++) {
                DistModule.set_number_at(out, i, parts[i]);
            }
        } finally {
            inside.decrementAndGet();
        }
    }
}
