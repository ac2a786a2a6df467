// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;

/**
 * Saves a checkpoint before the job loses a machine, like TensorFlow's PreemptionCheckpointHandler. All
 * workers must make the same calls of its methods, except {@link #notifyPreemption}.
 *
 * <pre>{@code
 * while (handler.totalRunCalls() < steps) {
 *     handler.run(trainStep); // CANCELLED: everything is saved, end the program
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
     * Creates the handler of a training loop. If the checkpoint exists, it is loaded into the variables, and
     * the handler continues with the saved number of runs.
     */
    public static PreemptionHandler create(Strategy strategy, PreemptionOptions options) {
        Objects.requireNonNull(options, "options");
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_preemption_handler_create(uses.waiting(strategy), options.toNative(uses), out);
            return new PreemptionHandler(
                    new Native("preemption handler", out[0], DistModule::dist_preemption_handler_destroy),
                    strategy, options.variables);
        }
    }

    /**
     * Announces that this worker will be preempted. Any thread may call it, including one of a shutdown hook,
     * and repeatedly. (Java has a notify() of its own.)
     */
    public void notifyPreemption() {
        ask(handle -> {
            DistModule.dist_preemption_notify(handle);
            return null;
        });
    }

    /**
     * Performs one step of the loop: calls {@link #saveIfPreempted}, {@link Strategy#run(RunFunction)} and,
     * if that succeeds, {@link #countRun}.
     *
     * @throws X the exception that the body threw
     * @throws DistException CANCELLED the job is preempted, and its checkpoint is saved: nothing was run, end
     *         the program
     */
    public <X extends Exception> void run(RunFunction<X> body) throws X {
        run(body, RunOptions.DEFAULT);
    }

    /**
     * Same as {@link #run(RunFunction)}, with options.
     *
     * @throws X the exception that the body threw
     */
    public <X extends Exception> void run(RunFunction<X> body, RunOptions options) throws X {
        Objects.requireNonNull(body, "body");
        Objects.requireNonNull(options, "options");
        if (saveIfPreempted(options.cancel) == PreemptionState.OVER) {
            ask(handle -> { // libdist throws the error for a preempted job, and runs nothing
                DistModule.dist_preemption_run(handle, 0, null);
                return null;
            });
        }
        strategy.run(body, options);
        countRun();
    }

    /**
     * Saves the checkpoint if the job is preempted, once when the notice arrives and once when the grace
     * period ends. Returns the state, which is the same on all workers. If the options have no path, the
     * program must save when the state changes.
     */
    public PreemptionState saveIfPreempted() {
        return saveIfPreempted(null);
    }

    /**
     * Same as {@link #saveIfPreempted()}, with an object that cancels it.
     *
     * @param cancel cancels the wait for worker 0; if it is null, only {@link Strategy#cancel} does
     */
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

    /** Counts a run that the program made without run(), for example with run(). */
    public void countRun() {
        ask(handle -> {
            DistModule.dist_preemption_count_run(handle);
            return null;
        });
    }

    /**
     * Returns the number of counted runs, including those of earlier program starts that the checkpoint
     * recorded.
     */
    public long totalRunCalls() {
        return ask(DistModule::dist_preemption_total_run_calls);
    }
}
