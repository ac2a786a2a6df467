// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CompletableFuture;

/** Who of several callers runs next on an executor: first come, first served. */
final class Turns {
    private final Deque<CompletableFuture<Void>> waiting = new ArrayDeque<>();
    private boolean taken;

    /** Completes when it is the caller's turn; {@link #leave} follows, whether it came or not. */
    synchronized CompletableFuture<Void> ask() {
        CompletableFuture<Void> turn = new CompletableFuture<>();
        if (taken) {
            waiting.add(turn);
        } else {
            taken = true;
            turn.complete(null);
        }
        return turn;
    }

    /** Gives a turn on, or no longer waits for it. */
    synchronized void leave(CompletableFuture<Void> turn) {
        if (waiting.remove(turn)) {
            return;
        }
        CompletableFuture<Void> next = waiting.poll();
        if (next == null) {
            taken = false;
        } else {
            next.complete(null);
        }
    }
}
