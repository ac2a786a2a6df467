// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** Makes native calls that call Java functions: registers the function, and rethrows what it threw. */
final class Calls {
    private Calls() {}

    @FunctionalInterface
    interface Call {
        void with(Uses uses, long token);
    }

    @FunctionalInterface
    interface ValueCall {
        void with(Uses uses, long token, long[] out);
    }

    /** Makes a call that uses its functions only until it returns. */
    static <X extends Exception> void run(Target target, Call call) throws X {
        long token = Upcalls.register(target);
        try (Uses uses = new Uses()) {
            call.with(uses, token);
        } catch (DistException report) {
            throw Target.<X>rethrow(target.cause(report));
        } finally {
            Upcalls.unregister(token);
        }
        target.check();
    }

    /** Same as {@link #run}, for a call that returns a value. */
    static <X extends Exception> Value valueOf(Target target, ValueCall call) throws X {
        long[] out = new long[1];
        Calls.<X>run(target, (uses, token) -> call.with(uses, token, out));
        return Value.taken(out[0]);
    }

    /**
     * Makes a call after which libdist keeps the function until it releases it. If the call fails, the
     * function is not kept.
     */
    static <X extends Exception> void keep(Target target, Call call) throws X {
        long token = Upcalls.register(target);
        boolean kept = false;
        try (Uses uses = new Uses()) {
            call.with(uses, token);
            kept = true;
        } catch (DistException report) {
            throw Target.<X>rethrow(target.cause(report));
        } finally {
            if (!kept) {
                Upcalls.unregister(token);
            }
        }
    }
}
