// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CompletableFuture;

/** Lets callers run on an executor one after another, in the order of arrival. */
final class Turns {
    private final Deque<CompletableFuture<Void>> waiting = new ArrayDeque<>();
    private boolean taken;

    /**
     * Returns a future that completes when it is the caller's turn. {@link #leave} must follow, whether it
     * has completed or not.
     */
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

    /** Passes the turn on, or stops waiting for it. */
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
