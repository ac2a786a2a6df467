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
    private final Strategy strategy;
    private volatile boolean fired;
    private volatile boolean begun;

    Interrupts(Strategy strategy) {
        this.strategy = strategy;
    }

    void enter() {
        begin();
    }

    void leave() {
        try {
            end(true);
        } catch (IOException e) {
            // the interrupt: the thread still has it
        }
    }

    /**
     * A replica of this very run is running: from now on an interrupt cancels it, not somebody else's before
     * it.
     */
    void begun() {
        begun = true;
        if (fired) {
            throw cancelled();
        }
    }

    static DistException cancelled() {
        return new DistException(Status.CANCELLED, "the thread that runs was interrupted");
    }

    @Override
    protected void implCloseChannel() {
        fired = true;
        if (begun) {
            strategy.cancelIfOpen();
        }
    }
}
