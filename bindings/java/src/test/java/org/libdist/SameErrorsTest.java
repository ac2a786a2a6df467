// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.equal;

import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/** The same ten errors in every language: ../errors.txt, which the property dist.errors names, has what each says. */
final class SameErrorsTest {
    private SameErrorsTest() {}

    static void addTo(Tap tap) {
        tap.add("the same ten errors as in other languages", SameErrorsTest::errors);
    }

    private static Map<String, String> said() throws Exception {
        Map<String, String> said = new HashMap<>();
        String name = "";
        for (String line : Files.readAllLines(Path.of(System.getProperty("dist.errors")))) {
            if (line.startsWith("  Java | ")) {
                said.put(name, line.substring("  Java | ".length()));
            } else if (!line.startsWith(" ")) {
                name = line;
            }
        }
        return said;
    }

    private static void errors() throws Exception {
        Replica[] ended = new Replica[2];
        try (Strategy strategy = Strategy.create(2);
                Variable variable = Variable.create(strategy, "w", Tensors.floats(0, 0));
                Value longer = Value.fromTensor(strategy, Tensors.floats(0, 0, 0));
                ClusterResolver resolver =
                        ClusterResolver.fromTfConfig(ClusterResolverOptions.DEFAULT.tfConfig("{"))) {
            strategy.run(replica -> ended[replica.id()] = replica);
            Map<String, Tap.Test> calls = new LinkedHashMap<>();
            calls.put("replicas", () -> Strategy.create(StrategyOptions.DEFAULT.numReplicas(-1)).close());
            calls.put("group", () -> Group.create(strategy, 0, 7).close());
            calls.put("shapes", () -> strategy.run(replica -> replica.allReduce(ReduceOp.SUM,
                    FloatBuffer.allocate(2 + replica.id()), CollectiveOptions.DEFAULT.tag("gradients"))));
            calls.put("left", () -> strategy.run(replica -> {
                if (replica.id() == 0) {
                    replica.barrier();
                }
            }));
            calls.put("root", () -> strategy.run(
                    replica -> replica.broadcast(7, FloatBuffer.allocate(1), CollectiveOptions.DEFAULT)));
            calls.put("stale", () -> ended[0].barrier());
            calls.put("assign", () -> variable.assign(strategy, Assign.SET, longer));
            calls.put("checkpoint", () -> Checkpoint.open(strategy, Path.of("/nothing/here")).close());
            calls.put("tf_config", () -> resolver.spec().close());
            calls.put("device", () -> Dist.canonicalDevice("GPU:x"));
            Map<String, String> said = said();
            for (Map.Entry<String, Tap.Test> call : calls.entrySet()) {
                DistException error = Tap.thrown(DistException.class, call.getValue());
                equal(said.get(call.getKey()), error.function() + " | " + error.parameter() + " | " + error.getMessage());
            }
        }
    }
}
