// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;

/**
 * Saves a checkpoint before the job loses a machine, as TensorFlow's PreemptionCheckpointHandler does. All workers make
 * the same calls of its methods, but for {@link #notifyPreemption}.
 *
 * <pre>{@code
 * while (handler.totalRunCalls() < steps) {
 *     handler.run(trainStep); // CANCELLED: all is saved, end the program
 * }
 * }</pre>
 */
public final class PreemptionHandler extends NativeObject {
    private final Strategy strategy;
    private final List<Variable> variables; // that it saves: the collector leaves them alone

    private PreemptionHandler(Native owner, Strategy strategy, List<Variable> variables) {
        super(owner);
        this.strategy = strategy;
        this.variables = variables;
    }

    /**
     * Makes the handler of a training loop. Where the checkpoint is there, its values come to the variables, and its
     * number of runs to the handler.
     */
    public static PreemptionHandler create(Strategy strategy, PreemptionOptions options) {
        Objects.requireNonNull(options, "options");
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_preemption_handler_create(uses.waiting(strategy), options.toNative(uses), out);
            return new PreemptionHandler(
                    new Native("preemption handler", out[0], DistModule::dist_preemption_handler_destroy),
                    strategy, options.variables());
        }
    }

    /**
     * This worker is to be preempted; from any thread, also one of a shutdown. May be called again. (Java has a notify()
     * of its own.)
     */
    public void notifyPreemption() {
        ask(handle -> {
            DistModule.dist_preemption_notify(handle);
            return null;
        });
    }

    /**
     * A step of the loop: {@link #saveIfPreempted}, {@link Strategy#run(ReplicaBody)}, and {@link #countRun} where that
     * went well.
     *
     * @throws X what the body threw
     * @throws DistException CANCELLED the job is preempted, and its checkpoint is saved: nothing was run, end the program
     */
    public <X extends Exception> void run(ReplicaBody<X> body) throws X {
        run(body, RunOptions.DEFAULT);
    }

    /**
     * As {@link #run(ReplicaBody)}, with options.
     *
     * @throws X what the body threw
     */
    public <X extends Exception> void run(ReplicaBody<X> body, RunOptions options) throws X {
        Objects.requireNonNull(body, "body");
        Objects.requireNonNull(options, "options");
        if (saveIfPreempted(options.cancel()) == PreemptionState.OVER) {
            ask(handle -> { // libdist says what it says of a job that is over, and runs nothing
                DistModule.dist_preemption_run(handle, 0, null);
                return null;
            });
        }
        strategy.run(body, options);
        countRun();
    }

    /**
     * Saves the checkpoint where the job is preempted, once when that is known and once when the grace is over, and tells
     * what it has come to, the same on all workers. Where there is no path, the program saves when the state changes.
     */
    public PreemptionState saveIfPreempted() {
        return saveIfPreempted(null);
    }

    /** @param cancel ends the wait for worker 0; null: nothing does but {@link Strategy#cancel} */
    public PreemptionState saveIfPreempted(Cancel cancel) {
        try (Uses uses = new Uses()) {
            long handle = uses.of(this);
            long cancelHandle = cancel == null ? 0 : uses.of(cancel);
            uses.waiting(strategy);
            int[] out = new int[1];
            DistModule.dist_preemption_save_if_preempted(handle, cancelHandle, out);
            return PreemptionState.of(out[0]);
        }
    }

    /** Counts a run that the program has made without run(), by runValues() for instance. */
    public void countRun() {
        ask(handle -> {
            DistModule.dist_preemption_count_run(handle);
            return null;
        });
    }

    /** How many runs have been counted, with those of earlier starts that the checkpoint knows of. */
    public long totalRunCalls() {
        return ask(DistModule::dist_preemption_total_run_calls);
    }
}
