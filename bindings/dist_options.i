/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_options.i: options, as structs that keep what they point to, and structs that are filled. A part of dist.i.
 */
%{
namespace dist_swig {

/* An options struct, and what its pointers point to. */
template <class Options> struct Kept : Options {
  std::deque<std::string> texts;
  std::deque<std::vector<const char *>> text_lists;
  std::deque<std::vector<int64_t>> integers;
  std::deque<std::vector<int32_t>> short_integers;
  std::deque<std::vector<double>> reals;
  std::vector<dist_edge> edges;
  std::vector<dist_mesh_axis> axes;
  std::vector<const dist_partition *> partitions;
  std::vector<dist_variable *> variables;
  Tensors tensors;
  dist_work *work;
  bool begins_work;
  dist_cross_device_functions functions;
  dist_strategy_functions strategy_functions;
  dist_executor executor;
#ifdef SWIGPYTHON
  std::deque<Held> held; /* objects that Python may close meanwhile: dist_python_handles.i */
#endif
};

/* All options that SWIG's constructors make are Kept. */
template <class Options> Kept<Options> *kept(Options *options) { return static_cast<Kept<Options> *>(options); }

template <class Options> const char *keep(Options *options, const char *text) {
  if (!text) return nullptr;
  kept(options)->texts.push_back(text);
  return kept(options)->texts.back().c_str();
}

template <class Options> const char *const *keep(Options *options, const char *const *texts, size_t n) {
  if (!texts) return nullptr;
  kept(options)->text_lists.emplace_back();
  kept(options)->text_lists.back().reserve(n + 1);
  for (size_t i = 0; i < n; i++) kept(options)->text_lists.back().push_back(keep(options, texts[i]));
  return kept(options)->text_lists.back().data();
}

/* A copy of a list; an empty one is not NULL. */
template <class Number, class Given>
const Number *keep(std::deque<std::vector<Number>> &lists, const Given *numbers, size_t n) {
  if (!numbers) return nullptr;
  lists.emplace_back(numbers, numbers + n);
  lists.back().reserve(1);
  return lists.back().data();
}
/* long long: what SWIG takes for int64_t. */
template <class Options> const int64_t *keep(Options *options, const long long *numbers, size_t n) {
  return keep(kept(options)->integers, numbers, n);
}
template <class Options> const int32_t *keep(Options *options, const int32_t *numbers, size_t n) {
  return keep(kept(options)->short_integers, numbers, n);
}
template <class Options> const double *keep(Options *options, const double *numbers, size_t n) {
  return keep(kept(options)->reals, numbers, n);
}

}  // namespace dist_swig
%}
%typemap(memberin) const char * { $1 = dist_swig::keep(arg1, $input); }

%define %dist_options(NAME)
%ignore NAME::struct_size;
%ignore NAME::reserved;
%ignore NAME::allocator;
%nodefaultctor NAME;
%nodefaultdtor NAME;
%ignore NAME ## _init;
%extend NAME {
  NAME() {
    dist_swig::Kept<NAME> *options = new dist_swig::Kept<NAME>();
    NAME ## _init(options, sizeof(NAME));
    return options;
  }
  ~NAME() { delete dist_swig::kept($self); }
};
%enddef
%dist_options(dist_topology_options)
%dist_options(dist_partition)
%dist_options(dist_halo)

/* The options of a strategy. Languages see the structs to which it points as fields of its own. */
%{
namespace dist_swig {

struct KeptStrategy : Kept<dist_strategy_options> {
  dist_cpu_options cpu_part;
  dist_host_options host_part;
  dist_mesh_options mesh_part;
  dist_worker_options worker_part;
};
static KeptStrategy *parts(dist_strategy_options *options) {
  return static_cast<KeptStrategy *>(kept(options));
}

}  // namespace dist_swig
%}
%ignore dist_cpu_options;
%ignore dist_cpu_options_init;
%ignore dist_host_options;
%ignore dist_host_options_init;
%ignore dist_mesh_options;
%ignore dist_mesh_options_init;
%ignore dist_worker_options;
%ignore dist_worker_options_init;
%ignore dist_strategy_options::struct_size;
%ignore dist_strategy_options::reserved;
%ignore dist_strategy_options::cpu;
%ignore dist_strategy_options::host;
%ignore dist_strategy_options::mesh;
%ignore dist_strategy_options::worker;
%nodefaultctor dist_strategy_options;
%nodefaultdtor dist_strategy_options;
%ignore dist_strategy_options_init;
%extend dist_strategy_options {
  dist_strategy_options() {
    dist_swig::KeptStrategy *options = new dist_swig::KeptStrategy();
    dist_strategy_options_init(options, sizeof(dist_strategy_options));
    dist_cpu_options_init(&options->cpu_part, sizeof options->cpu_part);
    dist_host_options_init(&options->host_part, sizeof options->host_part);
    dist_mesh_options_init(&options->mesh_part, sizeof options->mesh_part);
    dist_worker_options_init(&options->worker_part, sizeof options->worker_part);
    options->cpu = &options->cpu_part;
    options->host = &options->host_part;
    options->mesh = &options->mesh_part;
    options->worker = &options->worker_part;
    return options;
  }
  ~dist_strategy_options() { delete dist_swig::parts($self); }
};
%define %dist_part(PART, TYPE, FIELD)
%extend dist_strategy_options { TYPE FIELD; };
%{
static TYPE dist_strategy_options_ ## FIELD ## _get(dist_strategy_options *options) {
  return dist_swig::parts(options)->PART.FIELD;
}
static void dist_strategy_options_ ## FIELD ## _set(dist_strategy_options *options, TYPE FIELD) {
  dist_swig::parts(options)->PART.FIELD = FIELD;
}
%}
%enddef

/* Structs that are filled. */
%define %dist_record(NAME, INIT)
%ignore NAME::struct_size;
%ignore NAME::reserved;
%nodefaultctor NAME;
%extend NAME {
  NAME() {
    NAME *record = new NAME;
    const NAME empty = INIT;
    *record = empty;
    return record;
  }
};
%enddef
%dist_record(dist_strategy_properties, DIST_STRATEGY_PROPERTIES_INIT)
%dist_record(dist_input_context, DIST_INPUT_CONTEXT_INIT)
%dist_record(dist_position, DIST_POSITION_INIT)
%dist_record(dist_drift, DIST_DRIFT_INIT)
%dist_record(dist_coordinator_stats, DIST_COORDINATOR_STATS_INIT)

/* Fields that dist_option_fields.i leaves to this file: tables of functions, and lists of structs. */
%extend dist_strategy_options {
  void set_axes(const char *const *texts, const int32_t *sizes, size_t n) {
    std::vector<dist_mesh_axis> &axes = dist_swig::kept($self)->axes;
    axes.clear();
    for (size_t i = 0; i < n; i++) {
      const dist_mesh_axis axis = {dist_swig::keep($self, texts[i]), sizes[i]};
      axes.push_back(axis);
    }
    dist_swig::parts($self)->mesh_part.axes = axes.data();
    dist_swig::parts($self)->mesh_part.num_axes = n;
  }
  /* the token is used until the strategy has ended */
  void set_executor(int64_t token, int32_t num_threads) {
    dist_executor &executor = dist_swig::kept($self)->executor;
    dist_executor_init(&executor, sizeof executor);
    executor.num_threads = num_threads;
    executor.execute = dist_swig::on_execute;
    executor.user_data = dist_swig::pointer(token);
    dist_swig::parts($self)->host_part.executor = &executor;
  }
  /* A strategy of the host's own, by functions of one token. Its devices are set_devices()'s, and all replicas share
     one copy of a variable or have each its own: libdist has no other mapping. */
  void set_functions(int64_t token, int32_t shared_copy, int32_t has_reduce, int32_t has_broadcast,
                     int32_t has_gather) {
    dist_strategy_functions &table = dist_swig::kept($self)->strategy_functions;
    dist_strategy_functions_init(&table, sizeof table);
    table.copy_of_replica = shared_copy ? dist_swig::shared_copy : dist_swig::own_copy;
    if (has_reduce) table.reduce = dist_swig::on_reduce_components;
    if (has_broadcast) table.broadcast = dist_swig::on_broadcast_copies;
    if (has_gather) table.gather = dist_swig::on_gather_components;
    $self->functions = &table;
    $self->functions_user_data = dist_swig::pointer(token);
  }
};

%extend dist_cross_device_options {
  void set_functions(int64_t token, int32_t has_broadcast, int32_t has_gather) {
    dist_cross_device_functions &table = dist_swig::kept($self)->functions;
    dist_cross_device_functions_init(&table, sizeof table);
    table.reduce = dist_swig::on_reduce_components;
    if (has_broadcast) table.broadcast = dist_swig::on_broadcast_copies;
    if (has_gather) table.gather = dist_swig::on_gather_components;
    $self->functions = &table;
    $self->functions_user_data = dist_swig::pointer(token);
  }
};

%extend dist_collective_options {
  /* The call begins work, which work() then gives. */
  void begin_work() { dist_swig::kept($self)->begins_work = true; }
  dist_work *work() { return dist_swig::kept($self)->work; }
};

%{
namespace dist_swig {

/* The options of the call that this thread makes. */
static thread_local const dist_collective_options *given_options;
static dist_work **room_for_work() {
  auto *const options = const_cast<dist_collective_options *>(given_options);
  return options && kept(options)->begins_work ? &kept(options)->work : nullptr;
}

}  // namespace dist_swig
%}
%typemap(check) const dist_collective_options *options "dist_swig::given_options = $1;"
%typemap(in, numinputs=0) dist_work **out_work ""
%typemap(check) dist_work **out_work "$1 = dist_swig::room_for_work();"
%typemap(argout) dist_work **out_work ""
%typemap(freearg) dist_work **out_work ""

%extend dist_apply_options {
  /* num_states lists of tensors, one after another, as numbers */
  void set_states(const long long *numbers, size_t n, size_t num_states) {
    $self->num_states = num_states;
    $self->states = dist_swig::kept($self)->tensors.unpack(dist_swig::keep($self, numbers, n), n);
  }
};

%extend dist_checkpoint_options {
  void set_metadata_keys(const char *const *texts, size_t n) {
    $self->metadata_keys = dist_swig::keep($self, texts, n);
    $self->num_metadata = n;
  }
  void set_metadata_texts(const char *const *texts, size_t n) {
    $self->metadata_texts = dist_swig::keep($self, texts, n);
  }
};

%extend dist_preemption_options {
  /* the variables stay the caller's until the call is over */
  void set_variables(dist_variable *const *variables, size_t n) {
    dist_swig::kept($self)->variables.assign(variables, variables + n);
#ifdef SWIGPYTHON
    for (size_t i = 0; i < n; i++) dist_swig::kept($self)->held.emplace_back(variables[i]);
#endif
    $self->variables = dist_swig::kept($self)->variables.data();
    $self->num_variables = n;
  }
};

%ignore dist_partition::shape;
%ignore dist_partition::ndim;
%ignore dist_partition::dimensions;
%ignore dist_partition::num_dimensions;
%extend dist_partition {
  void set_shape(const long long *numbers, size_t n) {
    $self->shape = dist_swig::keep($self, numbers, n);
    $self->ndim = n;
  }
  void set_dimensions(const long long *numbers, size_t n) {
    $self->dimensions = dist_swig::keep($self, numbers, n);
    $self->num_dimensions = n;
  }
};

%extend dist_devices_options {
  /* the partition stays the caller's until the call is over */
  void add_result(const dist_partition *partition) {
    std::vector<const dist_partition *> &partitions = dist_swig::kept($self)->partitions;
    partitions.push_back(partition);
    $self->results = partitions.data();
    $self->num_results = partitions.size();
  }
};

%ignore dist_halo::parts;
%ignore dist_halo::low;
%ignore dist_halo::high;
%ignore dist_halo::edges;
%extend dist_halo {
  void set_parts(const long long *numbers, size_t n) {
    $self->parts = dist_swig::keep($self, numbers, n);
    $self->ndim = (int32_t)n;
  }
  void set_low(const long long *numbers, size_t n) { $self->low = dist_swig::keep($self, numbers, n); }
  void set_high(const long long *numbers, size_t n) { $self->high = dist_swig::keep($self, numbers, n); }
  void set_edges(const int32_t *edges, size_t n) {
    dist_swig::kept($self)->edges.assign((const dist_edge *)edges, (const dist_edge *)edges + n);
    $self->edges = dist_swig::kept($self)->edges.data();
  }
};

%include "dist_option_fields.i"
%include "dist_cluster.i"
%include "dist_serve.i"
