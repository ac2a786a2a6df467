// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.io.IOException;
import java.nio.channels.spi.AbstractInterruptibleChannel;
import java.util.function.Consumer;

/**
 * Makes Thread.interrupt() end a call, such as a run, while its thread is in native code. The JDK notifies
 * only one kind of object of an interrupt: the channel on which the thread is blocked. This class is such a
 * channel, with nothing to read. If the function performs I/O of its own, the JDK forgets this channel, so
 * {@link Replica#active} checks for interrupts too.
 */
final class Interrupts extends AbstractInterruptibleChannel {
    /**
     * Holds the watch of each thread as the only element of an array. An array of objects belongs to the JVM, so a
     * thread that outlives this class's loader does not keep the loader alive.
     */
    private static final ThreadLocal<Object[]> HERE = ThreadLocal.withInitial(() -> new Object[1]);

    private final Consumer<Thread> interrupted;
    private final Thread thread = Thread.currentThread();
    private final Object[] here = HERE.get();
    private Interrupts outer; // a call that waits for this one, on the same thread

    private Interrupts(Consumer<Thread> interrupted) {
        this.interrupted = interrupted;
    }

    /** Calls {@code interrupted} for interrupts of this thread, until {@link #end}. */
    static Interrupts watch(Consumer<Thread> interrupted) {
        Interrupts watch = new Interrupts(interrupted);
        watch.outer = (Interrupts) watch.here[0];
        watch.here[0] = watch;
        watch.begin();
        return watch;
    }

    void end() {
        try {
            end(true);
        } catch (IOException e) {
            // the interrupt: the thread still has it
        }
        here[0] = outer;
        if (outer != null) {
            outer.begin();
        }
    }

    @Override
    protected void implCloseChannel() {
        interrupted.accept(thread);
    }
}
