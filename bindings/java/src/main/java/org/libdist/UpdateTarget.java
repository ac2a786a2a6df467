// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_update_options;

/** An update function of either kind, which keeps the variable's memory alive while views of it exist. */
final class UpdateTarget extends Target {
    private final Variable variable; // null: none
    private final UpdateFunction<?> plain;
    private final UpdateValuesFunction<?> withResult;

    private UpdateTarget(Variable variable, UpdateFunction<?> plain, UpdateValuesFunction<?> withResult) {
        this.variable = variable;
        this.plain = plain;
        this.withResult = withResult;
    }

    static Target of(Variable variable, UpdateFunction<?> fn) {
        return new UpdateTarget(variable, Objects.requireNonNull(fn, "fn"), null);
    }

    static Target of(Variable variable, UpdateValuesFunction<?> fn) {
        return new UpdateTarget(variable, null, Objects.requireNonNull(fn, "fn"));
    }

    static dist_update_options options(Uses uses, boolean ungrouped) {
        dist_update_options options = new dist_update_options();
        uses.defer(options::delete);
        options.setUngrouped(ungrouped ? 1 : 0);
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
    void update(long tensor, long args) throws Exception {
        try (Value given = Value.borrowed(args)) {
            plain.update(copy(tensor), given);
        }
    }

    @Override
    long updateValues(int replica, String device, long tensor, long args, long kwargs) throws Exception {
        try (Value given = Value.borrowed(args); Value named = Value.borrowed(kwargs)) {
            return Value.handedOver(
                    withResult.update(new UpdatePlace(replica, device, copy(tensor)), given, named));
        }
    }
}
