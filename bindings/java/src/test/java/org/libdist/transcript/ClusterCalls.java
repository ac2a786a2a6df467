// SPDX-License-Identifier: Apache-2.0

package org.libdist.transcript;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.LongStream;
import org.libdist.ClusterJob;
import org.libdist.ClusterResolver;
import org.libdist.ClusterResolverOptions;
import org.libdist.ClusterSpec;
import org.libdist.Environment;
import org.libdist.Partitioners;
import org.libdist.SlurmOptions;
import org.libdist.Strategy;

/** The calls about clusters, resolvers and partitioners. */
final class ClusterCalls {
    private ClusterCalls() {}

    static void addTo(Map<String, Calls.Call> all) {
        Calls.act("setenv", (p, l) -> Environment.set(l.text("name"), l.text("value")));
        specs(all);
        rules();
        resolvers(all);
        slurm(all);
        partitioners(all);
    }

    private static ClusterSpec spec(Player p, Line l) {
        return p.object(ClusterSpec.class, l, "spec");
    }

    private static ClusterResolver resolver(Player p, Line l) {
        return p.object(ClusterResolver.class, l, "resolver");
    }

    private static OptionalInt task(Line l) {
        int id = l.number("task_id");
        return id == Integer.MIN_VALUE ? OptionalInt.empty() : OptionalInt.of(id);
    }

    private static String array(LongStream numbers) {
        return Literals.array(numbers.boxed().toList(), Object::toString);
    }

    private static String array(int[] numbers) {
        return array(Arrays.stream(numbers).asLongStream());
    }

    private static void specs(Map<String, Calls.Call> all) {
        Calls.object("cluster_spec_from_json", (p, l) -> ClusterSpec.fromJson(l.text("text")));
        Calls.object("cluster_spec_create", (p, l) -> ClusterSpec.create(jobs(l)));
        Calls.act("cluster_spec_destroy", (p, l) -> {
            spec(p, l).close();
            p.unbind(l.given.get("spec"));
        });
        Calls.number("cluster_spec_num_jobs", (p, l) -> spec(p, l).jobs().size());
        Calls.text("cluster_spec_json", (p, l) -> spec(p, l).toJson());
        Calls.text("cluster_spec_job", (p, l) -> spec(p, l).jobs().get(l.number("index")));
        Calls.number("cluster_spec_num_tasks", (p, l) -> spec(p, l).numTasks(l.text("job")));
        all.put("cluster_spec_task_indices",
                (p, l, came) -> came.put("out", array(spec(p, l).taskIndices(l.text("job")))));
        Calls.text("cluster_spec_task_address",
                (p, l) -> spec(p, l).taskAddress(l.text("job"), l.number("task")));
        Calls.flag("cluster_spec_is_equal",
                (p, l) -> p.object(ClusterSpec.class, l, "a").isSame(p.object(ClusterSpec.class, l, "b")));
    }

    private static List<ClusterJob> jobs(Line l) {
        List<ClusterJob> jobs = new ArrayList<>();
        for (int i = 0; l.has("jobs" + i + ".name"); i++) {
            String prefix = "jobs" + i + ".";
            jobs.add(new ClusterJob(l.text(prefix + "name"),
                    l.items(prefix + "addresses").stream().map(Literals::text).toList(),
                    l.items(prefix + "task_indices").stream().map(Integer::valueOf).toList()));
        }
        return jobs;
    }

    private static void rules() {
        Calls.act("cluster_validate", (p, l) -> spec(p, l).validate(l.text("task_type"), task(l)));
        Calls.flag("cluster_is_chief", (p, l) -> spec(p, l).isChief(l.text("task_type"), task(l)));
        Calls.number("cluster_id_in_cluster",
                (p, l) -> spec(p, l).idInCluster(l.text("task_type"), task(l)));
        Calls.flag("cluster_should_save_checkpoint",
                (p, l) -> spec(p, l).shouldSaveCheckpoint(l.text("task_type"), task(l)));
        Calls.text("cluster_collective_leader",
                (p, l) -> spec(p, l).collectiveLeader(l.text("task_type"), task(l)));
        Calls.text("cluster_coordination_leader", (p, l) -> spec(p, l).coordinationLeader());
        Calls.number("cluster_worker_count", (p, l) -> spec(p, l).numWorkers(l.text("task_type")));
    }

    private static ClusterResolverOptions options(Line l) {
        ClusterResolverOptions options = ClusterResolverOptions.DEFAULT.taskType(l.text("options.task_type"))
                                                 .numAccelerators(l.number("options.num_accelerators"))
                                                 .rpcLayer(l.text("options.rpc_layer"))
                                                 .environment(l.text("options.environment"))
                                                 .sessionAddress(l.text("options.session_address"))
                                                 .tfConfig(l.text("options.tf_config"));
        return l.number("options.has_task_id") == 0 ? options : options.taskId(l.number("options.task_id"));
    }

    @FunctionalInterface
    private interface Maybe {
        Optional<String> of(ClusterResolver resolver);
    }

    private static void text(Map<String, Calls.Call> all, String name, Maybe question) {
        all.put(name, (p, l, came) -> {
            Optional<String> text = question.of(resolver(p, l));
            came.put("out", Literals.ofText(text.orElse("")));
            came.put("out.is_set", text.isPresent() ? "1" : "0");
        });
    }

    private static void resolvers(Map<String, Calls.Call> all) {
        Calls.object("strategy_cluster_resolver",
                (p, l) -> p.object(Strategy.class, l, "strategy").clusterResolver().orElse(null));
        Calls.object("cluster_resolver_create_simple",
                (p, l) -> ClusterResolver.fromSpec(spec(p, l), options(l)));
        Calls.object("cluster_resolver_create_tf_config", (p, l) -> ClusterResolver.fromTfConfig(options(l)));
        Calls.object("cluster_resolver_create_union",
                (p, l) -> ClusterResolver.fromResolvers(l.items("resolvers")
                                                        .stream()
                                                        .map(name -> p.named(ClusterResolver.class, name))
                                                        .toList(),
                                options(l)));
        Calls.act("cluster_resolver_destroy", (p, l) -> {
            resolver(p, l).close();
            p.unbind(l.given.get("resolver"));
        });
        Calls.object("cluster_resolver_spec", (p, l) -> resolver(p, l).spec());
        text(all, "cluster_resolver_task_type", ClusterResolver::taskType);
        text(all, "cluster_resolver_rpc_layer", ClusterResolver::rpcLayer);
        text(all, "cluster_resolver_environment", ClusterResolver::environment);
        Calls.number("cluster_resolver_task_id",
                (p, l) -> resolver(p, l).taskId().orElse(Integer.MIN_VALUE));
        Calls.text("cluster_resolver_master",
                (p, l) -> resolver(p, l).master(l.text("task_type"), task(l), l.text("rpc_layer")));
        Calls.number("cluster_resolver_num_accelerators",
                (p, l) -> resolver(p, l).numAccelerators(l.text("task_type"), task(l)));
        Calls.text("cluster_resolver_gpu_ids", (p, l) -> resolver(p, l).gpuIds());
    }

    private static void slurm(Map<String, Calls.Call> all) {
        Calls.object("cluster_resolver_create_slurm",
                (p, l) -> ClusterResolver.fromSlurm(slurmOptions(l), options(l)));
        all.put("slurm_expand_host_list",
                (p, l, came)
                        -> came.put("out",
                                Literals.array(ClusterResolver.slurmHosts(l.text("host_list")),
                                        Literals::ofText)));
        all.put("slurm_expand_tasks_per_node",
                (p, l, came)
                        -> came.put("out",
                                array(ClusterResolver.slurmTasksPerNode(l.text("tasks_per_node")))));
    }

    private static SlurmOptions slurmOptions(Line l) {
        SlurmOptions options = SlurmOptions.DEFAULT.numTasks(l.number("slurm.num_tasks"))
                                       .hostList(l.text("slurm.host_list"))
                                       .tasksPerNode(l.text("slurm.tasks_per_node"))
                                       .tasksOnEachHost(l.number("slurm.tasks_on_each_host"))
                                       .portBase(l.number("slurm.port_base"))
                                       .gpusPerHost(l.number("slurm.gpus_per_host"))
                                       .gpusPerTask(l.number("slurm.gpus_per_task"));
        Map<String, Integer> jobs = new LinkedHashMap<>();
        for (int i = 0; l.has("slurm.jobs" + i + ".name"); i++) {
            jobs.put(l.text("slurm.jobs" + i + ".name"), l.number("slurm.jobs" + i + ".num_tasks"));
        }
        if (!jobs.isEmpty()) {
            options = options.jobs(jobs);
        }
        return l.number("slurm.has_rank") == 0 ? options : options.rank(l.number("slurm.rank"));
    }

    private static void partitioners(Map<String, Calls.Call> all) {
        all.put("partitions_fixed_shards",
                (p, l, came)
                        -> came.put("out",
                                array(Arrays.stream(Partitioners.fixedShards(
                                        l.integers("shape"), l.number("axis"), l.number("num_shards"))))));
        all.put("partitions_min_size",
                (p, l, came)
                        -> came.put("out",
                                array(Arrays.stream(Partitioners.minSize(l.integers("shape"),
                                        l.number("axis"), l.integer("element_bytes"),
                                        l.integer("min_shard_bytes"), l.number("max_shards"))))));
        all.put("partitions_max_size",
                (p, l, came)
                        -> came.put("out",
                                array(Arrays.stream(Partitioners.maxSize(l.integers("shape"),
                                        l.number("axis"), l.integer("element_bytes"),
                                        l.integer("max_shard_bytes"), l.number("max_shards"))))));
    }
}
