// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.function.LongConsumer;

/**
 * A handle whose destruction waits for functions of the program. These may use the handle, so no lock is held
 * meanwhile.
 */
class UnlockedNative extends Native {
    private boolean ending;

    UnlockedNative(String what, long handle, LongConsumer destroy) {
        super(what, handle, destroy);
    }

    /**
     * Destroys the handle when no call uses it any more. If that fails, the handle is unchanged. Returns
     * false if it has been destroyed or another thread destroys it.
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
                interrupted = true; // calls complete
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
