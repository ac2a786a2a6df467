// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Locale;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Says in Java's words what libdist says in C's: functions, constants, fields, NULL. Names and texts of the
 * program's own stay as they are: what is quoted, and tags.
 */
final class Words {
    private static final Pattern C_WORD = Pattern.compile("\"[^\"]*\"|\\(tag \"[^)]*\"\\)"
            + "|\\bdist_(?<name>[a-z0-9_]+)"
            + "|\\bDIST_(?<constant>[A-Z0-9_]*)(?:\\.\\.\\.)?"
            + "|\\bNULL\\b"
            + "|\\bdestroy(?= (?:it|them) first\\b)"
            + "|(?<group>(?<=\\boptions)->(?:cpu|host|mesh|worker)(?=->))|(?<=[a-z])(?<arrow>->)(?=[a-z])"
            + "|\\b(?<field>[a-z]+(?:_[a-z0-9]+)+)\\b");

    /** Functions that are not `Class.method` by their own names. */
    private static final Map<String, String> FUNCTIONS = Map.ofEntries(Map.entry("run", "Strategy.run"),
            Map.entry("run_values", "Strategy.run"), Map.entry("submit", "Strategy.submit"), Map.entry("batcher_create", "Batcher.create"),
            Map.entry("batcher_count", "Batcher.numWaiting"), Map.entry("request_take", "Item.take"),
            Map.entry("versions_create", "Versions.create"), Map.entry("versions_destroy", "Versions.close"),
            Map.entry("serve", "Strategy.serve"), Map.entry("instances_open", "Strategy.openInstances"),
            Map.entry("instances_close", "Strategy.closeInstances"), Map.entry("strategy_create", "Strategy.create"),
            Map.entry("replica_enter", "Strategy.enter"), Map.entry("set_strategy", "Strategy.setCurrent"),
            Map.entry("get_strategy", "Strategy.current"), Map.entry("has_strategy", "Strategy.hasCurrent"),
            Map.entry("in_cross_replica_context", "Strategy.isInCrossReplicaContext"),
            Map.entry("get_replica", "Replica.current"), Map.entry("scope_enter", "Strategy.scope"),
            Map.entry("scope_exit", "Scope.close"), Map.entry("colocate_enter", "Strategy.colocate"),
            Map.entry("colocate_exit", "Scope.close"), Map.entry("reduce", "Strategy.reduce"),
            Map.entry("reduce_to", "Strategy.reduceTo"),
            Map.entry("batch_reduce_to", "Strategy.batchReduceTo"),
            Map.entry("broadcast_to", "Strategy.broadcastTo"), Map.entry("gather", "Strategy.gather"),
            Map.entry("destination_device", "Strategy.destinationDevice"),
            Map.entry("update", "Variable.update"),
            Map.entry("update_non_slot", "Strategy.updateNonSlot"),
            Map.entry("replica_read", "Variable.read"), Map.entry("replica_assign", "Variable.assign"),
            Map.entry("replica_scatter", "Variable.scatter"), Map.entry("replica_update", "Variable.update"),
            Map.entry("replica_version", "Versions.get"),
            Map.entry("apply_options", "Optimizer"),
            Map.entry("variable_created_in_scope", "Variable.isCreatedInScope"),
            Map.entry("batch_user_data", "Batch.input"),
            Map.entry("cluster_spec_json", "ClusterSpec.toJson"),
            Map.entry("cluster_spec_union", "ClusterSpec.fromSpecs"),
            Map.entry("cluster_worker_count", "ClusterSpec.numWorkers"),
            Map.entry("coordinator_done", "Coordinator.isDone"),
            Map.entry("coordinator_restore", "Coordinator.load"),
            Map.entry("device_assignment_build", "DeviceAssignment.create"),
            Map.entry("device_assignment_create", "DeviceAssignment.fromCoreAssignment"),
            Map.entry("device_assignment_create_single", "DeviceAssignment.create"),
            Map.entry("remote_value_ready", "RemoteValue.isDone"),
            Map.entry("strategy_query", "Strategy.properties"),
            Map.entry("strategy_reform_due", "Strategy.isReformDue"),
            Map.entry("strategy_write_trace", "Strategy.traceJson"),
            Map.entry("strategy_write_metrics", "Strategy.metricsText"),
            Map.entry("server_write_trace", "Server.traceJson"),
            Map.entry("coordinator_write_trace", "Coordinator.traceJson"),
            Map.entry("all_reduce_value", "Replica.allReduce"),
            Map.entry("all_gather_value", "Replica.allGather"),
            Map.entry("replica_assign_value", "Variable.assign"),
            Map.entry("dataset_create_from_tensors", "Dataset.fromTensors"),
            Map.entry("dataset_create_from_callback", "Dataset.fromSource"),
            Map.entry("dataset_create_from_files", "Dataset.fromFiles"),
            Map.entry("dataset_create_from_function", "Dataset.fromFunction"),
            Map.entry("iterator_create", "Dataset.iterator"),
            Map.entry("iterator_create_at", "Dataset.iterator"),
            Map.entry("values_from_function", "Value.fromFunction"),
            Map.entry("value_release", "Value.close"), Map.entry("work_wait", "Work.join"), Map.entry("request_wait", "Request.join"),
            Map.entry("request_test", "Request.isDone"),
            Map.entry("request_wait_any", "Request.anyOf"),
            Map.entry("work_test", "Work.isDone"), Map.entry("work_wait_any", "Work.anyOf"),
            Map.entry("work_start", "Plan.start"), Map.entry("work_ready", "Plan.markReady"),
            Map.entry("work_destroy", "Plan.close"), Map.entry("cancel_create", "Cancel.create"),
            Map.entry("strategy_shutdown", "Strategy.close"),
            Map.entry("cancel_signalled", "Cancel.isSignalled"),
            Map.entry("variable_class", "Variable.variableClass"),
            Map.entry("checkpoint_metadata_key", "Checkpoint.metadata"),
            Map.entry("checkpoint_num_metadata", "Checkpoint.metadata"),
            Map.entry("reshard_bytes", "Partition.reshardBytes"), Map.entry("fail", "DistException"),
            Map.entry("average_loss", "Losses.averageLoss"),
            Map.entry("scale_regularization_loss", "Losses.scaleRegularizationLoss"),
            Map.entry("version", "Dist.version"), Map.entry("has_feature", "Dist.hasFeature"),
            Map.entry("status_name", "Dist.statusName"),
            Map.entry("canonical_device", "Dist.canonicalDevice"),
            Map.entry("batch_sizes_for_worker", "Dist.batchSizesForWorker"),
            Map.entry("cluster_spec_create", "ClusterSpec.create"),
            Map.entry("cluster_spec_num_jobs", "ClusterSpec.jobs"),
            Map.entry("cluster_spec_job", "ClusterSpec.jobs"),
            Map.entry("cluster_spec_is_equal", "ClusterSpec.isSame"),
            Map.entry("network_create", "Network.create"), Map.entry("budget_create", "Budget.create"),
            Map.entry("preemption_handler_create", "PreemptionHandler.create"),
            Map.entry("preemption_handler_destroy", "PreemptionHandler.close"),
            Map.entry("preemption_notify", "PreemptionHandler.notifyPreemption"),
            Map.entry("preemption_run", "PreemptionHandler.run"),
            Map.entry("preemption_save_if_preempted", "PreemptionHandler.saveIfPreempted"),
            Map.entry("preemption_count_run", "PreemptionHandler.countRun"),
            Map.entry("preemption_total_run_calls", "PreemptionHandler.totalRunCalls"),
            Map.entry("rpc_server_create", "RpcServer.create"), Map.entry("rpc_client_create", "RpcClient.create"),
            Map.entry("rpc_call", "RpcClient.call"), Map.entry("rpc_begin", "RpcClient.begin"),
            Map.entry("remote_value_retain", "RemoteValue.future"),
            Map.entry("server_create", "Server.create"), Map.entry("server_create_local", "Server.createLocal"),
            Map.entry("coordinator_num_variables", "Coordinator.variables"),
            Map.entry("coordinator_variable_name", "Coordinator.variables"),
            Map.entry("coordinator_variable_part", "Coordinator.variableParts"),
            Map.entry("coordinator_query", "Coordinator.stats"),
            Map.entry("remote_value_release", "RemoteValue.close"),
            Map.entry("cluster_resolver_create_simple", "ClusterResolver.fromSpec"),
            Map.entry("cluster_resolver_create_tf_config", "ClusterResolver.fromTfConfig"),
            Map.entry("cluster_resolver_create_slurm", "ClusterResolver.fromSlurm"),
            Map.entry("cluster_resolver_create_kubernetes", "ClusterResolver.fromKubernetes"),
            Map.entry("cluster_resolver_create_rendezvous", "ClusterResolver.fromRendezvous"),
            Map.entry("cluster_resolver_create_union", "ClusterResolver.fromResolvers"),
            Map.entry("cluster_resolver_create_host", "ClusterResolver.fromFunctions"),
            Map.entry("cluster_explain", "ClusterResolver.explain"),
            Map.entry("slurm_expand_host_list", "ClusterResolver.slurmHosts"),
            Map.entry("slurm_expand_tasks_per_node", "ClusterResolver.slurmTasksPerNode"),
            Map.entry("partitions_part", "Partitioners.rowsOfPart"),
            Map.entry("partitions_part_of", "Partitioners.partOfRow"));

    /** Whose methods functions with these beginnings are, and whose options structs. The longest counts. */
    private static final Map<String, String> CLASSES = Map.ofEntries(Map.entry("strategy", "Strategy"),
            Map.entry("replica", "Replica"), Map.entry("group", "Group"), Map.entry("work", "Work"), Map.entry("request", "Request"),
            Map.entry("value", "Value"), Map.entry("variable", "Variable"), Map.entry("dataset", "Dataset"),
            Map.entry("iterator", "BatchIterator"), Map.entry("metric", "Metric"),
            Map.entry("checkpoint", "Checkpoint"), Map.entry("topology", "Topology"),
            Map.entry("device_assignment", "DeviceAssignment"), Map.entry("cross_device", "CrossDevice"),
            Map.entry("partition", "Partition"), Map.entry("cancel", "Cancel"), Map.entry("batch", "Batch"), Map.entry("batcher", "Batcher"), Map.entry("versions", "Versions"),
            Map.entry("reduce_op", "ReduceOp"), Map.entry("aggregation", "Aggregation"),
            Map.entry("synchronization", "Synchronization"), 
            Map.entry("communication_options", "CommunicationOptions"), Map.entry("input_mode", "InputMode"),
            Map.entry("input_context", "InputContext"), Map.entry("cluster", "ClusterSpec"),
            Map.entry("cluster_spec", "ClusterSpec"), Map.entry("cluster_resolver", "ClusterResolver"),
            Map.entry("partitions", "Partitioners"), Map.entry("network", "Network"), Map.entry("budget", "Budget"),
            Map.entry("rpc_server", "RpcServer"), Map.entry("rpc_client", "RpcClient"),
            Map.entry("remote_value", "RemoteValue"), Map.entry("server", "Server"),
            Map.entry("closure", "Closure"), Map.entry("coordinator", "Coordinator"));

    private static final Map<String, String> CONSTANTS = Map.of("ASSIGN", "Assign.SET", "PLACEMENT_CORES",
            "StrategyOptions.placedOnCores(true)", "PLACEMENT_FREE", "StrategyOptions.placedOnCores(false)",
            "APPLY_SGD", "Optimizer.sgd()", "APPLY_CALLBACK", "Optimizer.function()");

    /** Fields and parameters of another name than C's in Java's manner; the others that there are. */
    private static final Map<String, String> FIELDS = Map.ofEntries(Map.entry("timeout_ns", "timeout"),
            Map.entry("window_ns", "window"), Map.entry("grace_ns", "grace"),
            Map.entry("num_replicas", "numReplicas"), Map.entry("replicas_of_workers", "replicasPerWorker"), Map.entry("spin_ns", "spin"), Map.entry("stuck_ns", "stuck"), Map.entry("num_cpus", "cpus"), Map.entry("max_delay_ns", "maxDelay"), Map.entry("num_devices", "devices"),
            Map.entry("num_axes", "axes"), Map.entry("reduce_fn", "reducer"),
            Map.entry("initial_fn", "initial"), Map.entry("metadata_keys", "metadata"),
            Map.entry("num_batch_sizes", "the number of sizes"), Map.entry("num_jobs", "the number of jobs"),
            Map.entry("num_resolvers", "the number of resolvers"),
            Map.entry("num_specs", "the number of specs"),
            Map.entry("num_partitions", "the number of partitions"),
            Map.entry("start_timeout_ns", "startTimeout"), Map.entry("name_space", "namespace"),
            Map.entry("reduce_element_bytes", "elementBytes"),
            Map.entry("accumulate_element_bytes", "elementBytes"));
    private static final Pattern OTHER_FIELDS = Pattern.compile("core_assignment|computation_(shape|stride)"
            + "|device_(assignment|coordinates)|drop_remainder|global_batch_size|mesh_shape"
            + "|num_(devices_per_task|logical_devices|packs|replicas_in_sync|tasks|workers|states|results)"
            + "|parameter_device|per_example_loss|replica_ids?|replication_mode"
            + "|sample_weight|shard_(hint|policy)|use_spmd_partitioning|worker_(index|batches)|batch_sizes|as_one_process"
            + "|bytes_per_pack|out_work|learning_rate|clip_norm|static_shapes|logical_device"
            + "|num_(accelerators|parts|rows|threads)|max_(queued|replaced)|request_id|helper_threads|max_(items|waiting|bytes|results)|rpc_layer|task_(id|type)|tf_config|session_address|first_index"
            + "|host_(list|name)|port_base|tasks_(per_node|on_each_host)|gpus_per_(host|task)|element_bytes"
            + "|m(ax|in)_shard_bytes|max_shards|min_workers|credit_bytes|staging_bytes"
            + "|enable_dynamic_batch_size|bucketizing_dynamic_shape|stack_size_bytes|async_bytes|merge_call"
            + "|bind_address|move_host_threads|recorded_events|closures_per_worker|colocate_with|max_(losses|message_bytes|staleness)");

    private static final Pattern NEXT_WORD = Pattern.compile("_([a-z0-9])");

    private Words() {}

    /** A message of libdist's. */
    static String of(String message) {
        return C_WORD.matcher(message).replaceAll(word -> Matcher.quoteReplacement(translated(word)));
    }

    private static String translated(MatchResult word) {
        Matcher parts = (Matcher) word;
        if (parts.group("name") != null) {
            return function(parts.group("name"));
        }
        if (parts.group("constant") != null) {
            boolean whole = word.group().endsWith("...");
            String name = parts.group("constant");
            return constant(whole ? name.replaceAll("_$", "") : name, whole);
        }
        if (parts.group("group") != null) {
            return "";
        }
        if (parts.group("arrow") != null) {
            return ".";
        }
        if (parts.group("field") != null) {
            return field(parts.group("field"));
        }
        return switch (word.group()) {
            case "NULL" -> "null";
            case "destroy" -> "close";
            default -> word.group();
        };
    }

    /** The method, or constructor, or class, that C has as dist_{@code name}. */
    static String function(String name) {
        String exact = FUNCTIONS.get(name);
        if (exact != null) {
            return exact;
        }
        if (name.matches("(cpu|host|mesh|worker)_options")) {
            return "StrategyOptions";
        }
        if (name.endsWith("_options") || !name.contains("_")) {
            String struct = camel("_" + name);
            return name.endsWith("_options") || CLASSES.containsKey(name) || name.equals("halo")
                    ? struct
                    : "Replica." + name;
        }
        for (int end = name.lastIndexOf('_'); end > 0; end = name.lastIndexOf('_', end - 1)) {
            String owner = CLASSES.get(name.substring(0, end));
            if (owner != null) {
                return owner + "." + method(owner, name.substring(end + 1));
            }
        }
        return "Replica." + camel(name);
    }

    private static String method(String owner, String name) {
        if (name.equals("name") && (EnumWords.ENUMS.containsValue(owner) || owner.equals("InputMode"))) {
            return "tfName";
        }
        return name.equals("destroy") ? "close" : name.equals("kind_of") ? "kind" : camel(name);
    }

    /** The enum's constant, or, of `DIST_REDUCE_...`, the enum. */
    static String constant(String name, boolean whole) {
        String exact = CONSTANTS.get(name);
        if (exact != null && !whole) {
            return exact;
        }
        if (whole) {
            return EnumWords.ENUMS.getOrDefault(name, "DType");
        }
        for (int end = name.lastIndexOf('_'); end > 0; end = name.lastIndexOf('_', end - 1)) {
            String type = EnumWords.ENUMS.get(name.substring(0, end));
            if (type != null) {
                return type + "." + name.substring(end + 1);
            }
        }
        if (Stream.of(DType.values()).anyMatch(each -> each.name().equals(name))) {
            return "DType." + name;
        }
        boolean isStatus = Stream.of(Status.values()).anyMatch(each -> each.name().equals(name));
        return (isStatus ? "Status." : "DIST_") + name;
    }

    private static String field(String name) {
        String exact = FIELDS.get(name);
        if (exact != null) {
            return exact;
        }
        return OTHER_FIELDS.matcher(name).matches() ? camel(name) : name;
    }

    private static String camel(String name) {
        return NEXT_WORD.matcher(name).replaceAll(m -> m.group(1).toUpperCase(Locale.ROOT));
    }
}
