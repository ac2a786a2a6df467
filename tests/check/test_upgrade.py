#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that capi/upgrade.py turns a program for libdist 0.2 into one that compiles with the current headers.

usage: test_upgrade.py UPGRADE_PY COMPILER CXX_COMPILER
"""
import pathlib
import subprocess
import sys
import tempfile

C = """\
#define DIST_EXPERIMENTAL 1
#include <dist/dist.h>
#include <stdlib.h>

static void *take(void *user_data, size_t size, size_t align) {
  (void)user_data;
  return aligned_alloc(align, size);
}
static void give(void *user_data, void *memory, size_t size, size_t align) {
  (void)user_data, (void)size, (void)align;
  free(memory);
}
static void line(void *user_data, int32_t level, const char *text) { (void)user_data, (void)level, (void)text; }

static void add(void *acc, const void *in, size_t count, dist_dtype dtype, void *user_data) {
  (void)dtype, (void)user_data;
  for (size_t i = 0; i < (size_t)count; i++) ((float *)acc)[i] += ((const float *)in)[i];
}
static const dist_reduce_fn operator_of_the_host = add;

static dist_status first(dist_value **out, void *user_data) {
  dist_tensor zero = {user_data, DIST_F32, 0, NULL, NULL};
  return dist_value_create_tensor(dist_get_strategy(), &zero, out);
}

static dist_status latest(dist_value *state, dist_value *batch, dist_value **out_state, void *user_data) {
  (void)state, (void)user_data;
  *out_state = dist_value_retain(batch);
  return DIST_OK;
}
const dist_cross_device_kind kind = DIST_CROSS_DEVICE_NCCL;
dist_status last_of(dist_dataset *data, dist_value **out) { return dist_dataset_reduce(data, NULL, latest, NULL, out); }

static dist_strategy_options options_of(int32_t replicas) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = replicas;
  options.log = line;
  return options;
}
static dist_status create(dist_strategy_options given, dist_strategy **out) {
  given.placement = DIST_PLACEMENT_CORES;
  return dist_strategy_create(&given, out);
}
static dist_status merge(dist_strategy *strategy, dist_value *args, dist_value **out_result, void *user_data) {
  (void)user_data;
  return dist_reduce(strategy, DIST_REDUCE_SUM, dist_value_item(args, 0), NULL, 0, out_result);
}
dist_status merged(dist_replica *replica, dist_value *args) {
  return dist_merge_call(replica, merge, NULL, args, NULL, NULL);
}
dist_status sum(dist_replica *replica, dist_tensor *t, int later) {
  dist_work *work = NULL;
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  if (later) options.out_work = &work;
  dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, t, t, 1, &options);
  if (status == DIST_OK && later) status = dist_work_wait(work, 0);
  double norm = 0;
  dist_apply_options apply = DIST_APPLY_OPTIONS_INIT;
  apply.kind = DIST_APPLY_SGD, apply.out_norm = &norm;
  if (status == DIST_OK) status = dist_reduce_apply(replica, DIST_REDUCE_SUM, t, t, 1, &apply, NULL);
  return status == DIST_OK && norm >= 0 ? dist_barrier(replica, NULL) : status;
}
dist_status run(dist_cluster_resolver *cpu, dist_work *work, dist_value *value) {
  dist_strategy *strategy = NULL;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.allocator = (dist_allocator){NULL, take, give};
  options.stack_size_bytes = 1 << 20;
  options.cluster_resolver = cpu;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (status == DIST_OK) status = create(options_of(2), &strategy);
  dist_value *results = NULL;
  dist_variable_options initial = DIST_VARIABLE_OPTIONS_INIT;
  initial.initial_fn = first;
  if (status == DIST_OK) status = dist_local_results(strategy, value, &results);
  if (status == DIST_OK) status = dist_work_wait(work, 0);
  if (status == DIST_OK) status = dist_colocate_enter(strategy, value);
  dist_rpc_server *server = NULL;
  (void)!dist_rpc_server_create("grpc", "127.0.0.1:0", NULL, &server);
  return operator_of_the_host == NULL || initial.struct_size == 0 ? DIST_INTERNAL : status;
}
"""
CXX = """\
#define DIST_EXPERIMENTAL
#include <dist/dist.hpp>

void serve(dist::strategy &strategy) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.helper_threads = 1;
  const dist::strategy other(options);
  dist::rpc_server server("127.0.0.1:0");
  dist::coordinator coordinator(strategy);
}
"""

UNDECIDED = """\
#include <dist/dist.h>
void set(dist_strategy_options *options) { options->helper_threads = 1; }
int mixed(dist_strategy *strategy, dist_replica_fn fn, dist_collective_options *options) {
  dist_work *first = NULL;
  options->out_work = &first;
  if (dist_strategy_shutdown(strategy, 0)) return 1;
  return dist_submit(strategy, fn, NULL, NULL, &first);
}
void gone(dist_variable_options *options) { options->trainable = 1; }
dist_communication_options kept = DIST_COMMUNICATION_OPTIONS_INIT;
"""


def undecided(script):
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "old.c")
        program.write_text(UNDECIDED, encoding="utf-8")
        said = subprocess.run([script, program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [line.removeprefix(f"{program}:") for line in said]


def upgrade(script, text, name, compiler, *options):
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, name)
        program.write_text(text, encoding="utf-8")
        assert subprocess.run([script, "--check", program], check=False, stdout=subprocess.PIPE).returncode == 1
        subprocess.run([script, program], check=True)
        assert subprocess.run([script, "--check", program], check=False).returncode == 0, "a second run changes it again"
        include = pathlib.Path(script).resolve().parents[1] / "include"
        subprocess.run([*compiler.split(), *options, "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-fsyntax-only", "-I", include, program], check=True)
        return program.read_text(encoding="utf-8")


def main(script, compiler, cxx_compiler):
    made = upgrade(script, C, "old.c", compiler, "-std=c11")
    for text in (
        "#include <dist/dist.h>\n#include <dist/experimental/rpc.h>\n#include <dist/tf.h>\n",
        "dist_strategy_local_results(strategy, value, &results)",
        "kind = DIST_CROSS_DEVICE_DEFAULT;",
        "dist_work_wait(work, DIST_NO_TIMEOUT)",
        "static dist_host_options host;",  # the options outlive the function
        "if (given.cpu != NULL) cpu = *given.cpu;",
        "first(dist_strategy *strategy, dist_value **out, void *user_data)",
        "options_cpu.stack_size_bytes",  # `cpu` is another variable
    ):
        assert text in made, f"{text!r} is missing in:\n{made}"
    said = undecided(script)
    for number, why in ((2, "helper_threads is now in dist_host_options"), (4, "this file has requests and collectives"),
                        (5, "this is the last argument"), (6, "dist_strategy_shutdown() leaves the strategy"),
                        (9, "trainable is gone")):
        assert any(line.startswith(f"{number}: {why}") for line in said), said
    assert len(said) == 5, said
    made = upgrade(script, CXX, "old.cpp", cxx_compiler, "-std=c++17")
    assert "#include <dist/experimental/coordinator.hpp>\n#include <dist/experimental/rpc.hpp>\n" in made, made


if __name__ == "__main__":
    main(*sys.argv[1:])
