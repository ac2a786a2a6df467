// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import java.util.OptionalInt;
import org.libdist.internal.dist_cluster_resolver_options;

/**
 * Options of cluster resolvers. They take precedence over what a resolver finds. Immutable: each method
 * returns a new set of options. A null text is not set.
 */
public final class ClusterResolverOptions {
    /** Options in which nothing is set. */
    public static final ClusterResolverOptions DEFAULT =
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

    /** Sets the job of this process. */
    public ClusterResolverOptions taskType(String taskType) {
        return new ClusterResolverOptions(
                taskType, taskId, numAccelerators, rpcLayer, environment, sessionAddress, tfConfig);
    }

    /** Sets the index of this process in its job. */
    public ClusterResolverOptions taskId(OptionalInt taskId) {
        return new ClusterResolverOptions(taskType, Objects.requireNonNull(taskId, "taskId"), numAccelerators,
                rpcLayer, environment, sessionAddress, tfConfig);
    }

    /** Sets the index of this process in its job. */
    public ClusterResolverOptions taskId(int taskId) {
        return taskId(OptionalInt.of(taskId));
    }

    /**
     * Sets the number of accelerators of this process; 0 means none, or the number from {@link SlurmOptions}.
     */
    public ClusterResolverOptions numAccelerators(int numAccelerators) {
        return new ClusterResolverOptions(
                taskType, taskId, numAccelerators, rpcLayer, environment, sessionAddress, tfConfig);
    }

    /** Sets the prefix of addresses, which is followed by "://"; "" means no prefix. */
    public ClusterResolverOptions rpcLayer(String rpcLayer) {
        return new ClusterResolverOptions(
                taskType, taskId, numAccelerators, rpcLayer, environment, sessionAddress, tfConfig);
    }

    /** Sets the platform on which the cluster runs. */
    public ClusterResolverOptions environment(String environment) {
        return new ClusterResolverOptions(
                taskType, taskId, numAccelerators, rpcLayer, environment, sessionAddress, tfConfig);
    }

    /** Sets the result of {@link ClusterResolver#master()}; only for {@link ClusterResolver#fromSpec}. */
    public ClusterResolverOptions sessionAddress(String sessionAddress) {
        return new ClusterResolverOptions(
                taskType, taskId, numAccelerators, rpcLayer, environment, sessionAddress, tfConfig);
    }

    /** Sets the value of TF_CONFIG, in place of the environment variable. */
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
