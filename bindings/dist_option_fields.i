/* SPDX-License-Identifier: Apache-2.0 */
/* Written by bindings/options.py from the headers: do not edit. The fields of options. */

%ignore dist_strategy_options::devices;
%ignore dist_strategy_options::num_devices;
%ignore dist_strategy_options::functions;
%ignore dist_strategy_options::functions_user_data;
%dist_part(cpu_part, dist_placement, placement)
%dist_part(cpu_part, int64_t, stack_size_bytes)
%dist_part(cpu_part, dist_budget *, budget)
%dist_part(cpu_part, int32_t, move_host_threads)
%dist_part(host_part, int32_t, helper_threads)
%dist_part(host_part, int32_t, recorded_events)
%dist_part(host_part, int32_t, late_destroys)
%dist_part(mesh_part, int32_t, use_spmd_partitioning)
%dist_part(mesh_part, const dist_device_assignment *, device_assignment)
%dist_part(worker_part, dist_transport, transport)
%dist_part(worker_part, dist_cluster_resolver *, cluster_resolver)
%dist_part(worker_part, dist_network *, network)
%dist_part(worker_part, int64_t, staging_bytes)
%dist_part(worker_part, dist_reform, reform)
%extend dist_strategy_options {
  void set_devices(const char *const *texts, size_t n) {
    $self->devices = dist_swig::keep($self, texts, n);
    $self->num_devices = n;
  }
  void set_cpus(const int32_t *numbers, size_t n) {
    dist_swig::parts($self)->cpu_part.cpus = dist_swig::keep($self, numbers, n);
    dist_swig::parts($self)->cpu_part.num_cpus = n;
  }
  void set_log(int64_t token) {
    dist_swig::parts($self)->host_part.log = dist_swig::on_log;
    dist_swig::parts($self)->host_part.log_user_data = dist_swig::pointer(token);
  }
  void set_replicas_of_workers(const int32_t *numbers, size_t n) {
    dist_swig::parts($self)->worker_part.replicas_of_workers = dist_swig::keep($self, numbers, n);
    dist_swig::parts($self)->worker_part.num_workers = n;
  }
};

%dist_options(dist_collective_options)
%ignore dist_collective_options::weights;
%ignore dist_collective_options::reduce_fn;
%ignore dist_collective_options::reduce_user_data;
%ignore dist_collective_options::splits;
%extend dist_collective_options {
  void set_weights(const double *numbers, size_t n) { $self->weights = n ? dist_swig::keep($self, numbers, n) : nullptr; }
  void set_reduce(int64_t token) {
    $self->reduce_fn = dist_swig::on_reduce;
    $self->reduce_user_data = dist_swig::pointer(token);
  }
  void set_splits(const long long *numbers, size_t n) { $self->splits = n ? dist_swig::keep($self, numbers, n) : nullptr; }
};

%dist_options(dist_communication_options)

%dist_options(dist_apply_options)
%ignore dist_apply_options::states;
%ignore dist_apply_options::num_states;
%ignore dist_apply_options::fn;
%ignore dist_apply_options::user_data;
%extend dist_apply_options {
  void set_function(int64_t token) {
    $self->fn = dist_swig::on_apply;
    $self->user_data = dist_swig::pointer(token);
  }
};

%dist_options(dist_run_options)

%dist_options(dist_instances_options)
%ignore dist_instances_options::create_state;
%ignore dist_instances_options::destroy_state;
%ignore dist_instances_options::warm_up;
%ignore dist_instances_options::user_data;

%ignore dist_submit;
%ignore dist_submit_options;
%ignore dist_submit_options_init;
%inline %{
/** dist_submit() with its options; the token is dist_request_user_data(). */
static dist_status submit(
    dist_strategy *strategy, dist_replica_fn fn, void *user_data,
    int32_t priority,
    int64_t timeout_ns,
    dist_cancel *cancel,
    dist_completions *completions,
    int64_t request_id,
    dist_request **out_request) {
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.priority = priority;
  options.timeout_ns = timeout_ns;
  options.cancel = cancel;
  options.completions = completions;
  options.request_id = request_id;
  return dist_submit(strategy, fn, user_data, &options, out_request);
}
%}

%dist_options(dist_batcher_options)
%ignore dist_batcher_options::buckets;
%ignore dist_batcher_options::num_buckets;
%ignore dist_batcher_options::free_state;
%ignore dist_batcher_options::free_result;
%extend dist_batcher_options {
  void set_buckets(const long long *numbers, size_t n) {
    $self->buckets = dist_swig::keep($self, numbers, n);
    $self->num_buckets = n;
  }
};

%ignore dist_batcher_submit;
%ignore dist_item_options;
%ignore dist_item_options_init;
%inline %{
/** dist_batcher_submit() with its options; the token is dist_request_user_data(). */
static dist_status batcher_submit(
    dist_batcher *batcher, int64_t token,
    int32_t priority,
    int64_t timeout_ns,
    dist_cancel *cancel,
    dist_completions *completions,
    int64_t length,
    int64_t bytes,
    dist_request **out_request) {
  dist_item_options options = DIST_ITEM_OPTIONS_INIT;
  options.priority = priority;
  options.timeout_ns = timeout_ns;
  options.cancel = cancel;
  options.completions = completions;
  options.length = length;
  options.bytes = bytes;
  return dist_batcher_submit(batcher, dist_swig::pointer(token), &options, out_request);
}
%}

%dist_options(dist_variable_options)
%ignore dist_variable_options::initial_fn;
%ignore dist_variable_options::initial_user_data;
%extend dist_variable_options {
  void set_initial(int64_t token) {
    $self->initial_fn = dist_swig::on_initial;
    $self->initial_user_data = dist_swig::pointer(token);
  }
};

%dist_options(dist_update_options)

%dist_options(dist_dataset_options)
%ignore dist_dataset_options::batch_sizes;
%ignore dist_dataset_options::num_batch_sizes;
%extend dist_dataset_options {
  void set_batch_sizes(const long long *numbers, size_t n) {
    $self->batch_sizes = dist_swig::keep($self, numbers, n);
    $self->num_batch_sizes = n;
  }
};

%dist_options(dist_checkpoint_options)
%ignore dist_checkpoint_options::names;
%ignore dist_checkpoint_options::metadata_keys;
%ignore dist_checkpoint_options::metadata_texts;
%ignore dist_checkpoint_options::num_metadata;
%extend dist_checkpoint_options {
  void set_names(const char *const *texts, size_t n) { $self->names = n ? dist_swig::keep($self, texts, n) : nullptr; }
};

%dist_options(dist_checkpoint_map_options)

%dist_options(dist_split_options)

%dist_options(dist_devices_options)
%ignore dist_devices_options::results;
%ignore dist_devices_options::num_results;

%dist_options(dist_cluster_resolver_options)
%ignore dist_cluster_resolver_options::task_type;
%ignore dist_cluster_resolver_options::rpc_layer;

%dist_options(dist_slurm_options)
%ignore dist_slurm_options::jobs;
%ignore dist_slurm_options::num_jobs;

%dist_options(dist_kubernetes_options)

%dist_options(dist_network_options)

%dist_options(dist_reform_options)

%dist_options(dist_cross_device_options)
%ignore dist_cross_device_options::accumulate;
%ignore dist_cross_device_options::accumulate_user_data;
%ignore dist_cross_device_options::functions;
%ignore dist_cross_device_options::functions_user_data;
%extend dist_cross_device_options {
  void set_accumulate(int64_t token) {
    $self->accumulate = dist_swig::on_reduce;
    $self->accumulate_user_data = dist_swig::pointer(token);
  }
};

%dist_options(dist_rpc_server_options)

%dist_options(dist_rpc_client_options)

%dist_options(dist_rpc_call_options)

%dist_options(dist_coordinator_options)
%ignore dist_coordinator_options::partitioner;
%ignore dist_coordinator_options::partitioner_user_data;
%extend dist_coordinator_options {
  void set_partitioner(int64_t token) {
    $self->partitioner = dist_swig::on_partition;
    $self->partitioner_user_data = dist_swig::pointer(token);
  }
};

%dist_options(dist_ps_variable_options)
%ignore dist_ps_variable_options::partitions;
%ignore dist_ps_variable_options::num_partitions;
%extend dist_ps_variable_options {
  void set_partitions(const long long *numbers, size_t n) {
    $self->partitions = dist_swig::keep($self, numbers, n);
    $self->num_partitions = n;
  }
};

%dist_options(dist_schedule_options)

%dist_options(dist_preemption_options)
%ignore dist_preemption_options::variables;
%ignore dist_preemption_options::num_variables;

%dist_options(dist_rendezvous_options)

%dist_options(dist_server_options)
