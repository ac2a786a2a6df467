#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the calls of test_hostile.c: every function in the headers, with one invalid argument at a time.

    hostile.py OUTPUT API_JSON

Each function is called with valid arguments (VALID, created by the fixture in hostile_support.h). Then each number is
replaced by unreasonable ones, each pointer by NULL, and each field of its options and tensors likewise. A reserved
field that is not 0 must be rejected by name. Counts are too large for any array to fit in memory, so a function that
rejects them cannot have read the array. The test fails if it knows no valid argument for a parameter, or if no function
takes a reserved field, so that additions cannot be forgotten.
"""
import json
import pathlib
import re
import sys

INT32 = ["INT32_MIN", "INT32_MAX", "-1"]
INT64 = ["INT64_MIN", "INT64_MAX", "-1", "((int64_t)1 << 62) + 1"]
ABSURD = ["SIZE_MAX", "SIZE_MAX / 2 + 1", "((size_t)1 << 62) + 1"]
HOSTILE = {
    "int32_t": INT32, "dist_status": INT32, "int64_t": INT64,
    "size_t": ABSURD, "uint32_t": ["0", "3", "UINT32_MAX"], "double": ["NAN", "INFINITY", "-INFINITY"],
}
# A valid constant for each enum type: the first one, except for these.
ENUMS = {
    "dist_aggregation": "DIST_AGGREGATION_SUM", "dist_dtype": "DIST_F32", "dist_device_order": "DIST_DEVICE_ORDER_MESH",
    "dist_enum_domain": "DIST_ENUM_INPUT_MODE", "dist_value_kind": "DIST_VALUE_INDEXED_SLICES",
}

# Valid arguments by function and parameter, by parameter, and by type.
VALID_HERE = {
    ("dist_batch_sizes_for_worker", "out_sizes"): "f->numbers",
    ("dist_link_register", "functions"): "&link_module",
    ("dist_cross_device_batch_reduce", "destinations"): "&f->destination",
    ("dist_dataset_reduce", "initial"): "f->value",
    ("dist_colocate_enter", "strategy"): "scoped(f)",
    ("dist_colocate_exit", "strategy"): "colocated(f)",
    ("dist_device_axis", "name"): '"x"',
    ("dist_device_axis_group", "name"): '"x"',
    ("dist_fail", "status"): "DIST_NOT_FOUND",
    ("dist_has_feature", "name"): '"pinning"',
    ("dist_canonical_device", "name"): '"CPU:0"',
    ("dist_enum_from_name", "name"): '"PER_WORKER"',
    ("dist_group_destroy", "group"): "own_group(f)",
    ("dist_replica_enter", "strategy"): "f->host",
    ("dist_replica_attach", "replica"): "detached(f)",
    ("dist_replica_leave", "replica"): "entered(f)",
    ("dist_scope_exit", "strategy"): "scoped(f)",
    ("dist_strategy_destroy", "strategy"): "f->host",
    ("dist_strategy_shutdown", "strategy"): "f->host",
    ("dist_replica_assign", "value"): "&f->tensors[0]",
    ("dist_topology_cpu_at", "topology"): "f->host_topology",
    ("dist_cluster_spec_from_json", "text"): '"{}"',
    ("dist_slurm_expand_tasks_per_node", "tasks_per_node"): '"2(x3),1"',
    ("dist_cluster_resolver_create_union", "resolvers"): "f->resolvers",
    ("dist_value_create_composite", "kind"): "DIST_VALUE_RAGGED",
    ("dist_value_create_composite", "n"): "2",
    ("dist_value_key", "value"): "f->dict",
    ("dist_value_get", "value"): "f->dict",
    ("dist_value_partition", "value"): "sharded(f)",
    ("dist_value_shard", "value"): "sharded(f)",
    ("dist_variable_scatter", "how"): "DIST_SCATTER_ADD",
    ("dist_budget_create", "threads"): "1",
    ("dist_versions_publish", "content"): "f",
    ("dist_versions_publish", "release"): "no_version_release",
    ("dist_versions_await", "number"): "1",
    ("dist_replica_scatter", "how"): "DIST_SCATTER_ADD",
    ("dist_strategy_write_metrics", "name"): '"name"',
    ("dist_average_loss", "sample_weight"): "&f->tensors[0]",
    ("dist_average_loss", "out"): "&f->scalar",
    ("dist_scale_regularization_loss", "loss"): "&f->scalar",
    ("dist_scale_regularization_loss", "out"): "&f->scalar_out",
    ("dist_metric_update", "labels"): "NULL",
    ("dist_reduce_apply", "gradients"): "&f->tensors[0]",
    ("dist_reduce_apply", "parameters"): "&f->tensors[1]",
    ("dist_rpc_server_register", "method"): '"method"',
    ("dist_rpc_server_destroy", "server"): "rpc_server(f, 0)",
    ("dist_rpc_server_start", "server"): "rpc_server(f, 0)",
    ("dist_rpc_client_destroy", "client"): "rpc_client(f)",
    ("dist_remote_value_get", "timeout_ns"): "-1",
    ("dist_server_create", "cluster"): "f->cluster_spec",
    ("dist_server_join", "server"): "ended_server(f)",
    ("dist_closure_read", "names"): "&variable_name",
    ("dist_closure_update", "names"): "&variable_name",
    ("dist_closure_scatter", "how"): "DIST_SCATTER_ADD",
    ("dist_coordinator_create", "strategy"): "ps_strategy(f)",
    ("dist_coordinator_create_per_worker", "name"): '"fresh"',
    ("dist_coordinator_create_variable", "name"): '"fresh"',
    ("dist_coordinator_destroy", "coordinator"): "last_coordinator(f)",
    ("dist_coordinator_read", "names"): "&variable_name",
    ("dist_coordinator_restore", "coordinator"): "used_coordinator(f)",
    ("dist_coordinator_save", "path"): "other_path(f)",
    ("dist_coordinator_scatter", "how"): "DIST_SCATTER_ADD",
    ("dist_coordinator_update", "names"): "&variable_name",
    ("dist_remote_value_retain", "remote"): "remote_value(f)",
    ("dist_instances_open", "strategy"): "unserved(f)",
    ("dist_instances_close", "strategy"): "served(f)",
    ("dist_serve", "strategy"): "served(f)",
    ("dist_submit", "strategy"): "served(f)",
    ("dist_batcher_create", "strategy"): "served(f)",
    ("dist_request_take", "request"): "item_request(f)",
    ("dist_remote_value_release", "remote"): "remote_value(f)",
}
VALID_BY_NAME = {
    "n": "1", "num_axes": "1", "ndim": "4", "capacity": "1", "row_bytes": "sizeof(dist_straggler)", "size_bytes": "256",
    "index": "0", "tensor:size_t": "0", "root": "0",
    "num_replicas": "1", "num_logical_devices": "1", "num_tasks": "1", "num_devices_per_task": "1", "num_workers": "1",
    "num_replicas_per_worker": "1", "worker": "0", "global_batch_size": "4", "begin": "0", "end": "4", "grain": "1",
    "source": "0", "destination:int32_t": "0", "timeout_ns": "0", "axis": "0", "status": "DIST_OK",
    "copy:int32_t": "0", "replica_id": "0", "replica:int32_t": "0", "logical_device": "0", "task": "0", "limit": "0",
    "value:int32_t": "0",
    "job": '"job"', "key": '"key"', "message": '"words"', "name": '"variable"', "text": '"text"', "path": "f->path",
    "object": "f", "reason": '"reason"', "user_data": "f", "release": "no_release", "managed": "imported()",
    "keys": "f->texts", "names": "f->texts", "items": "f->items", "parts": "f->parts", "values:dist_value *const *": "f->items",
    "variables": "f->variables", "works": "&f->work", "requests": "requests_of(f)", "args": "f->list", "kwargs": "f->dict", "slices": "f->slices",
    "labels": "&f->tensors[0]", "axes": "f->zero_axes", "computation_shape": "f->ones", "computation_stride": "f->ones",
    "coordinates": "f->zeros", "core_assignment": "f->zeros", "device_coordinates": "f->zeros", "mesh_shape": "f->ones",
    "jobs": "f->jobs", "num_jobs": "1", "specs": "f->specs", "num_specs": "1", "resolvers": "f->resolvers",
    "num_resolvers": "1", "i": "0", "state": "f", "result": "f", "task_type": '"worker"', "task_id": "0", "rpc_layer": '"grpc"', "function": '"function"', "indices": "row_indices(f)", "address": '"127.0.0.1:1"', "method": '"echo"', "host_list": '"n[1-2]"',
    "job:const char *": '"worker"', "num_shards": "2", "element_bytes": "4", "min_shard_bytes": "4", "max_shard_bytes": "4",
    "max_shards": "2", "num_rows": "4", "num_parts": "2", "part": "0", "row": "0", "shape": "f->numbers",
    "replica_ids": "f->zeros", "partition_dimensions": "f->numbers", "variable:const dist_value *": "f->variable_value",
    "destinations": "&f->destination", "destination:const dist_destination *": "&f->destination",
}
VALID_BY_TYPE = {
    "dist_strategy *": "f->strategy", "const dist_strategy *": "f->strategy", "dist_replica *": "f->replica",
    "const dist_replica *": "f->replica", "dist_group *": "f->group", "const dist_group *": "f->group",
    "dist_work *": "f->work", "dist_request *": "some_request(f)", "const dist_request *": "some_request(f)", "dist_value *": "f->value", "const dist_value *": "f->value",
    "dist_variable *": "f->variable", "const dist_variable *": "f->variable", "dist_dataset *": "f->dataset",
    "dist_iterator *": "f->iterator", "dist_cross_device *": "f->cross_device",
    "const dist_cross_device *": "f->cross_device", "dist_metric *": "f->metric", "const dist_metric *": "f->metric",
    "const dist_checkpoint *": "f->checkpoint", "dist_checkpoint *": "f->checkpoint", "dist_topology *": "f->topology",
    "const dist_topology *": "f->topology", "dist_device_assignment *": "f->assignment",
    "const dist_device_assignment *": "f->assignment", "dist_cluster_spec *": "f->cluster_spec",
    "const dist_cluster_spec *": "f->cluster_spec", "dist_cluster_resolver *": "f->resolver",
    "const dist_cluster_resolver *": "f->resolver", "dist_network *": "f->network",
    "dist_preemption_handler *": "f->preemption", "const dist_preemption_handler *": "f->preemption",
    "dist_replica_fn": "replica_fn", "dist_values_fn": "values_fn", "dist_range_fn": "range_fn",
    "dist_merge_fn": "merge_fn", "dist_value_fn": "value_fn", "dist_update_fn": "update_fn",
    "dist_source_fn": "source_fn", "dist_file_source_fn": "file_source_fn",
    "dist_dataset_fn": "dataset_fn", "dist_dataset_reduce_fn": "dataset_reduce_fn", "dist_text_fn": "text_fn",
    "dist_rpc_server *": "rpc_server(f, 0)", "const dist_rpc_server *": "rpc_server(f, 0)", "dist_rpc_client *": "rpc_client(f)",
    "dist_remote_value *": "remote_value(f)", "dist_rpc_fn": "rpc_fn",
    "dist_server *": "new_server(f)", "const dist_server *": "new_server(f)", "dist_closure_fn": "closure_fn",
    "dist_server_update_fn": "server_update_fn", "dist_closure *": "held_closure(f)", "const dist_closure *": "held_closure(f)",
    "dist_coordinator *": "own_coordinator(f)", "const dist_coordinator *": "own_coordinator(f)",
    "dist_batch_fn": "batch_fn", "dist_completions *": "filled_completions(f)", "dist_batcher *": "own_batcher(f)",
    "dist_batch *": "held_batch(f)", "const dist_batch *": "held_batch(f)",
    "dist_straggler *": "f->stragglers", "dist_cancel *": "f->cancel", "const dist_cancel *": "f->cancel",
    "dist_budget *": "f->budget", "dist_versions *": "f->versions", "const dist_versions *": "f->versions",
}
# Structs that are passed by pointer. They are set by their INIT macro, and then by fill_NAME().
FILLED = {"dist_apply_options", "dist_partition", "dist_halo", "dist_input_context", "dist_position",
          "dist_slurm_options", "dist_kubernetes_options", "dist_rendezvous_options", "dist_cluster_resolver_functions"}
# Fields that are counts, and what else to set so that there is an array to read.
COUNTS = {
    ("dist_dataset_options", "num_batch_sizes"): "batch_sizes = f->numbers",
    ("dist_checkpoint_options", "num_metadata"): "metadata_keys = {v}.metadata_texts = f->texts",
    ("dist_devices_options", "num_results"): "results = f->partitions",
    ("dist_strategy_options", "num_devices"): "devices = f->device_names",
    ("dist_mesh_options", "num_axes"): "axes = f->axes",
    ("dist_slurm_options", "num_jobs"): "jobs = f->jobs",
    ("dist_preemption_options", "num_variables"): "variables = f->variables",
    ("dist_ps_variable_options", "num_partitions"): "partitions = f->numbers",
}
# Pointers that may be NULL, and handles for which NULL is a value. The call may succeed or fail.
NULL_IS_FINE = {
    "user_data", "options", "release", "kwargs", "args", "job", "labels", "weights", "sample_weight", "destination",
    "destinations", "over", "arguments", "task_type", "rpc_layer", "slurm", "kubernetes", "rendezvous", "out_result", "out_work", "out_norm", "allocator", "reason", "computation_stride", "computation_shape", "device_coordinates",
}
NULL_IS_FINE_HERE = {
    ("dist_fail", "message"), ("dist_link_register", "out_transport"), ("dist_set_strategy", "strategy"), ("dist_strategy_write_metrics", "name"),
    ("dist_metric_create", "name"), ("dist_device_axis", "out_size"), ("dist_value_shard", "out_begin"),
    ("dist_partition_shard", "out_tile"), ("dist_partition_shard", "out_elements"), ("dist_strategy_destroy", "strategy"),
    ("dist_group_destroy", "group"), ("dist_average_loss", "replica"), ("dist_dataset_reduce", "initial"),
    ("dist_versions_publish", "out_number"), ("dist_replica_version", "out_number"),
    ("dist_variable_check_drift", "out_drift"), ("dist_strategy_shutdown", "strategy"),
    ("dist_preemption_save_if_preempted", "cancel"), ("dist_rpc_server_destroy", "server"),
    ("dist_server_create", "cluster"), ("dist_server_destroy", "server"), ("dist_server_join", "cancel"),
    ("dist_coordinator_join", "cancel"), ("dist_coordinator_schedule", "out_remote"), ("dist_submit", "out_request"),
    ("dist_batcher_submit", "out_request"), ("dist_batcher_destroy", "batcher"),
}
# The messages of functions that fail with valid arguments, because a single process cannot make them succeed.
REFUSED_ALONE = {"dist_strategy_reform": "the strategy has only one worker",
                 "dist_coordinator_restore": "before the first closure",
                 "dist_serve": "its own threads"}
# Calls that are left out because they would be executed and never end.
ENDLESS = {("dist_replica_parallel_for", "end", "INT64_MAX"), ("dist_replica_parallel_for", "end", "((int64_t)1 << 62) + 1")}
# Numbers of bytes, because no memory holds half of the address space.
BYTES = {("dist_topology_from_serialized", "size_bytes")}
# Structs that libdist writes.
WRITTEN = {"dist_error_info", "dist_strategy_properties", "dist_straggler", "dist_coordinator_stats",
           "dist_link_callbacks", "dist_link_module_options"}
# Structs that libdist keeps. test_links.c tests invalid ones.
KEPT = {"dist_link_functions"}
# Fields of enum types that a function reads only in some cases.
ENUMS_NOT_READ = set()
# Functions that succeed if an optional part of libdist is built.
OPTIONAL = {"grpc": ("dist_rpc_", "dist_remote_value_", "dist_server_", "dist_closure_", "dist_coordinator_")}
UNKNOWN = []  # what must be added to the tables above
RESERVED = set()  # (struct, field) pairs that no call has set yet
OUT_STRUCTS_BY_SIZE = {"dist_error_info", "dist_strategy_properties", "dist_drift", "dist_position", "dist_partition",
                       "dist_communication_options", "dist_coordinator_stats"}


class Call:
    """A function with its valid arguments, and the changes to make in turn."""

    def __init__(self, function, structs, macros):
        self.function, self.structs, self.macros = function, structs, macros
        self.name = function["name"]
        refused = REFUSED_ALONE.get(self.name, False)
        self.declared, self.variants, self.arguments = [], [("valid arguments", "", refused)], []
        for parameter in function["parameters"]:
            self.add(parameter)

    def place(self):
        types = {(one["type"], one["name"]) for one in self.function["parameters"] if not one["name"].startswith("out_")}
        if self.name == "dist_replica_leave":
            return "OUTSIDE"
        if ("dist_replica", "device") in types:
            return "IN_DEVICE"
        return "IN_REPLICA" if {kind for kind, _ in types} & {"dist_replica", "dist_work"} else "OUTSIDE"

    def fails_on_null(self, name):
        fallible = self.function["returns"]["text"] == "dist_status"
        return fallible and name not in NULL_IS_FINE and (self.name, name) not in NULL_IS_FINE_HERE

    def add(self, parameter):
        name, text = parameter["name"], parameter["text"]
        value = self.valid(parameter)
        self.declared.append(f"{text} {name} = {value};".replace("* ", "*"))
        self.arguments.append(name)
        if parameter["pointers"] or text.endswith("_fn"):
            self.variants.append((f"{name} = NULL", f"{name} = NULL;", self.fails_on_null(name)))
        self.variants += [(f"{name} = {number}", f"{name} = {number};", True) for number in self.not_of(text)]
        if text in ENUMS:
            self.variants.append((f"{name} = 0", f"{name} = ({text})0;", True))
        for number in HOSTILE.get(text, []):
            if (self.name, name, number) in ENDLESS or ((self.name, name) in BYTES and "<<" in number):
                continue
            self.variants.append((f"{name} = {number}", f"{name} = {number};", False))

    @staticmethod
    def not_of(kind):
        """Returns invalid values of an enum type, including a constant of another one, as if arguments were swapped."""
        if kind not in ENUMS:
            return []
        other = "DIST_EDGE_WRAP" if kind == "dist_metric_kind" else "DIST_METRIC_MEAN"
        return [f"({kind}){number}" for number in ("INT32_MIN", "-1", other)]

    def valid(self, parameter):
        name, text = parameter["name"], parameter["text"]
        here = VALID_HERE.get((self.name, name))
        if here is not None:
            return here
        if name.startswith("out_") or (name == "out" and parameter["type"] == "dist_straggler"):
            return self.room(parameter)
        if parameter["type"] in self.structs and parameter["pointers"] == 1 and name not in VALID_BY_NAME:
            if f"{name}:{text}" not in VALID_BY_NAME and parameter["type"] != "dist_destination":
                return self.struct(parameter)
        for known in (VALID_BY_NAME.get(f"{name}:{text}"), VALID_BY_NAME.get(name), VALID_BY_TYPE.get(text), ENUMS.get(text)):
            if known is not None:
                return known
        if parameter["type"] == "uint32_t":
            return "sizeof *options" if self.function["parameters"][0]["name"] == "options" else (
                f"sizeof *{self.function['parameters'][0]['name']}")
        UNKNOWN.append(f"{self.name}()'s {text} {name}")
        return "0"

    def room(self, parameter):
        """Adds an output parameter."""
        pointee = re.sub(r" ?\*$", "", parameter["text"])
        room = parameter["name"] + "_room"
        count = 256 if pointee == "char" else 32
        if parameter["type"] in OUT_STRUCTS_BY_SIZE:
            self.declared.append(f"{pointee} {room} = {self.init(parameter['type'])};")
            for number in HOSTILE["uint32_t"]:
                change = f"{room}.struct_size = {number}"
                self.variants.append((change.replace("_room.", "->"), change + ";", False))
            return "&" + room
        self.declared.append(f"{pointee} {room}[{count}];".replace("* ", "*"))
        self.declared.append(f"memset({room}, 0, sizeof {room});")
        return room

    def init(self, struct):
        macro = struct.upper() + "_INIT"
        return macro if macro in self.macros else "{0}"

    def struct(self, parameter):
        """Adds a struct that libdist reads: first valid, and then with each field changed."""
        kind, value = parameter["type"], parameter["name"] + "_value"
        if kind == "dist_tensor":
            return self.tensor(parameter)
        self.declared.append(f"{kind} {value} = {self.init(kind)};")
        if kind in FILLED:
            self.declared.append(f"fill_{kind}(f, &{value});")
        if not self.name.endswith("_init"):
            for field in self.structs[kind]["fields"]:
                self.fields(kind, parameter["name"], value, field)
        return "&" + value

    def fields(self, kind, name, value, field, more=""):
        """Changes one field. `more` sets the fields that refer to this struct."""
        if field["name"].startswith("reserved"):
            change = f"{value}.{field['name']} = 1;{more}"
            self.variants.append((f"{name}->{field['name']} = 1", change, f"{kind}.{field['name']} is 1"))
            RESERVED.discard((kind, field["name"]))
            return
        if field["pointers"] == 1 and field["type"] in self.structs:
            self.nested(field, name, value, more)
        if field["pointers"] or "function" in field:
            change = f"{value}.{field['name']} = NULL;{more}"
            self.variants.append((f"{name}->{field['name']} = NULL", change, False))
            return
        changes = [(f"{name}->{field['name']} = {number}", f"{value}.{field['name']} = {number};{more}")
                   for number in self.not_of(field["text"])]
        refused = (kind, field["name"]) not in ENUMS_NOT_READ
        self.variants += [(what, change, refused) for what, change in changes]
        for number in HOSTILE.get(field["text"], []):
            change = f"{value}.{field['name']} = {number};{more}"
            if (kind, field["name"]) in COUNTS:
                change += f" {value}.{COUNTS[kind, field['name']].format(v=value)};"
            self.variants.append((f"{name}->{field['name']} = {number}", change, False))

    def nested(self, field, name, value, more):
        """Adds an options struct to which another one refers."""
        kind, inner = field["type"], f"{value}_{field['name']}"
        if kind == "dist_tensor" or self.init(kind) == "{0}":
            return
        self.declared.append(f"{kind} {inner} = {self.init(kind)};")
        for one in self.structs[kind]["fields"]:
            self.fields(kind, f"{name}->{field['name']}", inner, one, f" {value}.{field['name']} = &{inner};{more}")

    def tensor(self, parameter):
        name = parameter["name"]
        value = name + "_value"
        written = name in ("out", "parameters", "gradients")
        self.declared.append(f"int64_t {name}_shape[2] = {{4, 1}}, {name}_strides[2] = {{1, 1}};")
        self.declared.append(
            f"dist_tensor {value} = {{f->data[{1 if written else 0}], DIST_F32, 1, {name}_shape, NULL}};")
        strided = f"{value}.strides = {name}_strides; "
        changes = [(f"{name}->dtype = {number}", f"{value}.dtype = {number};") for number in self.not_of("dist_dtype")]
        changes += [(f"{name}->ndim = {number}", f"{value}.ndim = {number};") for number in INT32]
        changes += [(f"{name}->{field} = NULL", f"{value}.{field} = NULL;") for field in ("data", "shape")]
        changes += [(f"{name}->shape[0] = {number}", f"{name}_shape[0] = {number};") for number in INT64]
        changes += [(f"{name}->strides[0] = {number}", f"{strided}{name}_strides[0] = {number};")
                    for number in INT64 if number != "-1"]
        self.variants += [(what, change, True) for what, change in changes]
        if written:
            change = f"{strided}{name}_strides[0] = 0;"
            self.variants.append((f"{name}->strides[0] = 0", change, True))
        return "&" + value

    def write(self):
        fallible = self.function["returns"]["text"] == "dist_status"
        yield f"static void call_{self.name}(struct fixture *f) {{"
        yield from ("  " + line for line in self.declared)
        yield "  switch (f->variant) {"
        for number, (_, change, _) in enumerate(self.variants):
            if change:
                yield f"    case {number}: {change} break;"
        yield "    default: break;\n  }"
        call = f"{self.name}({', '.join(self.arguments)})"
        yield f"  f->status = {call};" if fallible else f"  (void){call};"
        yield "  (void)f;\n}"
        yield f"static const struct variant variants_of_{self.name}[] = {{"
        for what, _, fails in self.variants:
            words = fails if isinstance(fails, str) else ""
            yield f"    {{\"{what}\", {1 if fails and fallible else 0}, \"{words}\"}},"
        yield "};"

    def row(self):
        fallible = 1 if self.function["returns"]["text"] == "dist_status" else 0
        return (f"    {{\"{self.name}\", call_{self.name}, variants_of_{self.name}, "
                f"COUNT_OF(variants_of_{self.name}), {self.place()}, {fallible}}},")


def main(output, declared, *parts):
    """Writes the calls. `parts` lists the optional parts of libdist that are built."""
    found = json.loads(pathlib.Path(declared).read_text(encoding="utf-8"))
    left_out = tuple(prefix for part, prefixes in OPTIONAL.items() if part not in parts for prefix in prefixes)
    found["functions"] = [one for one in found["functions"] if not one["name"].startswith(left_out)]
    for enum in found["enums"]:
        if enum["name"]:
            ENUMS.setdefault(enum["name"], enum["constants"][0]["name"])
    structs = {one["name"]: one for one in found["structs"]}
    macros = {one["name"] for one in found["macros"]}
    RESERVED.update((one["name"], field["name"]) for one in found["structs"] for field in one["fields"]
                    if field["name"].startswith("reserved") and one["name"] not in WRITTEN | KEPT)
    calls = [Call(one, structs, macros) for one in found["functions"]]
    UNKNOWN.extend(f"{struct}.{field}, which no function takes" for struct, field in sorted(RESERVED)
                   if not struct.startswith(left_out))
    calls = [call for call in calls if not any(one.startswith(call.name + "()") for one in UNKNOWN)]
    lines = ["/* Written by hostile.py. */"]
    for call in calls:
        lines += call.write()
    lines += ["static const struct function functions[] = {", *(call.row() for call in calls), "};"]
    lines += ["static const char *const unknown[] = {", *(f'    "{one}",' for one in UNKNOWN), "    NULL};", ""]
    pathlib.Path(output).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
