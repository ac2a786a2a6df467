// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/** A run on the logical devices of a replica, inside that replica's run. */
final class DevicesCall extends RunCall {
    /** Like a {@link ValuesFunction}, but may throw any exception. */
    @FunctionalInterface
    interface Function {
        Value call(Replica device, Value args, Value kwargs) throws Exception;
    }

    private final Function function;

    DevicesCall(Strategy strategy, Function function) {
        super(strategy);
        this.function = function;
    }

    @Override
    long values(long handle, long positional, long named) throws Exception {
        return asReplica(handle, device -> {
            try (Value given = Value.borrowed(positional); Value keys = Value.borrowed(named)) {
                return Value.handedOver(function.call(device, given, keys));
            }
        });
    }
}
