// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_update_options;

/** An update function, which keeps the variable's memory alive while views of it exist. */
final class UpdateTarget extends Target {
    private final Variable variable; // null: none
    private final UpdateValuesFunction<?> fn;

    private UpdateTarget(Variable variable, UpdateValuesFunction<?> fn) {
        this.variable = variable;
        this.fn = fn;
    }

    static Target of(Variable variable, UpdateFunction<?> fn) {
        Objects.requireNonNull(fn, "fn");
        return new UpdateTarget(variable, (place, args, kwargs) -> {
            fn.update(place.copy(), args);
            return null;
        });
    }

    static Target of(Variable variable, UpdateValuesFunction<?> fn) {
        return new UpdateTarget(variable, Objects.requireNonNull(fn, "fn"));
    }

    static dist_update_options options(Uses uses, boolean ungrouped, boolean parallel) {
        dist_update_options options = new dist_update_options();
        uses.defer(options::delete);
        options.setUngrouped(ungrouped ? 1 : 0);
        options.setParallel(parallel ? 1 : 0);
        return options;
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
            return Value.handedOver(fn.update(new UpdatePlace(replica, device, copy(tensor)), given, named));
        }
    }
}
