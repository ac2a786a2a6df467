// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;

/** The targets that call functions of options, one for each kind of function. */
final class Targets {
    private Targets() {}

    /** @param elementBytes the size of one element of the function; 0 selects the dtype's size */
    static Target reduce(ReduceFunction function, long elementBytes) {
        return new Target() {
            @Override
            void reduce(long acc, long in, long count, DType dtype) {
                long each = elementBytes == 0 ? 1 : elementBytes / dtype.sizeBytes();
                Elements sum = Elements.at(acc, count * each, dtype);
                Elements next = Elements.at(in, count * each, dtype);
                try {
                    function.call(sum, next);
                } finally {
                    sum.end();
                    next.end();
                }
            }
        };
    }

    static Target apply(ApplyFunction function) {
        return new Target() {
            @Override
            void apply(long tensor, long first, long count, DType dtype, long gradient, long parameter,
                    int numStates, long addresses) {
                Block block = new Block(
                        (int) tensor, first, count, dtype, gradient, parameter, numStates, addresses);
                try {
                    function.call(block);
                } finally {
                    block.end();
                }
            }
        };
    }

    static Target initial(InitialFunction<?> initial) {
        Objects.requireNonNull(initial, "initial");
        return new Target() {
            @Override
            long initial() throws Exception {
                return Value.handedOver(initial.call());
            }
        };
    }

    static Target log(LogFunction function) {
        return new Target() {
            @Override
            void log(LogLevel level, String message) {
                function.call(level, message);
            }
        };
    }
}
