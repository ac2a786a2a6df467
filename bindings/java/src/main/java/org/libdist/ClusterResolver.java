// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.LongFunction;
import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;
import org.libdist.internal.Text;
import org.libdist.internal.dist_cluster_resolver_options;

/**
 * Who says which cluster a process is part of, and which task of it the process is. Immutable. What options
 * give counts before what a resolver finds.
 *
 * <pre>{@code
 * ClusterResolver resolver = ClusterResolver.tfConfig();
 * boolean saves = resolver.spec().shouldSaveCheckpoint(resolver.taskType().orElse(null), resolver.taskId());
 * }</pre>
 */
public final class ClusterResolver extends NativeObject {
    private final long handle;

    private ClusterResolver(long handle) {
        super(new Native("cluster resolver", handle, DistModule::dist_cluster_resolver_destroy));
        this.handle = handle;
    }

    /** The one that a strategy was made with: it ends with that. */
    ClusterResolver(long handle, Strategy strategy) {
        super(strategy);
        this.handle = handle;
    }

    @Override
    long acquire() {
        super.acquire();
        return handle;
    }

    @FunctionalInterface
    private interface Create {
        void with(Uses uses, dist_cluster_resolver_options options, long[] out);
    }

    private static ClusterResolver made(ClusterResolverOptions options, Create create) {
        Objects.requireNonNull(options, "options");
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            create.with(uses, options.toNative(uses), out);
            return new ClusterResolver(out[0]);
        }
    }

    /** Of a spec that is given. */
    public static ClusterResolver simple(ClusterSpec spec, ClusterResolverOptions options) {
        return made(options,
                (uses, given, out)
                        -> DistModule.dist_cluster_resolver_create_simple(uses.of(spec, "spec"), given, out));
    }

    /** Of a spec that is given, with which nothing else is. */
    public static ClusterResolver simple(ClusterSpec spec) {
        return simple(spec, ClusterResolverOptions.NONE);
    }

    /** Of TF_CONFIG. The environment variable is read at each question. */
    public static ClusterResolver tfConfig(ClusterResolverOptions options) {
        return made(options,
                (uses, given, out) -> DistModule.dist_cluster_resolver_create_tf_config(given, out));
    }

    /** Of TF_CONFIG. The environment variable is read at each question. */
    public static ClusterResolver tfConfig() {
        return tfConfig(ClusterResolverOptions.NONE);
    }

    /** Of a step of Slurm's. What the environment says is read here, once. */
    public static ClusterResolver slurm(SlurmOptions slurm, ClusterResolverOptions options) {
        Objects.requireNonNull(slurm, "slurm");
        return made(options,
                (uses, given, out)
                        -> DistModule.dist_cluster_resolver_create_slurm(slurm.toNative(uses), given, out));
    }

    /**
     * Of the names that the pods of a StatefulSet or an Indexed Job have. What the environment says is read
     * here, once.
     */
    public static ClusterResolver kubernetes(KubernetesOptions pods, ClusterResolverOptions options) {
        Objects.requireNonNull(pods, "pods");
        return made(options,
                (uses, given, out)
                        -> DistModule.dist_cluster_resolver_create_kubernetes(
                                pods.toNative(uses), given, out));
    }

    /**
     * One of several: the spec is {@link ClusterSpec#union} of theirs, all else the first one's, unless
     * options give it.
     */
    public static ClusterResolver union(List<ClusterResolver> resolvers, ClusterResolverOptions options) {
        return made(options, (uses, given, out) -> {
            long[] handles = uses.all(resolvers, "resolvers");
            DistModule.dist_cluster_resolver_create_union(handles, handles.length, given, out);
        });
    }

    /** One of several, see {@link #union(List, ClusterResolverOptions)}. */
    public static ClusterResolver union(List<ClusterResolver> resolvers) {
        return union(resolvers, ClusterResolverOptions.NONE);
    }

    /** Of functions of your own, which are kept as long as something asks them. */
    public static ClusterResolver host(ResolverFunctions functions, ClusterResolverOptions options) {
        ResolverTarget target = new ResolverTarget(Objects.requireNonNull(functions, "functions"));
        Objects.requireNonNull(options, "options");
        long[] out = new long[1];
        Calls.<RuntimeException>keep(target,
                (uses, token)
                        -> DistModule.cluster_resolver_create_host(
                                token, target.answered(), options.toNative(uses), out));
        return new ClusterResolver(out[0]);
    }

    /** Of functions of your own, see {@link #host(ResolverFunctions, ClusterResolverOptions)}. */
    public static ClusterResolver host(ResolverFunctions functions) {
        return host(functions, ClusterResolverOptions.NONE);
    }

    // ---- What it answers ----

    /** A question, from which comes what a function of the user's threw. */
    private <T> T answer(LongFunction<T> question) {
        return ResolverTarget.asking(() -> ask(question));
    }

    /** The cluster. */
    public ClusterSpec spec() {
        return answer(handle -> {
            long[] out = new long[1];
            DistModule.dist_cluster_resolver_spec(handle, out);
            return new ClusterSpec(out[0]);
        });
    }

    @FunctionalInterface
    private interface TextOf {
        void ask(long resolver, byte[] out, long sizeBytes, int[] isSet);
    }

    private Optional<String> text(TextOf question) {
        return answer(handle -> {
            byte[] out = ClusterSpec.room();
            int[] isSet = new int[1];
            question.ask(handle, out, out.length, isSet);
            return isSet[0] == 0 ? Optional.empty() : Optional.of(Texts.written(out));
        });
    }

    /** The job of this process; empty: it is not known. */
    public Optional<String> taskType() {
        return text(DistModule::dist_cluster_resolver_task_type);
    }

    /** The index of this process in its job; empty: it is not known. */
    public OptionalInt taskId() {
        return answer(handle -> {
            int[] out = new int[1];
            DistModule.dist_cluster_resolver_task_id(handle, out);
            return ClusterSpec.given(out[0]);
        });
    }

    /** What stands before addresses; empty: nothing is known. */
    public Optional<String> rpcLayer() {
        return text(DistModule::dist_cluster_resolver_rpc_layer);
    }

    /** A word for where the cluster runs; empty: none. */
    public Optional<String> environment() {
        return text(DistModule::dist_cluster_resolver_environment);
    }

    /** Where to connect to where no task is asked for; "" for nowhere. */
    public String master() {
        return master(null, OptionalInt.empty(), null);
    }

    /**
     * Where to connect to for a task: "grpc://host:port".
     *
     * @param taskType null: not given
     * @param rpcLayer null: the resolver's; "": none
     */
    public String master(String taskType, OptionalInt taskId, String rpcLayer) {
        byte[] type = Texts.orNull(taskType);
        byte[] layer = Texts.orNull(rpcLayer);
        int id = ClusterSpec.number(taskId);
        return answer(handle -> {
            byte[] out = ClusterSpec.room();
            DistModule.dist_cluster_resolver_master(handle, type, id, layer, out, out.length);
            return Texts.written(out);
        });
    }

    /** How many accelerators this process has. */
    public int numAccelerators() {
        return numAccelerators(null, OptionalInt.empty());
    }

    /** How many accelerators a task has. */
    public int numAccelerators(String taskType, OptionalInt taskId) {
        byte[] type = Texts.orNull(taskType);
        int id = ClusterSpec.number(taskId);
        return answer(handle -> {
            int[] out = new int[1];
            DistModule.dist_cluster_resolver_num_accelerators(handle, type, id, out);
            return out[0];
        });
    }

    /** The GPUs of this process as CUDA_VISIBLE_DEVICES has them, "2,3"; libdist does not set it. */
    public String gpuIds() {
        return answer(handle -> {
            byte[] out = ClusterSpec.room();
            DistModule.dist_cluster_resolver_gpu_ids(handle, out, out.length);
            return Texts.written(out);
        });
    }

    /** What was decided, and from where: lines of "subject: words", for people. */
    public String explain() {
        return written(Text::explain_cluster);
    }

    // ---- Slurm's lists ----

    /** The hosts of a list as Slurm writes them: "n[01-03],m1". */
    public static List<String> slurmHosts(String hostList) {
        byte[] list = Texts.bytes(hostList, "hostList");
        Text text = new Text();
        try {
            text.expand_host_list(list);
            return Texts.of(text.text()).lines().toList();
        } finally {
            text.delete();
        }
    }

    /** The numbers of a list as Slurm writes them: "2(x3),1" is 2, 2, 2, 1. */
    public static int[] slurmTasksPerNode(String tasksPerNode) {
        byte[] list = Texts.bytes(tasksPerNode, "tasksPerNode");
        int[] tasks = new int[DistModuleConstants.DIST_MAX_CLUSTER_TASKS];
        long[] n = new long[1];
        DistModule.dist_slurm_expand_tasks_per_node(list, tasks, tasks.length, n);
        return Arrays.copyOf(tasks, (int) n[0]);
    }
}
