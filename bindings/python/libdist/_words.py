# SPDX-License-Identifier: Apache-2.0
"""libdist's texts in Python's names: what C calls DIST_STRATEGY_MESH or timeout_ns is StrategyKind.MESH or timeout."""

from __future__ import annotations

import re

from .constants import ENUMS, OF_REPLICAS, DType, Status

# Functions of C, and of SWIG, which dist_python_handles.i prefixes with dist_.
_FUNCTIONS = {
    "dist_Stragglers_read": "Strategy.stragglers",
    "dist_Text_describe_value": "Value.describe",
    "dist_Text_describe_variable": "Variable.describe",
    "dist_Text_expand_host_list": "slurm_hosts",
    "dist_Text_explain": "Strategy.explain",
    "dist_Text_explain_cluster": "ClusterResolver.explain",
    "dist_Text_explain_dataset": "Dataset.explain",
    "dist_Text_explain_topology": "Topology.explain",
    "dist_Text_write_coordinator_trace": "Coordinator.write_trace",
    "dist_Text_write_metrics": "Strategy.write_metrics",
    "dist_Text_write_server_trace": "Server.write_trace",
    "dist_Text_write_trace": "Strategy.write_trace",
    "dist_average_loss": "average_loss",
    "dist_batch_reduce_to": "Strategy.batch_reduce_to",
    "dist_batch_size": "Batch",
    "dist_batch_sizes_for_worker": "batch_sizes_for_worker",
    "dist_batcher_create": "Strategy.batcher",
    "dist_canonical_device": "canonical_device",
    "dist_checkpoint_load": "Strategy.load_checkpoint",
    "dist_checkpoint_metadata_key": "Checkpoint.metadata",
    "dist_checkpoint_name": "Checkpoint.names",
    "dist_checkpoint_num_metadata": "Checkpoint.metadata",
    "dist_checkpoint_open": "Strategy.open_checkpoint",
    "dist_checkpoint_save": "Strategy.save_checkpoint",
    "dist_checkpoint_size": "Checkpoint",
    "dist_closure_cancel": "Closure.cancelled",
    "dist_closure_id": "Closure",
    "dist_closure_name": "Closure",
    "dist_closure_worker": "Closure",
    "dist_cluster_explain": "ClusterResolver.explain",
    "dist_cluster_resolver_create_simple": "ClusterResolver.simple",
    "dist_cluster_spec_is_equal": "ClusterSpec",
    "dist_cluster_spec_job": "ClusterSpec.jobs",
    "dist_cluster_spec_num_jobs": "ClusterSpec.jobs",
    "dist_colocate_enter": "Strategy.colocate",
    "dist_colocate_exit": "Strategy.colocate",
    "dist_coordinator_num_variables": "Coordinator.variables",
    "dist_coordinator_variable_name": "Coordinator.variables",
    "dist_cross_device_batch_reduce": "CrossDevice.batch_reduce",
    "dist_dataset_create_from_callback": "Strategy.dataset_from_callback",
    "dist_dataset_create_from_files": "Strategy.dataset_from_files",
    "dist_dataset_create_from_function": "Strategy.dataset_from_function",
    "dist_dataset_create_from_tensors": "Strategy.dataset_from_tensors",
    "dist_device_assignment_create_single": "DeviceAssignment.single",
    "dist_device_replica": "Replica.device",
    "dist_enum_from_name": "reduce_op_from_name",
    "dist_enum_name": "reduce_op_name",
    "dist_fail": "raise libdist.DistError",
    "dist_get_replica": "get_replica",
    "dist_get_strategy": "get_strategy",
    "dist_group_create": "Strategy.group",
    "dist_has_feature": "has_feature",
    "dist_has_strategy": "has_strategy",
    "dist_in_cross_replica_context": "in_cross_replica_context",
    "dist_instance_state": "Replica.instance_state",
    "dist_instances_close": "Strategy.close_instances",
    "dist_instances_open": "Strategy.instances",
    "dist_iterator_create": "Dataset.__iter__",
    "dist_iterator_create_at": "Dataset.iterate_from",
    "dist_iterator_next": "DatasetIterator.__next__",
    "dist_partition_check": "Partition.check",
    "dist_partition_shard": "Partition.shard",
    "dist_partitions_fixed_shards": "fixed_shards",
    "dist_partitions_max_size": "max_size_shards",
    "dist_partitions_min_size": "min_size_shards",
    "dist_partitions_part": "rows_of_part",
    "dist_partitions_part_of": "part_of_row",
    "dist_quick_all_reduce": "Replica.all_reduce",
    "dist_quick_barrier": "Replica.barrier",
    "dist_quick_broadcast": "Replica.broadcast",
    "dist_reduce_op_from_aggregation": "reduce_op_from_aggregation",
    "dist_replica_enter": "Strategy.enter",
    "dist_replica_id": "Replica",
    "dist_replica_leave": "Strategy.enter",
    "dist_replica_num_replicas": "Replica",
    "dist_replica_strategy": "Replica",
    "dist_reshard_bytes": "reshard_bytes",
    "dist_rpc_arguments": "RpcClient.begin",
    "dist_rpc_begin": "RpcClient.begin",
    "dist_rpc_call": "RpcClient.call",
    "dist_run_until": "Strategy.run",
    "dist_scale_regularization_loss": "scale_regularization_loss",
    "dist_scope_enter": "Strategy.scope",
    "dist_scope_exit": "Strategy.scope",
    "dist_server_create_local": "Server.local",
    "dist_set_strategy": "set_strategy",
    "dist_slurm_expand_host_list": "slurm_hosts",
    "dist_slurm_expand_tasks_per_node": "slurm_tasks_per_node",
    "dist_status_name": "status_name",
    "dist_topology_num_missing_devices": "Topology.missing_devices",
    "dist_value_container": "Strategy.value_container",
    "dist_value_create_composite": "Strategy.composite",
    "dist_value_create_dict": "Strategy.value",
    "dist_value_create_list": "Strategy.value",
    "dist_value_create_mirrored": "Strategy.mirrored",
    "dist_value_create_none": "Strategy.value",
    "dist_value_create_per_replica": "Strategy.per_replica",
    "dist_value_create_tensor": "Strategy.tensor",
    "dist_value_create_text": "Strategy.value",
    "dist_value_create_tuple": "Strategy.value",
    "dist_value_create_variable": "Strategy.value",
    "dist_value_from_dlpack": "Strategy.value",
    "dist_value_key": "Value.keys",
    "dist_value_object": "Value",
    "dist_value_size": "Value",
    "dist_value_tensor": "Value.numpy",
    "dist_value_to_dlpack": "Value",
    "dist_value_variable": "Value",
    "dist_value_wrap_object": "Strategy.value",
    "dist_value_wrap_tensor": "Strategy.value",
    "dist_variable_class": "Variable.class_name",
    "dist_variable_create": "Strategy.variable",
    "dist_variable_created_in_scope": "Strategy.variable_created_in_scope",
    "dist_version": "version",
    "dist_versions_await": "Versions.wait",
    "dist_coordinator_create": "Strategy.coordinator",
    "dist_metric_create": "Strategy.metric",
    "dist_metric_update": "Replica.update_metric",
    "dist_preemption_handler_create": "Strategy.preemption_handler",
    "dist_remote_value_get": "RemoteValue.result",
    "dist_remote_value_ready": "RemoteValue.done",
    "dist_work_test": "Work.done",
    "dist_work_wait": "Work.result",
    "dist_request_destroy": "Request",
    "dist_request_take": "Item.results",
    "dist_request_test": "Request",
    "dist_request_user_data": "Request",
    "dist_request_wait": "Request.result",
    "dist_request_wait_any": "Request.result",
}
# Functions that start with one of these names are the class's own; the longest name applies.
_CLASSES = {
    "batch": "Batch",
    "batcher": "Batcher",
    "budget": "Budget",
    "cancel": "Cancel",
    "checkpoint": "Checkpoint",
    "closure": "Closure",
    "cluster": "ClusterSpec",
    "cluster_resolver": "ClusterResolver",
    "cluster_resolver_create": "ClusterResolver",
    "cluster_spec": "ClusterSpec",
    "communication_options": "CommunicationOptions",
    "completions": "Request",
    "coordinator": "Coordinator",
    "cross_device": "CrossDevice",
    "dataset": "Dataset",
    "device_assignment": "DeviceAssignment",
    "group": "Group",
    "input_context": "InputContext",
    "iterator": "DatasetIterator",
    "metric": "Metric",
    "network": "Network",
    "preemption": "PreemptionHandler",
    "preemption_handler": "PreemptionHandler",
    "remote_value": "RemoteValue",
    "replica": "Replica",
    "rpc_client": "RpcClient",
    "rpc_server": "RpcServer",
    "server": "Server",
    "strategy": "Strategy",
    "topology": "Topology",
    "value": "Value",
    "variable": "Variable",
    "versions": "Versions",
    "work": "Work",
    "request": "Request",
}
# Classes without close().
_COLLECTED = ("cluster_resolver", "cluster_spec", "device_assignment", "topology")

_TYPES = {
    "batch_free": "release callback",
    "done": "done callback",
}

_FORMS = re.compile(
    r"\bDIST_(?P<enum>" + "|".join(sorted(ENUMS, key=len, reverse=True)) + r")_(?P<member>[A-Z]\w*|\.\.\.)"
    r"|\bDIST_(?P<status>" + "|".join(Status.__members__) + r")\b"
    r"|\bDIST_(?P<assign>ASSIGN)\b"
    r"|\bDIST_(?P<limit>MAX_[A-Z_]+)"
    r"|\bDIST_(?P<dtype>" + "|".join(DType.__members__) + r"|\.\.\.)"
    r"|\bdist_\w+_options\.(?P<option>\w+)"
    r"|\bdist_(?P<record>position)\.(?P<field>\w+)"
    r"|\b(?:options|partition|halo|functions)->(?:\w+->)?(?P<given>\w+)"
    r"|\b(?P<time>[a-z]+(?:_[a-z]+)*_ns)\b"
    r"|(?<=\bexecutor: )(?P<workers>num_threads)\b"
    r"|\b(?P<null>NULL)\b"
    r"|\b(?P<end>destroy)(?= (?:it|them) first\b)"
    r"|\bdist_(?P<type>[a-z_]+)_fn\b"
    r"|\b(?P<function>dist_[a-zA-Z]\w*)(?=\()"
)


def _python(found: re.Match[str]) -> str:
    group = found.lastgroup
    text = found[group] if group else ""
    if found["function"]:
        return _function(found["function"])
    if found["enum"]:
        return f"{ENUMS[found['enum']]}.{found['member']}"
    if found["record"]:
        return f"Position.{text}"
    if group == "status":
        return f"Status.{text}"
    if group == "assign":
        return "Assign.SET"
    if group == "limit":
        return f"libdist.{text}"
    if group == "dtype":
        return f"DType.{text}"
    if group in ("option", "given", "time"):
        return text.removesuffix("_ns")
    if group == "workers":
        return "max_workers"
    if group == "null":
        return "None"
    if group == "end":
        return "close"
    return _TYPES.get(text, "callback")


def _function(name: str) -> str:
    """The Python name of a function of C."""
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    short = name.removeprefix("dist_")
    owner = max((begin for begin in _CLASSES if short.startswith(f"{begin}_")), key=len, default="")
    if owner:
        method = short.removeprefix(f"{owner}_")
        made = method in ("create", "release", "retain") or owner == "completions"
        if made or (method == "destroy" and owner in _COLLECTED):
            return _CLASSES[owner]
        return f"{_CLASSES[owner]}.{'close' if method == 'destroy' else method.removesuffix('_of')}"
    return f"Replica.{short}" if short in OF_REPLICAS else f"Strategy.{short}"


def in_python(text: str) -> str:
    """A text of libdist's for a program in Python."""
    return _FORMS.sub(_python, text)
