// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

/**
 * Polls libdist for events of which it does not notify anyone: whether a remote value has arrived, and
 * whether a method's result is still needed. One thread polls for all, as long as there are any.
 */
final class Polls {
    private static final long SHORTEST_NANOS = TimeUnit.MICROSECONDS.toNanos(100);
    private static final long LONGEST_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private static final ReentrantLock LOCK = new ReentrantLock();
    private static final Condition COME = LOCK.newCondition();
    private static List<BooleanSupplier> questions = new ArrayList<>();
    private static boolean asking;

    private Polls() {}

    /** Polls until the answer is true. The query must be short and must not throw. */
    static void add(BooleanSupplier question) {
        LOCK.lock();
        try {
            questions.add(question);
            COME.signal();
            if (!asking) {
                asking = true;
                Thread thread = new Thread(Polls::ask, "dist-polls");
                thread.setDaemon(true);
                thread.start();
            }
        } finally {
            LOCK.unlock();
        }
    }

    private static void ask() {
        long pause = SHORTEST_NANOS;
        for (List<BooleanSupplier> asked; (asked = next()) != null;) {
            int before = asked.size();
            asked.removeIf(BooleanSupplier::getAsBoolean);
            pause = asked.size() < before ? SHORTEST_NANOS : Math.min(2 * pause, LONGEST_NANOS);
            LOCK.lock();
            try {
                boolean more = !questions.isEmpty();
                questions.addAll(asked);
                if (!asked.isEmpty() && !more && COME.awaitNanos(pause) > 0) {
                    pause = SHORTEST_NANOS;
                }
            } catch (InterruptedException e) {
                // nothing interrupts this thread: poll once more
            } finally {
                LOCK.unlock();
            }
        }
    }

    /** Returns all current queries. If there are none, returns null, and the thread ends. */
    private static List<BooleanSupplier> next() {
        LOCK.lock();
        try {
            List<BooleanSupplier> all = questions;
            questions = new ArrayList<>();
            asking = !all.isEmpty();
            return asking ? all : null;
        } finally {
            LOCK.unlock();
        }
    }
}
