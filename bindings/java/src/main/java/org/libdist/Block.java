// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.DistModule;

/** A piece of one tensor for an {@link ApplyFunction}, lent for one call. */
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

    /** Which tensor of the list. */
    public int tensor() {
        return tensor;
    }

    /** The number of the piece's first element in the tensor. */
    public long first() {
        return first;
    }

    /** The gradient, reduced, and scaled by the clip: to be read. */
    public Elements gradient() {
        return gradient;
    }

    /** The parameter: to be changed. */
    public Elements parameter() {
        return parameter;
    }

    /** A state: to be changed. */
    public Elements state(int index) {
        return states[index];
    }
}
