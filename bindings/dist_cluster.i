/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_cluster.i: cluster.h, cluster_resolver.h and partitioner.h. A part of dist_options.i.
 */

/* ---- How arguments look ------------------------------------------------------------------------------------------ */
%dist_handle(dist_cluster_spec)
%dist_handle(dist_cluster_job)
%apply dist_cluster_spec *const * { const dist_cluster_spec *const * };
%typemap(in, numinputs=0) const dist_cluster_spec_options *options "$1 = nullptr;"
%ignore dist_cluster_explain; /* Text */
%ignore dist_slurm_expand_host_list;

#if defined(SWIGGO)
/* Texts that may not be given, which is not the same as empty: nil is NULL. */
%typemap(gotype) const char *task_type, const char *rpc_layer "*string"
%typemap(imtype) const char *task_type, const char *rpc_layer "string"
%typemap(goin) const char *task_type, const char *rpc_layer %{
	if $input != nil {
		$result = "=" + *$input
	}
%}
%typemap(in) const char *task_type (std::string text), const char *rpc_layer (std::string text) %{
  text.assign($input.p, (size_t)$input.n);
  $1 = text.empty() ? nullptr : &text[1];
%}
%apply const char * { const char *job }; /* of a cluster, which may be called "" */
#endif

#if defined(SWIGPYTHON)
/* The capacity is given, the numbers come back. */
%define %dist_int32_list(PATTERN)
%typemap(in) PATTERN (std::vector<int32_t> numbers, size_t count) %{
  $2 = PyLong_AsSize_t($input);
  if (PyErr_Occurred()) SWIG_fail;
  numbers.assign($2 + 1, 0);
  count = 0;
  $1 = numbers.data();
  $3 = &count;
%}
%typemap(argout) PATTERN %{
  {
    const size_t written = *$3 < $2 ? *$3 : $2;
    PyObject *const list = PyList_New((Py_ssize_t)written);
    for (size_t i = 0; list && i < written; i++)
      PyList_SET_ITEM(list, (Py_ssize_t)i, PyLong_FromLong($1[i]));
    $result = dist_swig::append_output($result, list);
  }
%}
%enddef
%dist_int32_list((int32_t *out_indices, size_t capacity, size_t *out_n))
%dist_int32_list((int32_t *out_tasks, size_t capacity, size_t *out_n))

/* As many numbers as the shape has, which is the first argument, with its length as the second one. */
%typemap(in, numinputs=0) int64_t *out_partitions (int64_t partitions[DIST_MAX_NDIM]) %{ $1 = partitions; %}
%typemap(argout) int64_t *out_partitions %{
  {
    PyObject *const list = PyList_New((Py_ssize_t)arg2);
    for (size_t i = 0; list && i < arg2; i++) PyList_SET_ITEM(list, (Py_ssize_t)i, PyLong_FromLongLong($1[i]));
    $result = dist_swig::append_output($result, list);
  }
%}
#endif

/* ---- Options ----------------------------------------------------------------------------------------------------- */
%extend dist_cluster_resolver_options {
  void set_task_type(const char *text) { $self->task_type = dist_swig::keep($self, text); }
  void set_rpc_layer(const char *text) { $self->rpc_layer = dist_swig::keep($self, text); }
};
%ignore dist_cluster_spec_options; /* all that it has is an allocator */
%ignore dist_cluster_spec_options_init;
%ignore dist_cluster_job; /* ClusterJobs */
%inline %{
/** A list of dist_cluster_job. */
class ClusterJobs {
 public:
  /* n addresses; task_indices: as many, or none: 0, 1, ... */
  void add(const char *name, const char *const *addresses, const int32_t *task_indices, size_t n) {
    texts_.push_back(name ? name : "");
    dist_cluster_job job = {texts_.back().c_str(), nullptr, nullptr, n};
    lists_.emplace_back();
    for (size_t i = 0; addresses && i < n; i++) {
      texts_.push_back(addresses[i]);
      lists_.back().push_back(texts_.back().c_str());
    }
    if (addresses) job.addresses = lists_.back().data();
    if (task_indices) {
      indices_.emplace_back(task_indices, task_indices + n);
      job.task_indices = indices_.back().data();
    }
    all_.push_back(job);
  }
  size_t size() const { return all_.size(); }
  const dist_cluster_job *get() const { return all_.data(); }

 private:
  std::deque<std::string> texts_;
  std::deque<std::vector<const char *>> lists_;
  std::deque<std::vector<int32_t>> indices_;
  std::vector<dist_cluster_job> all_;
};
%}
%extend dist_slurm_options {
  /* the jobs stay the caller's until the call is over */
  void set_jobs(const ClusterJobs *jobs) {
    $self->jobs = jobs->get();
    $self->num_jobs = jobs->size();
  }
};

/* ---- Resolvers of the host's own --------------------------------------------------------------------------------- */
%ignore dist_cluster_resolver_create_host; /* cluster_resolver_create_host() */
%ignore dist_cluster_resolver_functions;
%ignore dist_cluster_resolver_functions_init;
%nodefaultctor ResolverAnswer;
%nodefaultdtor ResolverAnswer;
%feature("director") ResolverCallbacks;
#if defined(SWIGPYTHON)
%feature("director:except") ResolverCallbacks::answer {
  if ($error) return dist_swig_escaped();
}
#elif defined(SWIGJAVA)
%feature("director:except") ResolverCallbacks::answer {
  if (dist_swig_threw(jenv)) return DIST_UNKNOWN;
}
#endif
%inline %{
/** What a resolver of the language's own answers, and which texts it is asked with: one that is not may look empty. */
class ResolverAnswer {
 public:
  int32_t has_task_type() const { return has_task_type_; }
  int32_t has_rpc_layer() const { return has_rpc_layer_; }
  void set_text(const char *text) {
    is_set_ = text != nullptr;
    text_ = text ? text : "";
  }
  void set_number(int32_t number) { number_ = number; }
  /* handed over */
  void set_spec(dist_cluster_spec *spec) {
    dist_cluster_spec_destroy(spec_);
    spec_ = spec;
  }
#if !defined(SWIG)
  ResolverAnswer(const char *task_type, const char *rpc_layer)
      : has_task_type_(task_type != nullptr), has_rpc_layer_(rpc_layer != nullptr) {}
  ResolverAnswer(const ResolverAnswer &) = delete;
  ResolverAnswer &operator=(const ResolverAnswer &) = delete;
  ~ResolverAnswer() { dist_cluster_spec_destroy(spec_); }
  dist_cluster_spec *take_spec() {
    dist_cluster_spec *const spec = spec_;
    spec_ = nullptr;
    return spec;
  }
  dist_status write(char *out_text, size_t size_bytes, int32_t *out_is_set) const {
    if (text_.size() >= size_bytes)
      return dist_fail(DIST_INVALID_ARGUMENT, "a text of a cluster resolver is too long");
    std::memcpy(out_text, text_.c_str(), text_.size() + 1);
    if (out_is_set) *out_is_set = is_set_;
    return DIST_OK;
  }
  int32_t number() const { return number_; }

 private:
  const int32_t has_task_type_, has_rpc_layer_;
  std::string text_;
  bool is_set_ = false;
  int32_t number_ = 0;
  dist_cluster_spec *spec_ = nullptr;
#endif
};

/** What a resolver is asked; 1 << question in the functions of cluster_resolver_create_host(). */
enum {
  RESOLVER_SPEC,
  RESOLVER_TASK_TYPE,
  RESOLVER_TASK_ID,
  RESOLVER_RPC_LAYER,
  RESOLVER_ENVIRONMENT,
  RESOLVER_ADDRESS,
  RESOLVER_NUM_ACCELERATORS
};

/* The calls of dist_cluster_resolver_functions, as those of Callbacks: the result is a status. */
struct ResolverCallbacks {
  virtual ~ResolverCallbacks() {}
  virtual int32_t answer(int64_t token, int32_t question, const char *asked_type, int32_t task_id,
                         const char *asked_layer, ResolverAnswer *answer) = 0;
};
%}
%{
namespace dist_swig {

static ResolverCallbacks *resolver_callbacks; /* set once, before the first resolver is made */

/* A question, and what came: `use` is called where the answer is one. */
template <class Use>
static dist_status ask(int32_t question, void *token, const char *task_type, int32_t task_id,
                       const char *rpc_layer, Use use) {
  ResolverAnswer answer(task_type, rpc_layer);
  const dist_status status = call(resolver_callbacks, &ResolverCallbacks::answer, number(token), question, task_type,
                                  task_id, rpc_layer, &answer);
  return status == DIST_OK ? use(answer) : status;
}
template <class Use> static dist_status ask(int32_t question, void *token, Use use) {
  return ask(question, token, nullptr, DIST_TASK_UNSET, nullptr, use);
}
template <int32_t question>
static dist_status on_resolver_text(char *out_text, size_t size_bytes, int32_t *out_is_set, void *token) {
  return ask(question, token, [=](ResolverAnswer &answer) { return answer.write(out_text, size_bytes, out_is_set); });
}
static dist_status on_resolver_spec(dist_cluster_spec **out_spec, void *token) {
  return ask(RESOLVER_SPEC, token, [=](ResolverAnswer &answer) {
    *out_spec = answer.take_spec();
    return DIST_OK;
  });
}
static dist_status on_resolver_task_id(int32_t *out_task_id, void *token) {
  return ask(RESOLVER_TASK_ID, token, [=](ResolverAnswer &answer) {
    *out_task_id = answer.number();
    return DIST_OK;
  });
}
static dist_status on_resolver_address(const char *task_type, int32_t task_id, const char *rpc_layer,
                                       char *out_text, size_t size_bytes, void *token) {
  return ask(RESOLVER_ADDRESS, token, task_type, task_id, rpc_layer,
             [=](ResolverAnswer &answer) { return answer.write(out_text, size_bytes, nullptr); });
}
static dist_status on_resolver_num_accelerators(const char *task_type, int32_t task_id, int32_t *out_n,
                                                void *token) {
  return ask(RESOLVER_NUM_ACCELERATORS, token, task_type, task_id, nullptr, [=](ResolverAnswer &answer) {
    *out_n = answer.number();
    return DIST_OK;
  });
}

}  // namespace dist_swig
%}
%inline %{
/** Who answers for resolvers of the language's own; set once, and never ended. */
static void set_resolver_callbacks(ResolverCallbacks *callbacks) { dist_swig::resolver_callbacks = callbacks; }

/** dist_cluster_resolver_create_host() of a token; functions: a bit, 1 << question, for each that it answers. */
static dist_status cluster_resolver_create_host(int64_t token, int32_t functions,
                                                const dist_cluster_resolver_options *options,
                                                dist_cluster_resolver **out_resolver) {
  dist_cluster_resolver_functions table = DIST_CLUSTER_RESOLVER_FUNCTIONS_INIT;
  const auto has = [functions](int32_t question) { return (functions >> question & 1) != 0; };
  if (has(RESOLVER_SPEC)) table.spec = dist_swig::on_resolver_spec;
  if (has(RESOLVER_TASK_TYPE)) table.task_type = dist_swig::on_resolver_text<RESOLVER_TASK_TYPE>;
  if (has(RESOLVER_TASK_ID)) table.task_id = dist_swig::on_resolver_task_id;
  if (has(RESOLVER_RPC_LAYER)) table.rpc_layer = dist_swig::on_resolver_text<RESOLVER_RPC_LAYER>;
  if (has(RESOLVER_ENVIRONMENT)) table.environment = dist_swig::on_resolver_text<RESOLVER_ENVIRONMENT>;
  if (has(RESOLVER_ADDRESS)) table.address = dist_swig::on_resolver_address;
  if (has(RESOLVER_NUM_ACCELERATORS)) table.num_accelerators = dist_swig::on_resolver_num_accelerators;
  table.release = dist_swig::on_release;
  return dist_cluster_resolver_create_host(&table, dist_swig::pointer(token), options, out_resolver);
}
%}

#if defined(SWIGPYTHON)
/* ---- Calls that keep the GIL ------------------------------------------------------------------------------------- */
%formacro(%dist_quick, dist_cluster_spec_num_jobs, dist_cluster_spec_job, dist_cluster_spec_num_tasks,
          dist_cluster_spec_task_indices, dist_cluster_spec_task_address, dist_cluster_spec_is_equal,
          dist_cluster_spec_json, dist_cluster_spec_destroy)
%formacro(%dist_quick, partitions_fixed_shards, partitions_min_size, partitions_max_size, dist_partitions_part,
          dist_partitions_part_of)
#endif

/* ---- Partitioners, with the type that SWIG takes for int64_t ----------------------------------------------------- */
%ignore dist_partitions_fixed_shards;
%ignore dist_partitions_min_size;
%ignore dist_partitions_max_size;
%{
namespace dist_swig {

/* Room for one more: a scalar's sizes are not NULL. */
static std::vector<int64_t> shape_of(const long long *numbers, size_t n) {
  std::vector<int64_t> shape(n + 1);
  for (size_t i = 0; i < n; i++) shape[i] = numbers[i];
  return shape;
}

}  // namespace dist_swig
%}
%inline %{
static dist_status partitions_fixed_shards(const long long *numbers, size_t n, int32_t axis, int32_t num_shards,
                                           int64_t *out_partitions) {
  const std::vector<int64_t> shape = dist_swig::shape_of(numbers, n);
  return dist_partitions_fixed_shards(shape.data(), n, axis, num_shards, out_partitions);
}
static dist_status partitions_min_size(const long long *numbers, size_t n, int32_t axis, int64_t element_bytes,
                                       int64_t min_shard_bytes, int32_t max_shards, int64_t *out_partitions) {
  const std::vector<int64_t> shape = dist_swig::shape_of(numbers, n);
  return dist_partitions_min_size(shape.data(), n, axis, element_bytes, min_shard_bytes, max_shards,
                                  out_partitions);
}
static dist_status partitions_max_size(const long long *numbers, size_t n, int32_t axis, int64_t element_bytes,
                                       int64_t max_shard_bytes, int32_t max_shards, int64_t *out_partitions) {
  const std::vector<int64_t> shape = dist_swig::shape_of(numbers, n);
  return dist_partitions_max_size(shape.data(), n, axis, element_bytes, max_shard_bytes, max_shards,
                                  out_partitions);
}
%}

%include <dist/cluster.h>
%include <dist/cluster_resolver.h>
%include <dist/experimental/rendezvous.h>
%include <dist/partitioner.h>

#if defined(SWIGGO)
%apply const char *device { const char *job }; /* of a device's name: none is NULL */
#endif
