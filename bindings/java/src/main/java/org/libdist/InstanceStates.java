// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/** The functions of one {@link Strategy#openInstances}, until the last state has ended. */
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

    /** Whether functions of the program's run when the instances close. */
    boolean ends() {
        return options.destroyState() != null;
    }

    /** No state is made any more; those that are there may outlast this inside a function. */
    synchronized void end() {
        over = true;
        forgetUnused();
    }

    private void forgetUnused() {
        if (over && live == 0) {
            Upcalls.unregister(token);
        }
    }

    /** A state, as libdist has its token. */
    private static final class State extends Target {
        private final Object state;

        State(Object state) {
            this.state = state;
        }
    }

    /** What the state of that token is; null: there is none. */
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
        Object state = as(replica, options.createState());
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
            if (options.destroyState() != null) {
                options.destroyState().accept(state);
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
            options.warmUp().run(here);
            return null;
        });
    }
}
