// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/** A part of one tensor for an {@link ApplyFunction}. It is valid only during the call. */
public final class Block {
    private final int tensor;
    private final long first;
    private final Elements gradient;
    private final Elements parameter;
    private final Elements[] states;

    Block(int tensor, long first, long count, DType dtype, long gradient, long parameter, int numStates,
            long states) {
        this.tensor = tensor;
        this.first = first;
        this.gradient = Elements.at(gradient, count, dtype);
        this.parameter = Elements.at(parameter, count, dtype);
        this.states = new Elements[numStates];
        for (int i = 0; i < numStates; i++) {
            this.states[i] = Elements.at(DistModule.pointer_at(states, i), count, dtype);
        }
    }

    void end() {
        gradient.end();
        parameter.end();
        for (Elements state : states) {
            state.end();
        }
    }

    /** Returns the index of the tensor in the list. */
    public int tensor() {
        return tensor;
    }

    /** Returns the index of the block's first element in the tensor. */
    public long first() {
        return first;
    }

    /** Returns the gradient, reduced and scaled by gradient clipping. It must not be written. */
    public Elements gradient() {
        return gradient;
    }

    /** Returns the parameter, to be updated in place. */
    public Elements parameter() {
        return parameter;
    }

    /** Returns a state, to be updated in place. */
    public Elements state(int index) {
        return states[index];
    }
}
