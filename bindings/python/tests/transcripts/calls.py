# SPDX-License-Identifier: Apache-2.0
"""How each call of a transcript is made by libdist's public API: CALLS[name](player, line's arguments) -> the answer.

An answer is a dict of fields, or one thing for the field `out`.
"""

import libdist
from libdist import CommunicationOptions, CrossDevice, InputContext, Strategy, Value
from libdist._arguments import nanoseconds

from clusters import CALLS as CLUSTERS
from given import Answers, NotInPython
from lines import array_of
from logical_devices import CALLS as LOGICAL_DEVICES


def strategy_create(g):
    options = g.options("kind", "num_replicas", "threads", "staging_bytes")
    options.update(g.timeout())
    if "options.devices" in g.fields:
        options["devices"] = g.texts("options.devices")
    if "options.use_spmd_partitioning" in g.fields:
        options["use_spmd_partitioning"] = bool(g.number("options.use_spmd_partitioning"))
    for name in "device_assignment", "cluster_resolver", "network":
        options[name] = g.object(f"options.{name}")
    strategy = Strategy(cross_device=g.object("options.cross_device"), **options)
    g.player.cross_devices.append(g.object("options.cross_device"))
    return strategy


def strategy_destroy(g):
    g.needed("strategy").close()
    return Answers()


def cross_device_create(g):
    accumulate = g.player.function("accumulate") if g.has("options.accumulate") else None
    return CrossDevice(
        g.number("options.kind"),
        reduce_to_device=g.text("options.reduce_to_device"),
        accumulate=accumulate,
    )


def run_values(g):
    if not g.has("fn"):
        raise NotInPython("a replica function that is None is a TypeError")
    options = {}
    if "options.enable_dynamic_batch_size" in g.fields:
        options["enable_dynamic_batch_size"] = g.number("options.enable_dynamic_batch_size") > 0
    if "options.bucketizing_dynamic_shape" in g.fields:
        options["bucketizing_dynamic_shape"] = bool(g.number("options.bucketizing_dynamic_shape"))
    fn = g.player.function("replica")
    return g.needed("strategy").run_values(fn, g.object("args"), g.object("kwargs"), **options)


def replica_enter(g):
    entered = g.needed("strategy").enter(g.number("replica_id"))
    entered.__enter__()
    g.player.scopes.append(entered)
    return libdist.get_replica()


def all_reduce(g):
    outs = g.needed("replica").all_reduce(g.number("op"), g.tensors("in"))
    return Answers(out=outs)


def merge_call(g):
    fn = g.player.function("merge")
    return g.needed("replica").merge_call(fn, g.object("args") or ())


def initial(g):
    return g.player.function("initial") if g.has("options.initial_fn") else g.tensor("initial")


def variable_options(g):
    options = g.options("aggregation", "synchronization")
    if "options.name" in g.fields:
        options["name"] = g.text("options.name")
    return options


def replica_assign(g):
    g.needed("replica").assign(g.object("variable"), g.tensor("value"), g.number("how"))
    return Answers()


def replica_assign_value(g):
    g.needed("replica").assign_value(g.object("variable"), g.object("value"), g.number("how"))
    return Answers()


def replica_scatter(g):
    g.needed("replica").scatter(g.object("variable"), g.number("how"), g.object("slices"))
    return Answers()


def variable_assign(g):
    g.needed("variable").assign(g.object("value"), g.number("how"))
    return Answers()


def reduce(g):
    axes = [int(axis) for axis in array_of(g.fields["axes"])] if g.has("axes") else None
    return g.needed("strategy").reduce(g.number("op"), g.object("value"), axes)


def batch(g, call):
    n = g.number("n")
    results = call(g.number("op"), list(zip(g.objects("values"), g.destinations(n))))
    return Answers({f"out{i}": result for i, result in enumerate(results)})


def update(g):
    if not g.has("variable"):
        raise NotInPython("a variable is an object, which nothing stands for")
    group = not g.number("options.ungrouped")
    parallel = bool(g.number("options.parallel"))
    fn = g.player.function("parallel update" if parallel else "update")
    return g.needed("strategy").update(
        g.object("variable"), fn, g.object("args"), g.object("kwargs"), group=group, parallel=parallel
    )


def replica_update(g):
    group = not g.number("options.ungrouped")
    fn = g.player.function("update")
    return g.needed("replica").update(g.object("variable"), fn, g.object("args"), g.object("kwargs"), group=group)


DATASET = (
    "drop_remainder global_batch_size shuffle prefetch seed shard_policy num_workers worker_index worker_batches "
    "as_one_process shard_hint interleave static_shapes replication_mode"
).split()


def dataset_options(g):
    options = g.options(*DATASET)
    if "options.batch_sizes" in g.fields:
        options["batch_sizes"] = [int(size) for size in array_of(g.fields["options.batch_sizes"])]
    return options


def from_tensors(g):
    if not g.has("tensors"):
        raise NotInPython("tensors that are None are no list")
    return g.needed("strategy").dataset_from_tensors(g.tensors("tensors"), **dataset_options(g))


def from_callback(g):
    return g.needed("strategy").dataset_from_callback(g.player.function("source"), **dataset_options(g))


def from_files(g):
    fn = g.player.function("file")
    return g.needed("strategy").dataset_from_files(g.texts("names"), fn, **dataset_options(g))


def from_function(g):
    return g.needed("strategy").dataset_from_function(g.player.function("dataset"), **dataset_options(g))


def iterator_create(g):
    dataset = g.needed("dataset")
    if not isinstance(dataset, libdist.Dataset):
        raise NotInPython("a value has no passes")
    return iter(dataset)


def iterator_next(g):
    return next(g.needed("iterator"), None)


def communication(g, prefix):
    timeout = g.number(prefix + "timeout_ns") * 1e-9
    return CommunicationOptions(bytes_per_pack=g.number(prefix + "bytes_per_pack"), timeout=timeout or None)


def merge_options(g):
    over = communication(g, "over.") if any(key.startswith("over.") for key in g.fields) else None
    merged = communication(g, "base.").merge(over)
    return Answers({"out.bytes_per_pack": merged.bytes_per_pack, "out.timeout_ns": nanoseconds(merged.timeout)})


def query(g):
    properties = vars(g.needed("strategy").query())
    return Answers({f"out.{name}": int(number) for name, number in properties.items()})


def context_size(g):
    context = InputContext(**g.options(*InputContext.__slots__, prefix="context."))
    return context.per_replica_batch_size(g.number("global_batch_size"))


def scope_enter(g):
    scope = g.needed("strategy").scope()
    scope.__enter__()
    g.player.scopes.append(scope)
    return Answers()


def scope_exit(g):
    g.player.scopes.pop().__exit__(None, None, None)
    return Answers()


def colocate_enter(g):
    place = g.needed("strategy").colocate(g.object("variable"))
    place.__enter__()
    g.player.scopes.append(place)
    return Answers()


def set_strategy(g):
    libdist.set_strategy(g.object("strategy"))
    return Answers()


def close(key):
    def call(g):
        g.needed(key).close()
        return Answers()

    return call


def value_item(g):
    value, index = g.object("value"), g.number("index")
    if isinstance(value, Value):
        return value.item(index) if index < len(value) else None
    if isinstance(value, dict):
        return value[sorted(value)[index]]
    return value[index] if isinstance(value, (list, tuple)) and index < len(value) else None


def value_get(g):
    value = g.object("value")
    return value.get(g.text("key"))


def value_tensor(g):
    return Answers(tensor=libdist.get_strategy().value(g.object("value")).numpy())


def made(make):
    """A value made of items, by its strategy."""
    return lambda g: make(g.needed("strategy"), g)


# By the domains of C: DIST_ENUM_....
NAMES = {
    0x1903: (libdist.reduce_op_name, None),
    0x1904: (
        lambda op: libdist.reduce_op_name(op) if op in (libdist.ReduceOp.SUM, libdist.ReduceOp.MEAN) else None,
        libdist.reduce_op_from_name,
    ),
    0x1906: (libdist.synchronization_name, libdist.synchronization_from_name),
    0x1907: (libdist.aggregation_name, libdist.aggregation_from_name),
    0x1908: (libdist.cross_device_name, libdist.cross_device_from_name),
    0x1909: (libdist.input_mode_name, libdist.input_mode_from_name),
    0x190A: (libdist.shard_policy_name, libdist.shard_policy_from_name),
}

CALLS = {
    "enum_name": lambda g: NAMES[g.number("domain")][0](g.number("value")),
    "enum_from_name": lambda g: NAMES[g.number("domain")][1](g.text("name")),
    "reduce_op_from_aggregation": lambda g: libdist.reduce_op_from_aggregation(g.number("aggregation")),
    "communication_options_merge": merge_options,
    "cross_device_create": cross_device_create,
    "cross_device_destroy": close("cross_device"),
    "cross_device_kind_of": lambda g: g.needed("cross_device").kind,
    "cross_device_device": lambda g: g.needed("cross_device").device,
    "network_create": lambda g: libdist.Network(g.number("num_workers"), credit_bytes=g.number("options.credit_bytes")),
    "network_destroy": close("network"),
    "strategy_create": strategy_create,
    "strategy_destroy": strategy_destroy,
    "strategy_num_replicas": lambda g: g.needed("strategy").num_replicas,
    "strategy_kind_of": lambda g: g.needed("strategy").kind,
    "strategy_device": lambda g: g.needed("strategy").device(g.number("replica_id")),
    "strategy_parameter_device": lambda g: g.needed("strategy").parameter_device(g.number("index")),
    "strategy_query": query,
    "run_values": run_values,
    "replica_enter": replica_enter,
    "replica_id": lambda g: g.object("replica").id if g.has("replica") else -1,
    "replica_num_replicas": lambda g: g.object("replica").num_replicas if g.has("replica") else 0,
    "replica_strategy": lambda g: g.needed("replica").strategy,
    "all_reduce": all_reduce,
    "all_reduce_value": lambda g: g.needed("replica").all_reduce_value(g.number("op"), g.object("value"), **g.timeout()),
    "all_gather_value": lambda g: g.needed("replica").all_gather_value(g.object("value"), **g.options("axis")),
    "merge_call": merge_call,
    "value_create_tensor": made(lambda s, g: s.tensor(g.tensor("tensor"))),
    "value_create_per_replica": made(lambda s, g: s.per_replica(g.objects("items"))),
    "value_create_mirrored": made(lambda s, g: s.mirrored(g.objects("items"))),
    "value_create_list": lambda g: g.objects("items"),
    "value_create_tuple": lambda g: tuple(g.objects("items")),
    "value_create_dict": lambda g: dict(zip(g.texts("keys"), g.objects("items"))),
    "value_create_none": made(lambda s, g: s.value(None)),
    "value_create_text": made(lambda s, g: s.value(g.text("text"))),
    "value_create_composite": made(lambda s, g: s.composite(g.number("kind"), g.objects("parts"))),
    "value_create_variable": lambda g: libdist.get_strategy().value(g.object("variable")),
    "values_from_function": lambda g: g.needed("strategy").values_from_function(g.player.function("value")),
    "value_item": value_item,
    "value_get": value_get,
    "value_tensor": value_tensor,
    "variable_create": lambda g: g.needed("strategy").variable(initial(g), **variable_options(g)),
    "variable_destroy": close("variable"),
    "replica_variable": lambda g: g.needed("replica").variable(g.text("name"), initial(g), **variable_options(g)),
    "variable_name": lambda g: g.needed("variable").name,
    "variable_class": lambda g: g.needed("variable").class_name,
    "variable_synchronization": lambda g: g.needed("variable").synchronization,
    "variable_aggregation": lambda g: g.needed("variable").aggregation,
    "variable_num_copies": lambda g: g.needed("variable").num_copies,
    "variable_copy_name": lambda g: g.needed("variable").copy_name(g.number("copy")),
    "variable_device": lambda g: g.needed("variable").device(g.number("copy")),
    "variable_created_in_scope": lambda g: g.needed("strategy").variable_created_in_scope(g.object("variable")),
    "colocate_enter": colocate_enter,
    "colocate_exit": scope_exit,
    "variable_component": lambda g: g.needed("variable").component(g.number("replica_id")),
    "variable_read": lambda g: g.needed("variable").read(),
    "variable_assign": variable_assign,
    "replica_read": lambda g: g.needed("replica").read(g.object("variable")),
    "replica_assign": replica_assign,
    "replica_assign_value": replica_assign_value,
    "replica_scatter": replica_scatter,
    "reduce": reduce,
    "reduce_to": lambda g: g.needed("strategy").reduce_to(g.number("op"), g.object("value"), g.destination()),
    "batch_reduce_to": lambda g: batch(g, g.needed("strategy").batch_reduce_to),
    "broadcast_to": lambda g: g.needed("strategy").broadcast_to(g.object("value"), g.destination()),
    "gather": lambda g: g.needed("strategy").gather(g.object("value"), g.number("axis")),
    "destination_device": lambda g: g.needed("strategy").destination_device(g.destination()),
    "cross_device_reduce": lambda g: g.needed("cross_device").reduce(
        g.number("op"), g.object("value"), g.destination()
    ),
    "cross_device_batch_reduce": lambda g: batch(g, g.needed("cross_device").batch_reduce),
    "cross_device_broadcast": lambda g: g.needed("cross_device").broadcast(g.object("value"), g.destination()),
    "update": update,
    "replica_update": replica_update,
    "value_container": lambda g: libdist.get_strategy().value_container(g.object("value")),
    "strategy_local_results": lambda g: g.needed("strategy").local_results(g.object("value")),
    "dataset_create_from_tensors": from_tensors,
    "dataset_create_from_callback": from_callback,
    "dataset_create_from_files": from_files,
    "dataset_create_from_function": from_function,
    "dataset_element_spec": lambda g: g.needed("dataset").element_spec,
    "dataset_destroy": close("dataset"),
    "input_context_per_replica_batch_size": context_size,
    "batch_sizes_for_worker": lambda g: Answers(
        out=libdist.batch_sizes_for_worker(
            g.number("global_batch_size"),
            g.number("num_workers"),
            g.number("num_replicas_per_worker"),
            g.number("worker"),
        )
    ),
    "iterator_create": iterator_create,
    "iterator_next": iterator_next,
    "iterator_next_optional": lambda g: g.needed("iterator").next_optional(),
    "iterator_destroy": close("iterator"),
    "average_loss": lambda g: libdist.average_loss(
        g.object("replica"), g.tensor("per_example_loss"), g.tensor("sample_weight"), g.number("global_batch_size")
    ),
    "scale_regularization_loss": lambda g: libdist.scale_regularization_loss(g.object("replica"), g.tensor("loss")),
    "scope_enter": scope_enter,
    "scope_exit": scope_exit,
    "set_strategy": set_strategy,
    "get_strategy": lambda g: libdist.get_strategy(),
    "has_strategy": lambda g: libdist.has_strategy(),
    "in_cross_replica_context": lambda g: libdist.in_cross_replica_context(),
    "get_replica": lambda g: libdist.get_replica(),
    **LOGICAL_DEVICES,
    **CLUSTERS,
}
