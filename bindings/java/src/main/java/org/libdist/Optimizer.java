// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.libdist.internal.DistModuleConstants;
import org.libdist.internal.dist_apply_options;

/**
 * Specifies how {@link Replica#reduceApply} applies reduced gradients. Immutable: each method returns a new
 * optimizer.
 */
public final class Optimizer {
    private final double learningRate;
    private final double momentum;
    private final double clipNorm;
    private final List<List<Tensor>> states;
    private final ApplyFunction function; // null: SGD

    private Optimizer(double learningRate, double momentum, double clipNorm, List<List<Tensor>> states,
            ApplyFunction function) {
        this.learningRate = learningRate;
        this.momentum = momentum;
        this.clipNorm = clipNorm;
        this.states = states;
        this.function = function;
    }

    /** Selects gradient descent: parameter = parameter - learningRate * gradient. */
    public static Optimizer sgd(double learningRate) {
        return new Optimizer(learningRate, 0, 0, List.of(), null);
    }

    /**
     * Selects gradient descent with momentum: state = momentum * state - learningRate * gradient; parameter =
     * parameter + state.
     */
    public static Optimizer sgd(double learningRate, double momentum, List<Tensor> state) {
        return new Optimizer(learningRate, momentum, 0,
                List.of(List.copyOf(Objects.requireNonNull(state, "state"))), null);
    }

    /** Selects a function of your own. Each list of states has tensors with the shapes of the parameters. */
    public static Optimizer function(ApplyFunction function, List<List<Tensor>> states) {
        return new Optimizer(0, 0, 0, List.copyOf(Objects.requireNonNull(states, "states")),
                Objects.requireNonNull(function, "function"));
    }

    /** Scales gradients down if their global norm exceeds clipNorm. 0 means no clipping. */
    public Optimizer clipNorm(double clipNorm) {
        return new Optimizer(learningRate, momentum, clipNorm, states, function);
    }

    Target target() {
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

    /** Makes a call with these options. */
    void with(Uses uses, long token, Consumer<dist_apply_options> call) {
        dist_apply_options options = new dist_apply_options();
        try {
            options.setKind(function == null ? DistModuleConstants.DIST_APPLY_SGD
                                             : DistModuleConstants.DIST_APPLY_CALLBACK);
            options.setLearning_rate(learningRate);
            options.setMomentum(momentum);
            options.setClip_norm(clipNorm);
            if (function != null) {
                options.set_function(token);
            }
            if (!states.isEmpty()) {
                long[] numbers = uses.written(states.stream().flatMap(List::stream).toList());
                options.set_states(numbers, numbers.length, states.size());
            }
            call.accept(options);
        } finally {
            options.delete();
        }
    }
}
