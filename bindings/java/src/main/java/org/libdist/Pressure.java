// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * How much of libdist's memory waits for the garbage collector, which does not see it. Where it is much the
 * collector is asked to come, as the JDK does for its own direct buffers.
 */
final class Pressure {
    private static final long LIMIT_BYTES = Math.max(Runtime.getRuntime().maxMemory() / 4, 1 << 26);
    private static final int TRIES = 6;
    private static final AtomicLong HELD_BYTES = new AtomicLong();
    private static final ReentrantLock ASKING = new ReentrantLock();

    private Pressure() {}

    static void add(long bytes) {
        if (HELD_BYTES.addAndGet(bytes) > LIMIT_BYTES && ASKING.tryLock()) {
            try {
                ask();
            } finally {
                ASKING.unlock();
            }
        }
    }

    static void remove(long bytes) {
        HELD_BYTES.addAndGet(-bytes);
    }

    private static void ask() {
        System.gc();
        try { // the cleaner's thread needs a moment
            for (int i = 0; i < TRIES && HELD_BYTES.get() > LIMIT_BYTES; i++) {
                Thread.sleep(1L << i);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
