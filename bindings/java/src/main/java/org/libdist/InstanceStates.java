// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/** The functions of one {@link Strategy#openInstances} call, kept until the last state has been destroyed. */
final class InstanceStates extends Target {
    private final InstancesOptions options;
    private final long token = Upcalls.register(this);
    private int live; // states
    private boolean over; // no state comes any more

    InstanceStates(InstancesOptions options) {
        this.options = options;
    }

    long token() {
        return token;
    }

    /** Returns whether functions of the program run when the instances close. */
    boolean ends() {
        return options.destroyState != null;
    }

    /**
     * Declares that no more states will be created. Existing ones may live longer, inside a function that
     * still runs.
     */
    synchronized void end() {
        over = true;
        forgetUnused();
    }

    private void forgetUnused() {
        if (over && live == 0) {
            Upcalls.unregister(token);
        }
    }

    /** The state of an instance, which libdist knows by a token. */
    private static final class State extends Target {
        private final Object state;

        State(Object state) {
            this.state = state;
        }
    }

    /** Returns the state of a token; null if there is none. */
    static Object of(long state) {
        return state == 0 ? null : ((State) Upcalls.target(state)).state;
    }

    private static <T> T as(long handle, ReplicaFunction<T> function) throws Exception {
        Replica replica = new Replica(Strategy.known(DistModule.dist_replica_strategy(handle)), handle, null);
        Replica outer = replica.begin();
        try {
            return function.call(replica);
        } finally {
            replica.end(outer);
        }
    }

    @Override
    long createState(long replica) throws Exception {
        Object state = as(replica, options.createState);
        synchronized (this) {
            live++;
        }
        return Upcalls.register(new State(state));
    }

    @Override
    void destroyState(long token) {
        Object state = of(token);
        Upcalls.unregister(token);
        try {
            if (options.destroyState != null) {
                options.destroyState.accept(state);
            }
        } finally {
            synchronized (this) {
                live--;
                forgetUnused();
            }
        }
    }

    @Override
    void warmUp(long replica) throws Exception {
        InstanceStates.<Void>as(replica, here -> {
            options.warmUp.call(here);
            return null;
        });
    }
}
