// SPDX-License-Identifier: Apache-2.0

import java.time.Duration;
import org.libdist.Cancel;
import org.libdist.CollectiveOptions;
import org.libdist.DistException;
import org.libdist.Replica;
import org.libdist.RunOptions;
import org.libdist.Strategy;

/** deadlines.c in Java: three runs that end early, and one that succeeds after them. */
public final class Deadlines {
    private static final Duration LIMIT = Duration.ofMillis(50);

    /** A long computation. check() throws when the run fails, is cancelled, or reaches its deadline. */
    private static void compute(Replica replica) {
        while (true) {
            replica.check(); // ... and compute a little
        }
    }

    private static void report(String name, Runnable run) {
        try {
            run.run();
            System.out.println(name + ": OK");
        } catch (DistException e) {
            System.out.println(name + ": " + e.status() + (e.replica() >= 0 ? ", replica " + e.replica() : ""));
        }
    }

    public static void main(String[] args) {
        try (Strategy strategy = Strategy.create(2); Cancel cancel = Cancel.create()) {
            report("late", () -> strategy.run(replica -> { // replica 1 does not arrive at the barrier in time
                if (replica.id() == 1) {
                    compute(replica);
                }
                replica.barrier(CollectiveOptions.DEFAULT.timeout(LIMIT));
            }));
            report("slow", () -> strategy.run(replica -> { // replica 0 takes longer than the whole run may
                if (replica.id() == 0) {
                    compute(replica);
                }
            }, RunOptions.DEFAULT.timeout(LIMIT)));
            report("cancelled", () -> strategy.run(replica -> {
                if (replica.id() == 0) {
                    cancel.signal("enough"); // any other thread could do so, too
                }
                compute(replica);
            }, RunOptions.DEFAULT.cancel(cancel)));
            report("quick", () -> strategy.run(replica -> replica.barrier()));
        }
    }
}
