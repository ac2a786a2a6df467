// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** Native calls that call a function of the user's back: the token's life, and whose exception comes out. */
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

    /** A call whose functions are over when it returns. */
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

    /** As {@link #run}, for the value that the call gives. */
    static <X extends Exception> Value valueOf(Target target, ValueCall call) throws X {
        long[] out = new long[1];
        Calls.<X>run(target, (uses, token) -> call.with(uses, token, out));
        return Value.taken(out[0]);
    }

    /** A call that keeps the function, which its release ends; on failure it is not kept. */
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
