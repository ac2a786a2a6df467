// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.function.LongConsumer;

/** A handle whose end waits for functions of the user's, which may ask it something: so nothing is locked meanwhile. */
class UnlockedNative extends Native {
    private boolean ending;

    UnlockedNative(String what, long handle, LongConsumer destroy) {
        super(what, handle, destroy);
    }

    /**
     * Ends it once nobody uses it any more. What is thrown leaves it as it was. False: it has ended, or another thread
     * ends it.
     */
    final boolean end(LongConsumer destroy) {
        if (!begin()) {
            return false;
        }
        try {
            destroy.accept(handle());
        } catch (DistException e) {
            goOn();
            throw e;
        }
        destroyed();
        return true;
    }

    private synchronized boolean begin() {
        if (!refuse(true)) {
            return false;
        }
        ending = true;
        boolean interrupted = false;
        while (users() > 0) {
            try {
                wait();
            } catch (InterruptedException e) {
                interrupted = true; // calls come to their end
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return true;
    }

    private synchronized void goOn() {
        ending = false;
        refuse(false);
    }

    @Override
    boolean isIdle() {
        return !ending && super.isIdle();
    }
}
