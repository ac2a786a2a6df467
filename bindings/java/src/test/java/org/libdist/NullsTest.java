// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;

import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Executor;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A null that a method does not take is refused by the name that the argument has in Java. */
final class NullsTest {
    /** What libdist alone makes. */
    private static final Set<Class<?>> GIVEN =
            Set.of(Drift.class, StrategyProperties.class, Straggler.class, InputContext.class, UpdatePlace.class,
                    Work.class, Plan.class, Checkpoint.class, Elements.class, Block.class, RpcContext.class,
                    Closure.class, CoordinatorStats.class, Instances.class, Request.class, Item.class, Batch.class, Batcher.class, Version.class, Info.class);
    /** What needs libdist-grpc.so. */
    private static final Set<Class<?>> OF_GRPC = Set.of(RpcClient.class, RemoteValue.class, Coordinator.class);

    private NullsTest() {}

    static void addTo(Tap tap) {
        tap.add("a null is refused by its argument's name", () -> {
            FutureTask<Void> test = new FutureTask<>(NullsTest::byName, null);
            Thread thread = new Thread(test); // what the samples leave open ends with it
            thread.start();
            test.get();
        });
    }

    private static void byName() {
        Set<String> wrong = new TreeSet<>();
        try (Strategy strategy = Strategy.create(1)) {
            Samples samples = new Samples(strategy);
            strategy.run(replica -> {
                samples.objects.add(replica);
                samples.objects.add(replica.async());
                for (Class<?> type : publicTypes()) {
                    check(samples, type, wrong);
                }
            });
            ((Group) samples.of(Group.class)).close();
        }
        Tap.check(wrong.isEmpty(), String.join("\n", wrong));
    }

    private static List<Class<?>> publicTypes() {
        List<Class<?>> types = new ArrayList<>();
        String jar = Strategy.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        try {
            Jvm.open(jar, root -> {
                try (Stream<Path> files = Files.list(root.resolve("org/libdist"))) {
                    for (Path file : files.toList()) {
                        String name = file.getFileName().toString();
                        if (name.matches("\\w+\\.class")) {
                            types.add(Class.forName("org.libdist." + name.replace(".class", "")));
                        }
                    }
                }
            });
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
        types.removeIf(type
                -> !Modifier.isPublic(type.getModifiers()) || !RpcTest.isThere() && OF_GRPC.contains(type) || type.isInterface());
        return types;
    }

    private static void check(Samples samples, Class<?> type, Set<String> wrong) {
        Stream<Executable> all =
                Stream.concat(Stream.of(type.getConstructors()), Stream.of(type.getDeclaredMethods()));
        all.filter(each -> Modifier.isPublic(each.getModifiers()) && !each.isSynthetic())
                .filter(each -> !GIVEN.contains(type) || Modifier.isStatic(each.getModifiers()))
                .filter(each -> !Set.of("equals", "valueOf", "enter", "leave").contains(each.getName()))
                .forEach(each -> check(samples, each, wrong));
    }

    private static void check(Samples samples, Executable method, Set<String> wrong) {
        Parameter[] parameters = method.getParameters();
        for (int i = 0; i < parameters.length; i++) {
            if (parameters[i].getType().isPrimitive()) {
                continue;
            }
            String owner = method.getDeclaringClass().getSimpleName();
            String what = (method instanceof Constructor ? "new " + owner : owner + "." + method.getName())
                    + ": " + parameters[i].getName();
            String came = call(samples, method, i);
            boolean refused = came.startsWith("java.lang.NullPointerException");
            boolean byName = came.matches("(?s).*\\b" + parameters[i].getName() + "\\b.*");
            if ((refused && !byName) || came.startsWith("not called")) {
                wrong.add(what + " -> " + came);
            }
        }
    }

    private static String call(Samples samples, Executable method, int missing) {
        Parameter[] parameters = method.getParameters();
        Object[] args = new Object[parameters.length];
        try {
            for (int i = 0; i < args.length; i++) {
                args[i] = i == missing ? null : samples.of(parameters[i]);
            }
            if (method instanceof Constructor) {
                return "made " + ((Constructor<?>) method).newInstance(args);
            }
            Object on =
                    Modifier.isStatic(method.getModifiers()) ? null : samples.of(method.getDeclaringClass());
            ((Method) method).setAccessible(true);
            return "gave " + ((Method) method).invoke(on, args);
        } catch (InvocationTargetException e) {
            return e.getCause().toString();
        } catch (ReflectiveOperationException | RuntimeException e) {
            return "not called: " + e;
        }
    }

    /** One object of each type. */
    private static final class Samples {
        final List<Object> objects = new ArrayList<>();

        Samples(Strategy strategy) {
            Tensor tensor = Tensors.copyOf(new float[] {1});
            Value value = Value.createTensor(strategy, tensor);
            Dataset dataset =
                    Dataset.fromTensors(strategy, List.of(tensor), DatasetOptions.DEFAULT.globalBatchSize(1));
            Topology topology = Topology.fromHost();
            ClusterSpec spec = ClusterSpec.create(Map.of("worker", List.of("a:1")));
            objects.addAll(List.of(strategy, tensor, value, Variable.create(strategy, "w", tensor), dataset,
                    dataset.iterator(), dataset.iterator().position(), Group.create(strategy, 0), Halo.of(1),
                    Partition.replicate(1, new long[] {1}), Metric.create(strategy, MetricKind.SUM, "m"),
                    CrossDevice.create(CrossDeviceKind.DEFAULT), topology,
                    DeviceAssignment.create(topology), spec, ClusterResolver.fromSpec(spec),
                    ClusterResolverOptions.DEFAULT, SlurmOptions.DEFAULT, KubernetesOptions.DEFAULT,
                    RendezvousOptions.DEFAULT,
                    NetworkOptions.DEFAULT, Network.create(1), OptionalInt.empty(),
                    new ClusterJob("worker", List.of("a:1")), Cancel.create(), ValueScope.create(),
                    Map.of("x", value), "x", Duration.ZERO, Path.of("/nonexistent/x"),
                    ByteBuffer.allocateDirect(4), TimeUnit.SECONDS, new long[] {1}, new int[] {1},
                    new int[][][] {{{0, 0, 0, 0}}}, new float[] {1}, new double[] {1}, new byte[] {1},
                    new Value[] {value}, new MeshAxis[0], new Edge[0], new Throwable(), new Partition[0],
                    (Executor) Runnable::run, Destination.device("CPU:0"), StrategyOptions.DEFAULT,
                    RunOptions.DEFAULT, ReformOptions.DEFAULT, PreemptionOptions.DEFAULT,
                    PreemptionHandler.create(strategy, PreemptionOptions.DEFAULT), CollectiveOptions.DEFAULT, CommunicationOptions.DEFAULT,
                    VariableOptions.DEFAULT, DatasetOptions.DEFAULT, DevicesOptions.DEFAULT,
                    CheckpointOptions.DEFAULT, Optimizer.sgd(1), DirectBuffers.floats(1),
                    DirectBuffers.doubles(1), DirectBuffers.ints(1), DirectBuffers.longs(1), RpcCallOptions.DEFAULT,
                    RpcClientOptions.DEFAULT, RpcServerOptions.DEFAULT, RpcServer.create("127.0.0.1:0"), Server.createLocal(), ServerOptions.DEFAULT,
                    CoordinatorOptions.DEFAULT, CoordinatorVariableOptions.DEFAULT, ScheduleOptions.DEFAULT,
                    UpdateOptions.DEFAULT, InstancesOptions.DEFAULT, SubmitOptions.DEFAULT, BatcherOptions.DEFAULT, ItemOptions.DEFAULT, Versions.<String>create(), new String[] {"x"},
                    (PartitionFunction) (dtype, shape) -> shape));
            if (RpcTest.isThere()) {
                RpcClient client = RpcClient.create("127.0.0.1:1"); // where nobody is
                objects.addAll(List.of(client, client.begin("x")));
                ClusterSpec nobody = ClusterSpec.create(Map.of("ps", List.of("127.0.0.1:1"), "worker", List.of("127.0.0.1:2")));
                Strategy servers = Strategy.create(StrategyOptions.DEFAULT.kind(StrategyKind.PARAMETER_SERVER)
                                .clusterResolver(ClusterResolver.fromSpec(nobody)));
                objects.add(Coordinator.create(servers, CoordinatorOptions.DEFAULT.timeout(Duration.ofMillis(1))));
            }
        }

        Object of(Parameter parameter) {
            if (parameter.getType() != List.class) {
                return of(parameter.getType());
            }
            for (Class<?> each :
                    List.of(Tensor.class, Value.class, Variable.class, Destination.class, String.class,
                            ClusterJob.class, ClusterSpec.class, ClusterResolver.class)) {
                if (parameter.getParameterizedType().getTypeName().equals(
                            "java.util.List<" + each.getName() + ">")) {
                    return List.of(of(each));
                }
            }
            return List.of(List.of(of(Tensor.class)));
        }

        Object of(Class<?> type) {
            if (type == boolean.class) {
                return false;
            }
            if (type == long.class) {
                return 1L;
            }
            if (type == double.class) {
                return 1.0;
            }
            if (type == float.class) {
                return 1f;
            }
            if (type.isPrimitive()) {
                return 1;
            }
            for (Object each : objects) {
                if (type.isInstance(each)) {
                    return each;
                }
            }
            if (type.isEnum()) {
                return type.getEnumConstants()[0];
            }
            if (type.isInterface()) {
                return Proxy.newProxyInstance(
                        type.getClassLoader(), new Class<?>[] {type}, (p, m, a) -> null);
            }
            throw new IllegalStateException("no sample of " + type);
        }
    }
}
