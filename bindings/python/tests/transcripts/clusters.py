# SPDX-License-Identifier: Apache-2.0
"""As calls.py, of clusters, resolvers and partitioners."""

import os

import libdist
from libdist import ClusterResolver, ClusterResolverOptions, ClusterSpec, SlurmOptions

from given import Answers
from lines import array_of, text_of
from logical_devices import kept, numbers

UNSET = -(2**31)


def setenv(g):
    if "value" in g.fields:
        os.environ[g.text("name")] = g.text("value")
    else:
        os.environ.pop(g.text("name"), None)
    return Answers()


def number(g, key):
    """A number that may not be given."""
    return None if g.number(key, UNSET) == UNSET else g.number(key)


def spec(g):
    return g.needed("spec")


def resolver(g):
    return g.needed("resolver")


def jobs(g):
    """The jobs as Python has them: of two of one name or one index the later one counts."""
    found, index = {}, 0
    while f"jobs{index}.name" in g.fields:
        prefix, index = f"jobs{index}.", index + 1
        addresses = g.texts(prefix + "addresses") if g.has(prefix + "addresses") else []
        if g.has(prefix + "task_indices"):
            addresses = dict(zip(map(int, array_of(g.fields[prefix + "task_indices"])), addresses))
        found[g.text(prefix + "name")] = addresses
    return found


def is_equal(g):
    return g.object("a") == g.object("b")


def rule(name):
    """A rule about a task."""
    return lambda g: getattr(spec(g), name)(g.text("task_type"), number(g, "task_id"))


def nothing(call):
    """A call that answers nothing."""

    def called(g):
        call(g)
        return Answers()

    return called


def options(g):
    return ClusterResolverOptions(
        g.text("options.task_type"),
        g.number("options.task_id") if g.number("options.has_task_id") else None,
        g.number("options.num_accelerators"),
        *(g.text(f"options.{name}") for name in ("rpc_layer", "environment", "session_address", "tf_config")),
    )


def slurm(g):
    found, index = {}, 0
    while f"slurm.jobs{index}.name" in g.fields:
        found[g.text(f"slurm.jobs{index}.name")] = g.number(f"slurm.jobs{index}.num_tasks")
        index += 1
    step = SlurmOptions(
        g.number("slurm.rank") if g.number("slurm.has_rank") else None,
        g.number("slurm.num_tasks"),
        g.text("slurm.host_list"),
        g.text("slurm.tasks_per_node"),
        *(g.number(f"slurm.{name}") for name in ("tasks_on_each_host", "port_base", "gpus_per_host", "gpus_per_task")),
        jobs=found or None,
    )
    return ClusterResolver.slurm(step, options(g))


def maybe(name):
    """A text that may not be set."""

    def call(g):
        text = getattr(resolver(g), name)
        return Answers(out=text or "", **{"out.is_set": int(text is not None)})

    return call


def task_id(g):
    found = resolver(g).task_id
    return UNSET if found is None else found


def divided(divide, *names):
    """What a partitioner says."""

    def call(g):
        return divide(numbers(g, "shape") or [], *(g.number(name) for name in names))

    return call


CALLS = {
    "setenv": setenv,
    "strategy_cluster_resolver": lambda g: g.needed("strategy").cluster_resolver,
    "cluster_spec_from_json": lambda g: ClusterSpec.from_json(g.text("text")),
    "cluster_spec_create": lambda g: ClusterSpec(jobs(g)),
    "cluster_spec_destroy": kept("spec"),
    "cluster_spec_num_jobs": lambda g: len(spec(g).jobs),
    "cluster_spec_json": lambda g: spec(g).json(),
    "cluster_spec_job": lambda g: spec(g).jobs[g.number("index")],
    "cluster_spec_num_tasks": lambda g: spec(g).num_tasks(g.text("job")),
    "cluster_spec_task_indices": lambda g: spec(g).task_indices(g.text("job")),
    "cluster_spec_task_address": lambda g: spec(g).task_address(g.text("job"), g.number("task")),
    "cluster_spec_is_equal": is_equal,
    "cluster_validate": nothing(rule("validate")),
    "cluster_is_chief": rule("is_chief"),
    "cluster_id_in_cluster": rule("id_in_cluster"),
    "cluster_should_save_checkpoint": rule("should_save_checkpoint"),
    "cluster_collective_leader": rule("collective_leader"),
    "cluster_coordination_leader": lambda g: spec(g).coordination_leader(),
    "cluster_worker_count": lambda g: spec(g).worker_count(g.text("task_type")),
    "cluster_resolver_create_simple": lambda g: ClusterResolver.simple(spec(g), options(g)),
    "cluster_resolver_create_tf_config": lambda g: ClusterResolver.tf_config(options(g)),
    "cluster_resolver_create_slurm": slurm,
    "cluster_resolver_create_union": lambda g: ClusterResolver.union(g.objects("resolvers"), options(g)),
    "cluster_resolver_destroy": kept("resolver"),
    "cluster_resolver_spec": lambda g: resolver(g).spec(),
    "cluster_resolver_task_type": maybe("task_type"),
    "cluster_resolver_rpc_layer": maybe("rpc_layer"),
    "cluster_resolver_environment": maybe("environment"),
    "cluster_resolver_task_id": task_id,
    "cluster_resolver_master": lambda g: resolver(g).master(g.text("task_type"), number(g, "task_id"), g.text("rpc_layer")),
    "cluster_resolver_num_accelerators": lambda g: resolver(g).num_accelerators(
        g.text("task_type"), number(g, "task_id")
    ),
    "cluster_resolver_gpu_ids": lambda g: resolver(g).gpu_ids(),
    "slurm_expand_host_list": lambda g: libdist.slurm_hosts(g.text("host_list")),
    "slurm_expand_tasks_per_node": lambda g: libdist.slurm_tasks_per_node(g.text("tasks_per_node")),
    "partitions_fixed_shards": divided(libdist.fixed_shards, "axis", "num_shards"),
    "partitions_min_size": divided(
        libdist.min_size_shards, "axis", "element_bytes", "min_shard_bytes", "max_shards"
    ),
    "partitions_max_size": divided(
        libdist.max_size_shards, "axis", "element_bytes", "max_shard_bytes", "max_shards"
    ),
}
