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
    private static final ThreadLocal<Interrupts> HERE = new ThreadLocal<>();

    private final Consumer<Thread> interrupted;
    private final Thread thread = Thread.currentThread();
    private Interrupts outer; // a call that waits for this one, on the same thread

    private Interrupts(Consumer<Thread> interrupted) {
        this.interrupted = interrupted;
    }

    /** Calls {@code interrupted} for interrupts of this thread, until {@link #end}. */
    static Interrupts watch(Consumer<Thread> interrupted) {
        Interrupts here = new Interrupts(interrupted);
        here.outer = HERE.get();
        HERE.set(here);
        here.begin();
        return here;
    }

    void end() {
        try {
            end(true);
        } catch (IOException e) {
            // the interrupt: the thread still has it
        }
        if (outer == null) {
            HERE.remove();
        } else {
            HERE.set(outer);
            outer.begin();
        }
    }

    @Override
    protected void implCloseChannel() {
        interrupted.accept(thread);
    }
}
