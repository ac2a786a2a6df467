# SPDX-License-Identifier: Apache-2.0
"""libdist's texts in Python's names: what C calls DIST_STRATEGY_MESH or timeout_ns is StrategyKind.MESH or timeout."""

from __future__ import annotations

import re

from .constants import ENUMS, OF_REPLICAS, DType

_FUNCTIONS = {
    "dist_average_loss": "average_loss",
    "dist_batch_check": "Batch.check",
    "dist_batch_emit": "Batch.emit",
    "dist_batcher_count": "Batcher.count",
    "dist_batcher_create": "Strategy.batcher",
    "dist_batcher_destroy": "Batcher.close",
    "dist_batcher_submit": "Batcher.submit",
    "dist_budget_create": "Budget",
    "dist_budget_destroy": "Budget.close",
    "dist_cluster_explain": "ClusterResolver.explain",
    "dist_cluster_spec_create": "ClusterSpec",
    "dist_colocate_enter": "Strategy.colocate",
    "dist_colocate_exit": "Strategy.colocate",
    "dist_coordinator_create": "Coordinator",
    "dist_coordinator_destroy": "Coordinator.close",
    "dist_dataset_create_from_callback": "Strategy.dataset_from_callback",
    "dist_dataset_create_from_files": "Strategy.dataset_from_files",
    "dist_dataset_create_from_function": "Strategy.dataset_from_function",
    "dist_dataset_create_from_tensors": "Strategy.dataset_from_tensors",
    "dist_fail": "raise libdist.DistError",
    "dist_group_create": "Strategy.group",
    "dist_group_destroy": "Group.close",
    "dist_instance_state": "Replica.instance_state",
    "dist_instances_close": "Strategy.close_instances",
    "dist_instances_open": "Strategy.instances",
    "dist_iterator_create": "iter(dataset)",
    "dist_replica_enter": "Strategy.enter",
    "dist_replica_leave": "Strategy.enter",
    "dist_network_create": "Network",
    "dist_network_destroy": "Network.close",
    "dist_preemption_handler_create": "PreemptionHandler",
    "dist_preemption_handler_destroy": "PreemptionHandler.close",
    "dist_partitions_fixed_shards": "fixed_shards",
    "dist_partitions_max_size": "max_size_shards",
    "dist_partitions_min_size": "min_size_shards",
    "dist_partitions_part": "rows_of_part",
    "dist_partitions_part_of": "part_of_row",
    "dist_remote_value_cancel": "RemoteValue.cancel",
    "dist_remote_value_get": "RemoteValue.get",
    "dist_rpc_begin": "RpcClient.begin",
    "dist_rpc_call": "RpcClient.call",
    "dist_rpc_client_create": "RpcClient",
    "dist_rpc_client_methods": "RpcClient.methods",
    "dist_rpc_server_create": "RpcServer",
    "dist_rpc_server_destroy": "RpcServer.close",
    "dist_rpc_server_register": "RpcServer.register",
    "dist_rpc_server_start": "RpcServer.start",
    "dist_run_on_devices": "Replica.run_on_devices",
    "dist_scale_regularization_loss": "scale_regularization_loss",
    "dist_scope_enter": "Strategy.scope",
    "dist_scope_exit": "Strategy.scope",
    "dist_server_create": "Server",
    "dist_server_create_local": "Server.local",
    "dist_server_destroy": "Server.close",
    "dist_slurm_expand_host_list": "slurm_hosts",
    "dist_slurm_expand_tasks_per_node": "slurm_tasks_per_node",
    "dist_strategy_create": "Strategy",
    "dist_strategy_destroy": "Strategy.close",
    "dist_value_create_composite": "Value.composite",
    "dist_variable_create": "Strategy.variable",
    "dist_variable_destroy": "Variable.close",
    "dist_versions_await": "Versions.wait",
    "dist_versions_create": "Versions",
    "dist_versions_destroy": "Versions.close",
    "dist_versions_latest": "Versions.latest",
    "dist_versions_publish": "Versions.publish",
    "dist_work_destroy": "Work.close",
    "dist_work_take": "Item.results",
}
# The longest that a name begins with counts.
_CLASSES = {
    "dist_cluster_resolver_create_": "ClusterResolver.",
    "dist_cluster_resolver_": "ClusterResolver.",
    "dist_cluster_spec_": "ClusterSpec.",
    "dist_cluster_": "ClusterSpec.",
    "dist_preemption_": "PreemptionHandler.",
}
_OWNERS = (
    "strategy",
    "replica",
    "variable",
    "dataset",
    "iterator",
    "group",
    "work",
    "metric",
    "checkpoint",
    "topology",
    "server",
    "closure",
    "coordinator",
)

_FORMS = re.compile(
    r"\bDIST_(?P<enum>" + "|".join(sorted(ENUMS, key=len, reverse=True)) + r")_(?P<member>[A-Z]\w*|\.\.\.)"
    r"|\bDIST_(?P<assign>ASSIGN)\b"
    r"|\bDIST_(?P<limit>MAX_[A-Z_]+)"
    r"|\bDIST_(?P<dtype>" + "|".join(DType.__members__) + r"|\.\.\.)"
    r"|\bdist_\w+_options\.(?P<option>\w+)"
    r"|\boptions->(?P<given>\w+)"
    r"|(?P<time>\b(?:timeout|window|grace)_ns\b)"
    r"|(?<=\bexecutor: )(?P<workers>num_threads)\b"
    r"|\b(?P<null>NULL)\b"
    r"|\b(?P<end>destroy)(?= (?:it|them) first\b)"
    r"|\bdist_(?P<function>[a-z]\w*)(?=\(\))"
)


def _python(found: re.Match[str]) -> str:
    group = found.lastgroup
    text = found[group] if group else ""
    if found["enum"]:
        return f"{ENUMS[found['enum']]}.{found['member']}"
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
    return _function(text)


def _function(name: str) -> str:
    full = f"dist_{name}"
    if full in _FUNCTIONS:
        return _FUNCTIONS[full]
    for begin, owner in _CLASSES.items():
        if full.startswith(begin):
            return owner + full[len(begin) :]
    owner, _, rest = name.partition("_")
    if rest and owner in _OWNERS:
        return f"{owner.capitalize()}.{rest}"
    return f"Replica.{name}" if name in OF_REPLICAS else f"Strategy.{name}"


def in_python(text: str) -> str:
    """A text of libdist's for a program in Python."""
    return _FORMS.sub(_python, text)
