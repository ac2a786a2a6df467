// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import java.util.OptionalInt;
import org.libdist.internal.dist_cluster_resolver_options;

/**
 * What is given to a cluster resolver, which counts before what it finds. Immutable: each method gives
 * another set of options, and a null text is one that is not given.
 */
public final class ClusterResolverOptions {
    /** Nothing is given. */
    public static final ClusterResolverOptions NONE =
            new ClusterResolverOptions(null, OptionalInt.empty(), 0, null, null, null, null);

    private final String taskType;
    private final OptionalInt taskId;
    private final int numAccelerators;
    private final String rpcLayer;
    private final String environment;
    private final String sessionAddress;
    private final String tfConfig;

    private ClusterResolverOptions(String taskType, OptionalInt taskId, int numAccelerators, String rpcLayer,
            String environment, String sessionAddress, String tfConfig) {
        this.taskType = taskType;
        this.taskId = taskId;
        this.numAccelerators = numAccelerators;
        this.rpcLayer = rpcLayer;
        this.environment = environment;
        this.sessionAddress = sessionAddress;
        this.tfConfig = tfConfig;
    }

    /** The job of this process. */
    public ClusterResolverOptions taskType(String taskType) {
        return new ClusterResolverOptions(
                taskType, taskId, numAccelerators, rpcLayer, environment, sessionAddress, tfConfig);
    }

    /** Its index in the job. */
    public ClusterResolverOptions taskId(OptionalInt taskId) {
        return new ClusterResolverOptions(taskType, Objects.requireNonNull(taskId, "taskId"), numAccelerators,
                rpcLayer, environment, sessionAddress, tfConfig);
    }

    /** Its index in the job. */
    public ClusterResolverOptions taskId(int taskId) {
        return taskId(OptionalInt.of(taskId));
    }

    /** Of this process; 0: none, or those that Slurm's options give. */
    public ClusterResolverOptions numAccelerators(int numAccelerators) {
        return new ClusterResolverOptions(
                taskType, taskId, numAccelerators, rpcLayer, environment, sessionAddress, tfConfig);
    }

    /** What stands before addresses, with ://; "": nothing. */
    public ClusterResolverOptions rpcLayer(String rpcLayer) {
        return new ClusterResolverOptions(
                taskType, taskId, numAccelerators, rpcLayer, environment, sessionAddress, tfConfig);
    }

    /** A word for where the cluster runs. */
    public ClusterResolverOptions environment(String environment) {
        return new ClusterResolverOptions(
                taskType, taskId, numAccelerators, rpcLayer, environment, sessionAddress, tfConfig);
    }

    /** What master() gives where no task is asked for; of {@link ClusterResolver#simple} alone. */
    public ClusterResolverOptions sessionAddress(String sessionAddress) {
        return new ClusterResolverOptions(
                taskType, taskId, numAccelerators, rpcLayer, environment, sessionAddress, tfConfig);
    }

    /** TF_CONFIG, in the place of the environment variable. */
    public ClusterResolverOptions tfConfig(String tfConfig) {
        return new ClusterResolverOptions(
                taskType, taskId, numAccelerators, rpcLayer, environment, sessionAddress, tfConfig);
    }

    dist_cluster_resolver_options toNative(Uses uses) {
        dist_cluster_resolver_options options = new dist_cluster_resolver_options();
        uses.defer(options::delete);
        if (taskId.isPresent()) {
            options.setHas_task_id(1);
            options.setTask_id(taskId.getAsInt());
        }
        options.setNum_accelerators(numAccelerators);
        options.set_task_type(Texts.orNull(taskType));
        options.set_rpc_layer(Texts.orNull(rpcLayer));
        options.setEnvironment(Texts.orNull(environment));
        options.setSession_address(Texts.orNull(sessionAddress));
        options.setTf_config(Texts.orNull(tfConfig));
        return options;
    }
}
