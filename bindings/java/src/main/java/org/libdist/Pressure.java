// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Tracks how much native memory Java objects hold, which the garbage collector does not see. If it is much, a
 * collection is requested, as the JDK does for its own direct buffers, so that unreachable objects never hold
 * more than what is in use or a quarter of the heap.
 */
final class Pressure {
    /** The amount that may be held without requesting a collection. */
    static final long FLOOR_BYTES = Math.max(Runtime.getRuntime().maxMemory() / 4, 1 << 26);

    private static final int TRIES = 10; // 1 s together, if the cleaner does not get the CPU
    private static final AtomicLong HELD_BYTES = new AtomicLong();
    private static final ReentrantLock ASKING = new ReentrantLock();
    private static volatile long limitBytes = FLOOR_BYTES;

    private Pressure() {}

    static long heldBytes() {
        return HELD_BYTES.get();
    }

    /**
     * Records that an object now holds that many bytes. May wait for the garbage collector, so do not call it
     * while holding a lock that a cleaner takes.
     */
    static void add(long bytes) {
        if (HELD_BYTES.addAndGet(bytes) > limitBytes) {
            relieve();
        }
    }

    static void remove(long bytes) {
        HELD_BYTES.addAndGet(-bytes);
    }

    /** Requests a collection. All threads that arrive meanwhile wait, so that none allocates more. */
    private static void relieve() {
        ASKING.lock();
        try {
            if (HELD_BYTES.get() > limitBytes) {
                collect();
                // In use: asking again before there is twice as much would only cost time.
                limitBytes = Math.max(FLOOR_BYTES, 2 * HELD_BYTES.get());
            }
        } finally {
            ASKING.unlock();
        }
    }

    /**
     * Returns when the cleaner has processed what this collection has found, as far as this can be detected.
     */
    private static void collect() {
        AtomicBoolean swept = new AtomicBoolean();
        Cleaner.Cleanable mark = Native.CLEANER.register(new Object(), () -> swept.set(true));
        System.gc();
        boolean interrupted = false;
        long before = HELD_BYTES.get();
        for (int i = 0; i < TRIES; i++) {
            try {
                Thread.sleep(1L << i);
            } catch (InterruptedException e) {
                interrupted = true; // a collection is short: the thread's own business waits for it
            }
            long now = HELD_BYTES.get();
            if (swept.get() && now >= before) {
                break;
            }
            before = now;
        }
        mark.clean();
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
