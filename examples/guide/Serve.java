// SPDX-License-Identifier: Apache-2.0

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.libdist.InstancesOptions;
import org.libdist.ReplicaThreads;
import org.libdist.Strategy;
import org.libdist.StrategyOptions;

/** serve.c in Java: each request runs on one idle replica, which has its own copy of the model. */
public final class Serve {
    private record Model(double weight) {}

    public static void main(String[] args) {
        StrategyOptions options = StrategyOptions.DEFAULT.numReplicas(2).threads(ReplicaThreads.LIBRARY);
        InstancesOptions loading = InstancesOptions.DEFAULT.createState(replica -> new Model(3)); // on each replica
        try (Strategy strategy = Strategy.create(options)) { // closing the strategy closes the instances
            strategy.openInstances(loading);
            List<CompletableFuture<Double>> answers = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                double input = i;
                answers.add(strategy.submit( // returns immediately
                        replica -> input * replica.instanceState(Model.class).weight()));
            }
            for (int i = 0; i < answers.size(); i++) {
                System.out.printf("%d -> %.0f%n", i, answers.get(i).join());
            }
        }
    }
}
