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
 * Finds the cluster to which a process belongs, and the task that the process is. Immutable. Options take
 * precedence over what a resolver finds.
 *
 * <pre>{@code
 * ClusterResolver resolver = ClusterResolver.fromTfConfig();
 * boolean saves = resolver.spec().shouldSaveCheckpoint(resolver.taskType().orElse(null), resolver.taskId());
 * }</pre>
 */
public final class ClusterResolver extends NativeObject {
    private final long handle;

    private ClusterResolver(long handle) {
        super(new Native("cluster resolver", handle, DistModule::dist_cluster_resolver_destroy));
        this.handle = handle;
    }

    /** Wraps the resolver of a strategy, which ends with the strategy. */
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

    /** Creates a resolver for a given spec. */
    public static ClusterResolver fromSpec(ClusterSpec spec, ClusterResolverOptions options) {
        return made(options,
                (uses, given, out)
                        -> DistModule.dist_cluster_resolver_create_simple(uses.of(spec, "spec"), given, out));
    }

    /** Creates a resolver for a given spec, without options. */
    public static ClusterResolver fromSpec(ClusterSpec spec) {
        return fromSpec(spec, ClusterResolverOptions.DEFAULT);
    }

    /** Creates a resolver for TF_CONFIG. It reads the environment variable at each query. */
    public static ClusterResolver fromTfConfig(ClusterResolverOptions options) {
        return made(options,
                (uses, given, out) -> DistModule.dist_cluster_resolver_create_tf_config(given, out));
    }

    /** Creates a resolver for TF_CONFIG, without options. It reads the environment variable at each query. */
    public static ClusterResolver fromTfConfig() {
        return fromTfConfig(ClusterResolverOptions.DEFAULT);
    }

    /**
     * Creates a resolver for a Slurm step. It reads the environment once, during this call. The ranks are placed on
     * the hosts as SLURM_DISTRIBUTION specifies: block (the default), cyclic or plane=N. Any other distribution over
     * several hosts is an error.
     */
    public static ClusterResolver fromSlurm(SlurmOptions slurm, ClusterResolverOptions options) {
        Objects.requireNonNull(slurm, "slurm");
        return made(options,
                (uses, given, out)
                        -> DistModule.dist_cluster_resolver_create_slurm(slurm.toNative(uses), given, out));
    }

    /**
     * Creates a resolver for the pods of a StatefulSet or an Indexed Job, based on their names. It reads the
     * environment once, during this call.
     */
    public static ClusterResolver fromKubernetes(KubernetesOptions pods, ClusterResolverOptions options) {
        Objects.requireNonNull(pods, "pods");
        return made(options,
                (uses, given, out)
                        -> DistModule.dist_cluster_resolver_create_kubernetes(
                                pods.toNative(uses), given, out));
    }

    /**
     * Waits until all workers of a job have met at one address, and creates a resolver for the cluster that they
     * form. Every worker listens on a port that the system chooses. An interrupt ends the wait with CANCELLED, and the
     * thread stays interrupted.
     *
     * <p>The ranks come from the options, or from DIST_RANK and DIST_SIZE, torchrun, Open MPI, PMI or srun.
     *
     * @throws DistException DEADLINE_EXCEEDED not all workers have registered in time; the message lists the missing ranks
     */
    public static ClusterResolver fromRendezvous(RendezvousOptions workers, ClusterResolverOptions options) {
        Objects.requireNonNull(workers, "workers");
        return made(options,
                (uses, given, out)
                        -> Wait.run(uses, new Wait.Calls(), workers.cancel,
                                own -> DistModule.dist_cluster_resolver_create_rendezvous(
                                        workers.toNative(uses, own), given, out)));
    }

    /**
     * Same as {@link #fromRendezvous(RendezvousOptions, ClusterResolverOptions)}, with everything from the
     * environment.
     */
    public static ClusterResolver fromRendezvous() {
        return fromRendezvous(RendezvousOptions.DEFAULT, ClusterResolverOptions.DEFAULT);
    }

    /**
     * Creates a union of several resolvers. Its spec is the {@link ClusterSpec#fromSpecs} of their specs.
     * Everything else comes from the first resolver, unless options set it.
     */
    public static ClusterResolver fromResolvers(List<ClusterResolver> resolvers, ClusterResolverOptions options) {
        return made(options, (uses, given, out) -> {
            long[] handles = uses.all(resolvers, "resolvers");
            DistModule.dist_cluster_resolver_create_union(handles, handles.length, given, out);
        });
    }

    /** Same as {@link #fromResolvers(List, ClusterResolverOptions)}, without options. */
    public static ClusterResolver fromResolvers(List<ClusterResolver> resolvers) {
        return fromResolvers(resolvers, ClusterResolverOptions.DEFAULT);
    }

    /** Creates a resolver from your own functions, which are kept as long as the resolver is in use. */
    public static ClusterResolver fromFunctions(ResolverFunctions functions, ClusterResolverOptions options) {
        ResolverTarget target = new ResolverTarget(Objects.requireNonNull(functions, "functions"));
        Objects.requireNonNull(options, "options");
        long[] out = new long[1];
        Calls.<RuntimeException>keep(target,
                (uses, token)
                        -> DistModule.cluster_resolver_create_host(
                                token, target.answered(), options.toNative(uses), out));
        return new ClusterResolver(out[0]);
    }

    /** Same as {@link #fromFunctions(ResolverFunctions, ClusterResolverOptions)}, without options. */
    public static ClusterResolver fromFunctions(ResolverFunctions functions) {
        return fromFunctions(functions, ClusterResolverOptions.DEFAULT);
    }

    // ---- What it answers ----

    /** Queries the resolver and rethrows what a function of the program threw. */
    private <T> T answer(LongFunction<T> question) {
        return ResolverTarget.asking(() -> ask(question));
    }

    /** Returns the cluster. */
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

    /** Returns the job of this process; empty if it is not known. */
    public Optional<String> taskType() {
        return text(DistModule::dist_cluster_resolver_task_type);
    }

    /** Returns the index of this process in its job; empty if it is not known. */
    public OptionalInt taskId() {
        return answer(handle -> {
            int[] out = new int[1];
            DistModule.dist_cluster_resolver_task_id(handle, out);
            return ClusterSpec.given(out[0]);
        });
    }

    /** Returns the prefix of addresses, such as "grpc"; empty if it is not known. */
    public Optional<String> rpcLayer() {
        return text(DistModule::dist_cluster_resolver_rpc_layer);
    }

    /** Returns the platform on which the cluster runs; empty if it is not known. */
    public Optional<String> environment() {
        return text(DistModule::dist_cluster_resolver_environment);
    }

    /** Returns the address to connect to if no task is given, or "" if there is none. */
    public String master() {
        return master(null, OptionalInt.empty(), null);
    }

    /**
     * Returns the address to connect to for a task: "grpc://host:port".
     *
     * @param taskType null if not given
     * @param rpcLayer null selects the layer of the resolver; "" selects none
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

    /** Returns the number of accelerators of this process. */
    public int numAccelerators() {
        return numAccelerators(null, OptionalInt.empty());
    }

    /** Returns the number of accelerators of a task. */
    public int numAccelerators(String taskType, OptionalInt taskId) {
        byte[] type = Texts.orNull(taskType);
        int id = ClusterSpec.number(taskId);
        return answer(handle -> {
            int[] out = new int[1];
            DistModule.dist_cluster_resolver_num_accelerators(handle, type, id, out);
            return out[0];
        });
    }

    /**
     * Returns the GPUs of this process in the format of CUDA_VISIBLE_DEVICES, "2,3". libdist does not set the
     * environment variable.
     */
    public String gpuIds() {
        return answer(handle -> {
            byte[] out = ClusterSpec.room();
            DistModule.dist_cluster_resolver_gpu_ids(handle, out, out.length);
            return Texts.written(out);
        });
    }

    /**
     * Returns a description of each decision and its source, as lines of the form "subject: words" for people
     * to read.
     */
    public String explain() {
        return written(Text::explain_cluster);
    }

    // ---- Slurm's lists ----

    /** Returns the hosts of a Slurm host list such as "n[01-03],m1", in the order of scontrol show hostnames. */
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

    /** Expands a Slurm list of task counts: "2(x3),1" becomes 2, 2, 2, 1. */
    public static int[] slurmTasksPerNode(String tasksPerNode) {
        byte[] list = Texts.bytes(tasksPerNode, "tasksPerNode");
        int[] tasks = new int[DistModuleConstants.DIST_MAX_CLUSTER_TASKS];
        long[] n = new long[1];
        DistModule.dist_slurm_expand_tasks_per_node(list, tasks, tasks.length, n);
        return Arrays.copyOf(tasks, (int) n[0]);
    }
}
