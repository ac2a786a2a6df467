// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;
import static org.libdist.Tap.thrown;
import static org.libdist.Tensors.copyOf;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

/** Options of each kind reach libdist, which rejects a wrong value by the option's name. */
final class OptionsTest {
    private OptionsTest() {}

    static void addTo(Tap tap) {
        tap.add("a wrong option of each kind is rejected by its name", OptionsTest::wrong);
        tap.add("a wrong list of numbers is rejected by its name", OptionsTest::lists);
        tap.add("a method of options changes one option, in a copy", OptionsTest::copies);
    }

    private static void rejected(String words, UnaryOperator<StrategyOptions> change) {
        DistException e = thrown(DistException.class,
                () -> Strategy.create(change.apply(StrategyOptions.DEFAULT.numReplicas(2))).close());
        check(e.getMessage().contains(words), e);
    }

    private static void wrong() {
        rejected("numReplicas", options -> options.numReplicas(-1)); // int
        rejected("stackSizeBytes", options -> options.stackSizeBytes(1)); // long
        rejected("moveHostThreads", options -> options.moveHostThreads(true).threads(ReplicaThreads.LIBRARY)); // flag
        rejected("CommunicationOptions.bytesPerPack", options -> options.communication(CommunicationOptions.DEFAULT.bytesPerPack(-1))); // record
        rejected("parameterDevice", options -> options.parameterDevice("no device")); // text
        rejected("devices[1]", options -> options.devices(List.of("CPU:0", "no device"))); // texts
        rejected("cpus contains CPU -1", options -> options.cpus(-1)); // int32s
        try (Strategy strategy = Strategy.create(StrategyOptions.DEFAULT.kind(StrategyKind.CENTRAL_STORAGE))) {
            equal(StrategyKind.CENTRAL_STORAGE, strategy.kind()); // enum
        }
    }

    private static void lists() {
        try (Strategy strategy = Strategy.create(2)) {
            DistException weights = thrown(DistException.class, () -> strategy.run(replica
                    -> replica.allReduce(ReduceOp.MEAN, List.of(copyOf(new float[] {1})),
                            List.of(copyOf(new float[] {0})), CollectiveOptions.DEFAULT.weights(-1))));
            check(weights.getMessage().contains("weights[0]"), weights); // reals
            DistException sizes = thrown(DistException.class,
                    () -> Dataset.fromTensors(strategy, List.of(copyOf(new float[] {1})),
                            DatasetOptions.DEFAULT.globalBatchSize(1).batchSizes(-1)));
            check(sizes.getMessage().contains("batchSizes[0]"), sizes); // longs
        }
    }

    /** Reads all fields of options. */
    private static List<Object> fields(Object options) throws IllegalAccessException {
        List<Object> values = new ArrayList<>();
        for (Field field : options.getClass().getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers())) {
                field.setAccessible(true);
                values.add(field.get(options));
            }
        }
        return values;
    }

    private static void copies() throws ReflectiveOperationException {
        int methods = 0;
        for (Class<?> type : List.of(StrategyOptions.class, CollectiveOptions.class, InstancesOptions.class,
                     SlurmOptions.class, DatasetOptions.class)) {
            Object options = type.getField("DEFAULT").get(null);
            for (Method method : type.getDeclaredMethods()) {
                boolean one = method.getReturnType() == type && method.getParameterCount() == 1;
                Object value = one ? sample(method.getParameterTypes()[0]) : null;
                if (value != null) {
                    List<Object> before = fields(options);
                    Object changed = method.invoke(options, value);
                    equal(before, fields(options));
                    List<Object> after = fields(changed);
                    long differences =
                            IntStream.range(0, after.size()).filter(i -> !Objects.equals(before.get(i), after.get(i))).count();
                    check(differences == 1 || differences == 2, method + " changes " + differences); // perhaps `quick`
                    options = changed;
                    methods++;
                }
            }
        }
        check(methods > 30, methods);
    }

    private static Object sample(Class<?> type) {
        return type == int.class ? (Object) 7
                : type == long.class ? (Object) 7L
                : type == boolean.class ? (Object) true
                : type == Duration.class ? Duration.ofSeconds(7)
                : null;
    }
}
