// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;

/** An update function, which keeps the variable's memory alive while views of it exist. */
final class UpdateTarget extends Target {
    private final Variable variable; // null: none
    private final UpdateFunction<?> fn;

    private UpdateTarget(Variable variable, UpdateFunction<?> fn) {
        this.variable = variable;
        this.fn = fn;
    }

    static Target of(Variable variable, UpdateFunction<?> fn) {
        return new UpdateTarget(variable, Objects.requireNonNull(fn, "fn"));
    }

    private Tensor copy(long tensor) {
        if (tensor == 0) {
            return null;
        }
        long[] numbers = Tensor.room();
        DistModule.tensor_at(tensor, 0, numbers);
        return Tensor.described(numbers, variable.ask(Variable.Memory::new));
    }

    @Override
    long update(int replica, String device, long tensor, long args, long kwargs) throws Exception {
        try (Value given = Value.borrowed(args); Value named = Value.borrowed(kwargs)) {
            return Value.handedOver(fn.call(new UpdatePlace(replica, device, copy(tensor)), given, named));
        }
    }
}
