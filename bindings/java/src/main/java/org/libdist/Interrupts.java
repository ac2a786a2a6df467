// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.io.IOException;
import java.nio.channels.spi.AbstractInterruptibleChannel;

/**
 * Makes Thread.interrupt() cancel a run while its thread is in native code. The JDK tells an interrupt to one
 * kind of object alone, the channel that the thread is blocked in: this is one that has nothing to read.
 * Where the function does input or output of its own the JDK forgets this one; {@link Replica#active} looks
 * for interrupts too.
 */
final class Interrupts extends AbstractInterruptibleChannel {
    private static final ThreadLocal<Interrupts> HERE = new ThreadLocal<>();

    private final RunCall run;
    private final Thread thread = Thread.currentThread();
    private Interrupts outer; // a run that waits for this one, on the same thread

    private Interrupts(RunCall run) {
        this.run = run;
    }

    /** From now on, until {@link #end}, interrupts of this thread cancel the run. */
    static Interrupts watch(RunCall run) {
        Interrupts here = new Interrupts(run);
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
        run.interrupted(thread);
    }
}
