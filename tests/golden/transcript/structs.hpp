// SPDX-License-Identifier: Apache-2.0
// The fields of the headers' structs, by name, for the recorder and the player: walk(all, fn) calls fn(name,
// field), or fn(name, pointer, &size) for an array.
#pragma once

#include <dist/dist.h>
#include <dist/tf.h>

#include <type_traits>

namespace golden::transcript {

template <class T>
constexpr bool kIsStruct = false;
template <class T>
concept Struct = kIsStruct<std::remove_const_t<T>>;

// Stands for a field that transcripts do not contain. True if it is used.
struct Unsupported {
  bool used = false;
  bool operator==(const Unsupported&) const = default;
};
inline Unsupported unless_null(const void* pointer) noexcept { return {pointer != nullptr}; }

// Arrays are visited with their sizes. An array whose size is not in the struct itself is visited like a
// plain field.
template <>
inline constexpr bool kIsStruct<dist_communication_options> = true;
template <class Fn>
void walk(dist_communication_options& all, const Fn& fn) {
  fn("bytes_per_pack", all.bytes_per_pack);
  fn("timeout_ns", all.timeout_ns);
}

template <>
inline constexpr bool kIsStruct<dist_cross_device_options> = true;
template <class Fn>
void walk(dist_cross_device_options& all, const Fn& fn) {
  fn("kind", all.kind);
  fn("reduce_to_device", all.reduce_to_device);
  fn("accumulate", all.accumulate);
  Unsupported rest{all.functions != nullptr || all.allocator.alloc != nullptr};
  fn("functions", rest);
}

// The fields of the structs that the options point to are written like fields of the options.
template <>
inline constexpr bool kIsStruct<dist_strategy_options> = true;
template <class Fn>
void walk(dist_strategy_options& all, const Fn& fn) {
  thread_local dist_cpu_options cpu;
  thread_local dist_host_options host;
  thread_local dist_mesh_options mesh;
  thread_local dist_worker_options worker;
  cpu = all.cpu != nullptr ? *all.cpu : dist_cpu_options DIST_CPU_OPTIONS_INIT;
  host = all.host != nullptr ? *all.host : dist_host_options DIST_HOST_OPTIONS_INIT;
  mesh = all.mesh != nullptr ? *all.mesh : dist_mesh_options DIST_MESH_OPTIONS_INIT;
  worker = all.worker != nullptr ? *all.worker : dist_worker_options DIST_WORKER_OPTIONS_INIT;
  all.cpu = &cpu;
  all.host = &host;
  all.mesh = &mesh;
  all.worker = &worker;
  fn("kind", all.kind);
  fn("num_replicas", all.num_replicas);
  fn("threads", all.threads);
  fn("placement", cpu.placement);
  fn("timeout_ns", all.timeout_ns);
  if (all.num_devices != 0 || all.devices == nullptr) fn("devices", all.devices, &all.num_devices);
  fn("parameter_device", all.parameter_device);
  fn("cross_device", all.cross_device);
  fn("device_assignment", mesh.device_assignment);
  fn("use_spmd_partitioning", mesh.use_spmd_partitioning);
  fn("numerics", all.numerics);
  fn("cluster_resolver", worker.cluster_resolver);
  fn("network", worker.network);
  fn("staging_bytes", worker.staging_bytes);
  fn("move_host_threads", cpu.move_host_threads);
  fn("recorded_events", host.recorded_events);
  Unsupported rest{mesh.axes != nullptr || host.allocator.alloc != nullptr || host.log != nullptr ||
                   host.clock != nullptr || all.communication != nullptr || all.functions != nullptr ||
                   worker.replicas_of_workers != nullptr || cpu.cpus != nullptr || cpu.budget != nullptr ||
                   host.executor != nullptr || host.helper_threads != 0};
  fn("functions", rest);
}

template <>
inline constexpr bool kIsStruct<dist_network_options> = true;
template <class Fn>
void walk(dist_network_options& all, const Fn& fn) {
  fn("credit_bytes", all.credit_bytes);
  Unsupported rest{all.allocator.alloc != nullptr};
  fn("allocator", rest);
}

template <>
inline constexpr bool kIsStruct<dist_strategy_properties> = true;
template <class Fn>
void walk(dist_strategy_properties& all, const Fn& fn) {
  fn("kind", all.kind);
  fn("num_replicas", all.num_replicas);
  fn("num_parameter_devices", all.num_parameter_devices);
  fn("num_workers", all.num_workers);
  fn("in_multi_worker_mode", all.in_multi_worker_mode);
  fn("require_static_shapes", all.require_static_shapes);
  fn("use_merge_call", all.use_merge_call);
  fn("between_graph", all.between_graph);
  fn("should_init", all.should_init);
  fn("should_checkpoint", all.should_checkpoint);
  fn("should_save_summary", all.should_save_summary);
  fn("global_batch_size", all.global_batch_size);
  fn("worker", all.worker);
  fn("num_local_replicas", all.num_local_replicas);
  fn("first_replica", all.first_replica);
}

template <>
inline constexpr bool kIsStruct<dist_run_options> = true;
template <class Fn>
void walk(dist_run_options& all, const Fn& fn) {
  fn("timeout_ns", all.timeout_ns);
  fn("enable_dynamic_batch_size", all.enable_dynamic_batch_size);
  fn("bucketizing_dynamic_shape", all.bucketizing_dynamic_shape);
}

template <>
inline constexpr bool kIsStruct<dist_collective_options> = true;
template <class Fn>
void walk(dist_collective_options& all, const Fn& fn) {
  fn("numerics", all.numerics);
  fn("tag", all.tag);
  fn("timeout_ns", all.timeout_ns);
  fn("axis", all.axis);
  fn("bytes_per_pack", all.bytes_per_pack);
  Unsupported rest{all.group != nullptr || all.weights != nullptr || all.contributions != 0 ||
                   all.reduce_fn != nullptr || all.splits != nullptr || all.planned != 0};
  fn("group", rest);
}

template <>
inline constexpr bool kIsStruct<dist_variable_options> = true;
template <class Fn>
void walk(dist_variable_options& all, const Fn& fn) {
  fn("aggregation", all.aggregation);
  fn("name", all.name);
  fn("synchronization", all.synchronization);
  fn("initial_fn", all.initial_fn);
}

template <>
inline constexpr bool kIsStruct<dist_update_options> = true;
template <class Fn>
void walk(dist_update_options& all, const Fn& fn) {
  fn("ungrouped", all.ungrouped);
  fn("parallel", all.parallel);
}

template <>
inline constexpr bool kIsStruct<dist_update_place> = true;
template <class Fn>
void walk(dist_update_place& all, const Fn& fn) {
  fn("replica", all.replica);
  fn("device", all.device);
  fn("copy", all.copy);
}

template <>
inline constexpr bool kIsStruct<dist_destination> = true;
template <class Fn>
void walk(dist_destination& all, const Fn& fn) {
  fn("variable", all.variable);
  fn("value", all.value);
  fn("device", all.device);
}

template <>
inline constexpr bool kIsStruct<dist_value_context> = true;
template <class Fn>
void walk(dist_value_context& all, const Fn& fn) {
  fn("replica_id_in_sync_group", all.replica_id_in_sync_group);
  fn("num_replicas_in_sync", all.num_replicas_in_sync);
}

template <>
inline constexpr bool kIsStruct<dist_input_context> = true;
template <class Fn>
void walk(dist_input_context& all, const Fn& fn) {
  fn("num_input_pipelines", all.num_input_pipelines);
  fn("input_pipeline_id", all.input_pipeline_id);
  fn("num_replicas_in_sync", all.num_replicas_in_sync);
}

template <>
inline constexpr bool kIsStruct<dist_dataset_options> = true;
template <class Fn>
void walk(dist_dataset_options& all, const Fn& fn) {
  fn("drop_remainder", all.drop_remainder);
  fn("global_batch_size", all.global_batch_size);
  fn("shuffle", all.shuffle);
  fn("prefetch", all.prefetch);
  fn("seed", all.seed);
  fn("shard_policy", all.shard_policy);
  fn("num_workers", all.num_workers);
  fn("worker_index", all.worker_index);
  fn("worker_batches", all.worker_batches);
  fn("shard_hint", all.shard_hint);
  fn("interleave", all.interleave);
  fn("static_shapes", all.static_shapes);
  fn("replication_mode", all.replication_mode);
  fn("batch_sizes", all.batch_sizes, &all.num_batch_sizes);
  fn("as_one_process", all.as_one_process);
}

template <>
inline constexpr bool kIsStruct<dist_topology_options> = true;
template <class Fn>
void walk(dist_topology_options& all, const Fn& fn) {
  Unsupported rest{all.allocator.alloc != nullptr};
  fn("allocator", rest);
}

template <>
inline constexpr bool kIsStruct<dist_partition> = true;
template <class Fn>
void walk(dist_partition& all, const Fn& fn) {
  fn("kind", all.kind);
  fn("shape", all.shape, &all.ndim);
  fn("dimensions", all.dimensions, &all.num_dimensions);
  fn("num_logical_devices", all.num_logical_devices);
  fn("logical_device", all.logical_device);
  fn("uneven", all.uneven);
  fn("spmd", all.spmd);
}

template <>
inline constexpr bool kIsStruct<dist_split_options> = true;
template <class Fn>
void walk(dist_split_options& all, const Fn& fn) {
  fn("uneven", all.uneven);
}

template <>
inline constexpr bool kIsStruct<dist_cluster_job> = true;
template <class Fn>
void walk(dist_cluster_job& all, const Fn& fn) {
  fn("name", all.name);
  fn("num_tasks", all.num_tasks);
  fn("addresses", all.addresses, &all.num_tasks);
  fn("task_indices", all.task_indices, &all.num_tasks);
}

template <>
inline constexpr bool kIsStruct<dist_cluster_spec_options> = true;
template <class Fn>
void walk(dist_cluster_spec_options& all, const Fn& fn) {
  Unsupported rest{all.allocator.alloc != nullptr};
  fn("allocator", rest);
}

template <>
inline constexpr bool kIsStruct<dist_cluster_resolver_options> = true;
template <class Fn>
void walk(dist_cluster_resolver_options& all, const Fn& fn) {
  fn("task_type", all.task_type);
  fn("has_task_id", all.has_task_id);
  fn("task_id", all.task_id);
  fn("num_accelerators", all.num_accelerators);
  fn("rpc_layer", all.rpc_layer);
  fn("environment", all.environment);
  fn("session_address", all.session_address);
  fn("tf_config", all.tf_config);
  Unsupported rest{all.allocator.alloc != nullptr};
  fn("allocator", rest);
}

// Its jobs are written and read separately: "slurm.jobs0.name".
template <>
inline constexpr bool kIsStruct<dist_slurm_options> = true;
template <class Fn>
void walk(dist_slurm_options& all, const Fn& fn) {
  fn("has_rank", all.has_rank);
  fn("rank", all.rank);
  fn("num_tasks", all.num_tasks);
  fn("host_list", all.host_list);
  fn("tasks_per_node", all.tasks_per_node);
  fn("tasks_on_each_host", all.tasks_on_each_host);
  fn("port_base", all.port_base);
  fn("gpus_per_host", all.gpus_per_host);
  fn("gpus_per_task", all.gpus_per_task);
}

}  // namespace golden::transcript
