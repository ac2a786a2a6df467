// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.floats;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** Jobs that save a checkpoint before they lose a machine. */
final class PreemptionTest {
    private PreemptionTest() {}

    static void addTo(Tap tap) {
        tap.add("a preempted job ends, and its next start goes on", PreemptionTest::goesOn);
        tap.add("a preempted job goes on for its grace", PreemptionTest::grace);
        tap.add("preemption handlers that cannot be", PreemptionTest::misuse);
    }

    private static void refused(Status status, String words, Tap.Test call) {
        DistException refusal = thrown(DistException.class, call);
        equal(status, refusal.status());
        check(refusal.getMessage().contains(words), refusal.getMessage());
    }

    private interface Program {
        void with(Strategy strategy, PreemptionHandler handler, RunFunction<RuntimeException> step);
    }

    /** Steps that add one for each replica to the variable "steps" of a checkpoint. */
    private static void start(Path file, Duration grace, Program program) {
        try (Strategy strategy = Strategy.create(2);
                Variable steps = Variable.create(strategy, copyOf(new float[] {0}),
                        VariableOptions.DEFAULT.name("steps").aggregation(Aggregation.SUM));
                PreemptionHandler handler = PreemptionHandler.create(strategy,
                        PreemptionOptions.DEFAULT.path(file).variables(List.of(steps)).grace(grace))) {
            program.with(strategy, handler,
                    replica -> steps.assign(replica, Assign.ADD, copyOf(new float[] {1})));
        }
    }

    private static void goesOn() throws IOException {
        Path folder = Files.createTempDirectory("libdist-test");
        Path file = folder.resolve("checkpoint");
        try {
            for (int before = 0; before < 2; before++) {
                int calls = before + 1;
                start(file, Duration.ZERO, (strategy, handler, step) -> {
                    equal(calls - 1L, handler.totalRunCalls());
                    handler.run(step);
                    equal(PreemptionState.NONE, handler.saveIfPreempted());
                    handler.notifyPreemption();
                    handler.notifyPreemption();
                    for (int again = 0; again < 2; again++) {
                        refused(Status.CANCELLED, "PreemptionHandler.run(): the job is preempted",
                                () -> handler.run(step));
                    }
                    equal(PreemptionState.OVER, handler.saveIfPreempted());
                    equal((long) calls, handler.totalRunCalls());
                    try (Checkpoint saved = Checkpoint.open(strategy, file)) {
                        floats(saved.read("steps").tensor(), 2 * calls);
                        equal("" + calls, saved.metadata().get("preemption.total_run_calls"));
                    }
                });
            }
        } finally {
            Files.deleteIfExists(file);
            Files.delete(folder);
        }
    }

    private static void grace() throws IOException {
        Path file = Files.createTempDirectory("libdist-test").resolve("checkpoint");
        try {
            start(file, Duration.ofDays(1), (strategy, handler, step) -> {
                handler.notifyPreemption();
                try (Cancel stop = Cancel.create()) {
                    handler.run(step, RunOptions.DEFAULT.cancel(stop));
                    equal(PreemptionState.SAVED, handler.saveIfPreempted(stop));
                    // It ends waits for worker 0, of which there are none here, and runs.
                    stop.signal("enough");
                    equal(PreemptionState.SAVED, handler.saveIfPreempted(stop));
                    refused(Status.CANCELLED, "enough", () -> handler.run(step, RunOptions.DEFAULT.cancel(stop)));
                }
                handler.countRun();
                equal(2L, handler.totalRunCalls());
            });
        } finally {
            Files.deleteIfExists(file);
            Files.delete(file.getParent());
        }
    }

    private static void misuse() throws Exception {
        Strategy strategy = Strategy.create(2);
        Variable variable = Variable.create(strategy, "w", copyOf(new float[] {0}));
        refused(Status.INVALID_ARGUMENT, "PreemptionOptions.grace is -1",
                () -> PreemptionHandler.create(strategy, PreemptionOptions.DEFAULT.grace(Duration.ofNanos(-1))));
        refused(Status.INVALID_ARGUMENT, "no path",
                () -> PreemptionHandler.create(strategy, PreemptionOptions.DEFAULT.variables(List.of(variable))));
        PreemptionHandler handler = PreemptionHandler.create(strategy, PreemptionOptions.DEFAULT);
        thrown(IOException.class, () -> handler.run(replica -> { throw new IOException(); }));
        equal(0L, handler.totalRunCalls());
        PreemptionHandler closed = PreemptionHandler.create(strategy, PreemptionOptions.DEFAULT);
        closed.close();
        closed.close();
        for (Tap.Test call : List.<Tap.Test>of(closed::notifyPreemption, closed::saveIfPreempted, closed::countRun,
                     closed::totalRunCalls, () -> closed.run(replica -> {}))) {
            refused(Status.FAILED_PRECONDITION, "the preemption handler is closed", call);
        }
        strategy.close();
        refused(Status.FAILED_PRECONDITION, "the strategy is closed", handler::saveIfPreempted);
        handler.close(); // after its strategy
    }
}
