// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.io.IOException;
import java.nio.channels.spi.AbstractInterruptibleChannel;
import java.util.function.Consumer;

/**
 * Makes Thread.interrupt() end a call, a run for instance, while its thread is in native code. The JDK tells an interrupt to one
 * kind of object alone, the channel that the thread is blocked in: this is one that has nothing to read.
 * Where the function does input or output of its own the JDK forgets this one; {@link Replica#active} looks
 * for interrupts too.
 */
final class Interrupts extends AbstractInterruptibleChannel {
    private static final ThreadLocal<Interrupts> HERE = new ThreadLocal<>();

    private final Consumer<Thread> interrupted;
    private final Thread thread = Thread.currentThread();
    private Interrupts outer; // a call that waits for this one, on the same thread

    private Interrupts(Consumer<Thread> interrupted) {
        this.interrupted = interrupted;
    }

    /** From now on, until {@link #end}, {@code interrupted} hears of interrupts of this thread. */
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
