/* SPDX-License-Identifier: Apache-2.0
 *
 * dist.i: libdist for other languages, in one SWIG interface. It reads the C headers as they are: every function
 * of theirs is there under its own name, with the arguments of C. dist_LANGUAGE.i says how each kind of argument
 * looks in that language; what users see is written by hand above it (go/, java/, python/).
 *
 *     1  The headers' vocabulary               4  Calls back into the language
 *     2  Tensors, texts                        5  Options: structs that keep what they point to
 *     3  How arguments look in the language    6  The headers
 *                                              7  What the headers have in another form
 *
 * How arguments cross, in every language (dist_LANGUAGE.i has a typemap for each):
 *
 *     handles (dist_strategy *, ...)   one 64-bit integer, 0 for NULL; so are results that are handles
 *     out_ handles and numbers         an array of one, or a result, as is usual in the language
 *     a dist_status that is returned   nothing, or the language's error, made in the same native call
 *     const char *                     a text, UTF-8
 *     tensors                          64-bit integers: see dist_swig::Tensors; the count n is still told, as in C
 *     lists of handles and numbers     arrays; the count n is still told, as in C
 *     a function and its user_data     one 64-bit integer, the token: Callbacks gets it with every call
 *     options, and structs that are    objects with a setter and a getter for each field
 *     filled
 */
#if defined(SWIGJAVA)
%module(directors="1", jniclassname="DistJNI") DistModule
#elif defined(SWIGPYTHON)
%module(directors="1", threads="1") _cdist
#else
%module(directors="1") cdist
#endif

%{
#include <dist/dist.h>
#include <dist/experimental/coordinator.h>
#include <dist/experimental/preemption.h>
#include <dist/experimental/rendezvous.h>
#include <dist/experimental/rpc.h>
#include <dist/experimental/server.h>
#include <dist/tf.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <deque>
#include <string>
#include <vector>
%}
%include <stdint.i>

/* ---- 1. The headers' vocabulary --------------------------------------------------------------------------- */
#if defined(SWIGJAVA)
%javaconst(1);
%include <enumsimple.swg>
#endif
/* Enums are integers. Again in section 3, with the language's typemaps. */
%apply int32_t { enum SWIGTYPE };
%ignore DIST_API;
%ignore DIST_NODISCARD;
%rename("$ignore", regextarget=1) "^DIST_.*_INIT$";
%ignore dist_tensor;    /* section 2 */
%ignore dist_block;     /* Callbacks::apply() */
%ignore dist_allocator; /* memory is libdist's own: a collected language can hand out none from any thread */
%include <dist/types.h>

%include "dist_names.i"

%{
/* This thread's latest error in one piece: the fields of dist_error_info in their order as text, and the message with
   its marks, each ended by a NUL. In one piece because a second native call may come from another thread (a goroutine moves), and
   would read that one's error. */
static std::string dist_swig_error(dist_status status) {
  const dist_swig::Error error;
  const dist_error_info &info = error.info;
  std::string record;
  for (long long number : {(long long)status, (long long)info.worker, (long long)info.replica,
                           (long long)info.collective, (long long)info.group, (long long)info.sequence}) {
    record += std::to_string(number);
    record += '\0';
  }
  for (const std::string &text : {error.message, std::string(info.tag ? info.tag : ""), error.expected, error.received,
                                  error.hint, std::to_string(info.logical_device), error.function, error.parameter,
                                  std::string(info.message ? info.message : "")}) {
    record += text;
    record += '\0';
  }
  return record;
}
%}

/* ---- 2. Tensors, texts ------------------------------------------------------------------------------------ */
%{
namespace dist_swig {

static int64_t number(const void *pointer) { return (int64_t)(intptr_t)pointer; }
static void *pointer(int64_t number) { return (void *)(intptr_t)number; }

/* Tensors as numbers, one after another: address, dtype, ndim, 1 where strides follow (else 0), shape[ndim],
   strides[ndim]. No numbers are NULL. The views point into the numbers, which the caller keeps. */
class Tensors {
 public:
  Tensors() : data_(nullptr), size_(0) {}
  Tensors(const Tensors &) = delete;
  Tensors &operator=(const Tensors &) = delete;

  /* The tensors; of numbers that are not of that form one that libdist refuses. */
  dist_tensor *unpack(const int64_t *numbers, size_t count) {
    for (size_t at = 0; at < count;) {
      if (count - at < 4) return refused();
      const int64_t ndim = numbers[at + 2], strided = numbers[at + 3];
      if (ndim < 0 || ndim > DIST_MAX_NDIM) return refused();
      const int64_t sizes = strided ? 2 * ndim : ndim;
      if ((int64_t)(count - at - 4) < sizes) return refused();
      const int64_t *const shape = numbers + at + 4;
      const dist_tensor view = {pointer(numbers[at]), (dist_dtype)numbers[at + 1], (int32_t)ndim,
                                ndim ? shape : nullptr, strided ? shape + ndim : nullptr};
      add(view);
      at += 4 + (size_t)sizes;
    }
    return data_;
  }

 private:
  dist_tensor *refused() {
    const dist_tensor no_dtype = {};
    few_[0] = no_dtype;
    return few_;
  }
  void add(const dist_tensor &view) {
    if (size_ < kFew) {
      few_[size_++] = view;
      data_ = few_;
      return;
    }
    if (size_ == kFew) many_.assign(few_, few_ + kFew);
    many_.push_back(view);
    data_ = many_.data();
    size_++;
  }

  enum { kFew = 4 };
  dist_tensor few_[kFew];
  std::vector<dist_tensor> many_;
  dist_tensor *data_;
  size_t size_;
};

/* The other way round: room for one tensor's numbers. */
enum { kTensorNumbers = 4 + 2 * DIST_MAX_NDIM };
static void pack(const dist_tensor &tensor, int64_t (&numbers)[kTensorNumbers]) {
  numbers[0] = number(tensor.data);
  numbers[1] = tensor.dtype;
  numbers[2] = tensor.ndim;
  numbers[3] = tensor.strides != nullptr;
  for (int32_t d = 0; d < tensor.ndim; d++) {
    numbers[4 + d] = tensor.shape[d];
    if (tensor.strides) numbers[4 + tensor.ndim + d] = tensor.strides[d];
  }
}

static dist_collective_options quick_options(const char *tag, int64_t timeout_ns) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = tag && *tag ? tag : nullptr;
  options.timeout_ns = timeout_ns;
  return options;
}

}  // namespace dist_swig
%}

/* ---- 3. How arguments look in the language ------------------------------------------------------------------ */
#if defined(SWIGGO)
%include "dist_go.i"
#elif defined(SWIGJAVA)
%include "dist_java.i"
#elif defined(SWIGPYTHON)
%include "dist_python.i"
#endif
%apply int32_t { enum SWIGTYPE };

/* ---- 4. Calls back into the language ------------------------------------------------------------------------ */
%include "dist_callbacks.i"

/* ---- 5. Options: structs that keep what they point to -------------------------------------------------------- */
%include "dist_options.i"

/* ---- 6. The headers ---------------------------------------------------------------------------------------------- */
%ignore dist_last_error;      /* the error crosses with the status that it belongs to */
%ignore dist_last_error_info;
%ignore dist_last_error_marked;
%ignore dist_error_info;
%ignore dist_value_context;   /* Callbacks::value() */
%ignore dist_update_place;    /* Callbacks::update() */
%ignore dist_rpc_context;     /* Callbacks::method() */
%ignore dist_cross_device_functions; /* dist_cross_device_options.set_functions() */
%ignore dist_cross_device_functions_init;
%ignore dist_strategy_functions; /* dist_strategy_options.set_functions() */
%ignore dist_strategy_functions_init;
%ignore dist_executor; /* dist_strategy_options.set_executor() */
%ignore dist_executor_init;
%ignore dist_destination; /* Destinations */
%ignore dist_straggler;   /* Stragglers */
%ignore dist_strategy_stragglers;
%ignore dist_mesh_axis;   /* dist_strategy_options.set_axes() */
%ignore dist_split_to_logical_devices; /* split_to_logical_devices() */
%ignore dist_topology_mesh_shape; /* Numbers */
%ignore dist_topology_device_coordinates;
%ignore dist_topology_missing_devices;
%ignore dist_device_assignment_core_assignment;
%ignore dist_device_assignment_coordinates;
%ignore dist_device_assignment_lookup_replicas;
%ignore dist_partition_shard;
%ignore dist_value_shard;
%ignore dist_device_coordinates;
%ignore dist_topology_explain; /* Text */
%ignore dist_strategy_explain;
%ignore dist_dataset_explain;
%ignore dist_value_describe;
%ignore dist_variable_describe;
%ignore dist_strategy_write_trace;
%ignore dist_strategy_write_metrics;
%ignore dist_coordinator_write_trace;
%ignore dist_server_write_trace;
%include <dist/error.h>
%include <dist/strategy.h>
%include <dist/budget.h>
%include <dist/workers.h>
%include <dist/run.h>
%include <dist/collective.h>
%include <dist/work.h>
%include <dist/serve.h>
%include <dist/batch.h>
%include <dist/version.h>
%include <dist/value.h>
%include <dist/variable.h>
%include <dist/cross_replica.h>
%include <dist/dataset.h>
%include <dist/inspect.h>
%include <dist/metric.h>
%include <dist/scope.h>
%include <dist/tf.h>
%include <dist/checkpoint.h>
%include <dist/experimental/preemption.h>
%include <dist/experimental/rpc.h>
%include <dist/experimental/server.h>
%include <dist/experimental/coordinator.h>
%include <dist/topology.h>
%include <dist/mesh.h>

/* ---- 7. What the headers have in another form -------------------------------------------------------------------- */
%{
namespace dist_swig {

static void append(const char *text, size_t size_bytes, void *out) {
  static_cast<std::string *>(out)->append(text, size_bytes);
}
static void append_line(const char *text, size_t size_bytes, void *out) {
  static_cast<std::string *>(out)->append(text, size_bytes).push_back('\n');
}

}  // namespace dist_swig
%}
%inline %{
/** For a function that failed by itself: `text` becomes what the peers' report says. Returns `status`. */
static int32_t fail(int32_t status, const char *text) {
  std::string own; /* the program's text has no marks, whatever it is */
  for (; *text; ++text) *text == '\x0E' ? own += "\\x0e" : *text == '\x0F' ? own += "\\x0f" : own += *text;
  return dist_fail(status, own.c_str());
}

/** For a function that ends with what libdist told it: that report stays this thread's latest error, fields and
    all, unless it was told to another thread. `text` is the message with its marks. Returns `status`. */
static int32_t fail_as_told(int32_t status, const char *text) {
  dist_error_info info = DIST_ERROR_INFO_INIT;
  const bool same = dist_last_error_marked(&info) == DIST_OK && std::strcmp(info.message, text) == 0;
  return same ? status : dist_fail(status, text);
}

/** The text with marks (dist_last_error_marked()) in this language's words. It is valid until the thread's next call. */
static const char *own_words(const char *marked) {
  thread_local std::string text;
  text = dist_swig::own_words(marked, "");
  return text.c_str();
}

/** Positional arguments for a call of another process's: a tuple of the items, by the calling thread's strategy. */
static dist_status rpc_arguments(dist_value *const *items, size_t n, dist_value **out_arguments) {
  return dist_value_create_tuple(dist_get_strategy(), items, n, out_arguments);
}

/** Gathers what functions with a dist_text_fn write. */
class Text {
 public:
  const char *text() const { return text_.c_str(); }
  dist_status explain(dist_strategy *strategy) { return dist_strategy_explain(strategy, dist_swig::append, &text_); }
  dist_status explain_dataset(dist_dataset *dataset) {
    return dist_dataset_explain(dataset, dist_swig::append, &text_);
  }
  dist_status explain_topology(const dist_topology *topology) {
    return dist_topology_explain(topology, dist_swig::append, &text_);
  }
  dist_status describe_value(const dist_value *value) {
    return dist_value_describe(value, dist_swig::append, &text_);
  }
  dist_status describe_variable(const dist_variable *variable) {
    return dist_variable_describe(variable, dist_swig::append, &text_);
  }
  dist_status write_trace(dist_strategy *strategy) {
    return dist_strategy_write_trace(strategy, dist_swig::append, &text_);
  }
  dist_status write_coordinator_trace(const dist_coordinator *coordinator) {
    return dist_coordinator_write_trace(coordinator, dist_swig::append, &text_);
  }
  dist_status write_server_trace(dist_server *server) {
    return dist_server_write_trace(server, dist_swig::append, &text_);
  }
  dist_status write_metrics(dist_strategy *strategy, const char *name) {
    return dist_strategy_write_metrics(strategy, name && *name ? name : nullptr, dist_swig::append, &text_);
  }
  dist_status explain_cluster(const dist_cluster_resolver *resolver) {
    return dist_cluster_explain(resolver, dist_swig::append, &text_);
  }
  /* a line each */
  dist_status expand_host_list(const char *host_list) {
    return dist_slurm_expand_host_list(host_list, dist_swig::append_line, &text_);
  }

 private:
  std::string text_;
};

/** The rows of dist_strategy_stragglers(). */
class Stragglers {
 public:
  dist_status read(dist_strategy *strategy) {
    size_t n = 0;
    dist_status status = dist_strategy_stragglers(strategy, nullptr, sizeof(dist_straggler), 0, &n);
    if (status != DIST_OK) return status;
    rows_.resize(n);
    status = dist_strategy_stragglers(strategy, rows_.data(), sizeof(dist_straggler), n, &n);
    if (status == DIST_OK && n < rows_.size()) rows_.resize(n);
    return status;
  }
  int64_t size() const { return (int64_t)rows_.size(); }
  int32_t collective(int64_t row) const { return rows_.at((size_t)row).collective; }
  int32_t group(int64_t row) const { return rows_.at((size_t)row).group; }
  int32_t replica(int64_t row) const { return rows_.at((size_t)row).replica; }
  int32_t worker(int64_t row) const { return rows_.at((size_t)row).worker; }
  int64_t rounds(int64_t row) const { return rows_.at((size_t)row).rounds; }
  int64_t times_last(int64_t row) const { return rows_.at((size_t)row).times_last; }
  int64_t mean_late_ns(int64_t row) const { return rows_.at((size_t)row).mean_late_ns; }
  int64_t max_late_ns(int64_t row) const { return rows_.at((size_t)row).max_late_ns; }
  const char *tag(int64_t row) const { return rows_.at((size_t)row).tag; }

 private:
  std::vector<dist_straggler> rows_;
};

/** The numbers of what C gives as an array; each method replaces those of the one before. */
class Numbers {
 public:
  int64_t size() const { return (int64_t)numbers_.size(); }
  int64_t at(int64_t index) const { return numbers_.at((size_t)index); }

  void topology_mesh_shape(const dist_topology *topology) {
    assign(dist_topology_mesh_shape(topology), (size_t)dist_topology_mesh_rank(topology));
  }
  void topology_device_coordinates(const dist_topology *topology) {
    assign(dist_topology_device_coordinates(topology),
           (size_t)dist_topology_num_tasks(topology) * (size_t)dist_topology_num_devices_per_task(topology) *
               (size_t)dist_topology_mesh_rank(topology));
  }
  void topology_missing_devices(const dist_topology *topology) {
    assign(dist_topology_missing_devices(topology),
           dist_topology_num_missing_devices(topology) * (size_t)dist_topology_mesh_rank(topology));
  }
  void device_assignment_core_assignment(const dist_device_assignment *assignment) {
    assign(dist_device_assignment_core_assignment(assignment),
           (size_t)dist_device_assignment_num_replicas(assignment) *
               (size_t)dist_device_assignment_num_logical_devices(assignment) * rank_of(assignment));
  }
  dist_status device_assignment_coordinates(const dist_device_assignment *assignment, int32_t replica,
                                            int32_t logical_device) {
    std::vector<int32_t> coordinates(rank_of(assignment));
    const dist_status status =
        dist_device_assignment_coordinates(assignment, replica, logical_device, coordinates.data());
    assign(coordinates.data(), status == DIST_OK ? coordinates.size() : 0);
    return status;
  }
  dist_status device_assignment_lookup_replicas(const dist_device_assignment *assignment, int32_t task,
                                                int32_t logical_device) {
    std::vector<int32_t> replicas((size_t)dist_device_assignment_num_replicas(assignment));
    size_t n = 0;
    const dist_status status = dist_device_assignment_lookup_replicas(assignment, task, logical_device,
                                                                      replicas.data(), replicas.size(), &n);
    assign(replicas.data(), status == DIST_OK ? n : 0);
    return status;
  }
  /* of dist_value_partition() */
  void partition_shape(const dist_partition *partition) { assign(partition->shape, partition->ndim); }
  void partition_dimensions(const dist_partition *partition) {
    assign(partition->dimensions, partition->num_dimensions);
  }
  /* tile[ndim], begin[ndim], size[ndim], the number of elements */
  dist_status partition_shard(const dist_partition *partition, int32_t logical_device) {
    const size_t ndim = partition ? partition->ndim : 0;
    std::vector<int64_t> all(3 * ndim + 1);
    const dist_status status = dist_partition_shard(partition, logical_device, all.data(), all.data() + ndim,
                                                    all.data() + 2 * ndim, &all.back());
    assign(all.data(), status == DIST_OK ? all.size() : 0);
    return status;
  }
  /* begin[ndim] */
  dist_status value_shard(const dist_value *value, int32_t logical_device, dist_tensor *out_tensor) {
    int64_t begin[DIST_MAX_NDIM] = {0};
    const dist_status status = dist_value_shard(value, logical_device, begin, out_tensor);
    assign(begin, status == DIST_OK ? (size_t)out_tensor->ndim : 0);
    return status;
  }
  dist_status device_coordinates(dist_replica *device) {
    const dist_device_assignment *const assignment =
        dist_strategy_device_assignment(dist_replica_strategy(device));
    std::vector<int32_t> coordinates(assignment ? rank_of(assignment) : 1);
    const dist_status status = dist_device_coordinates(device, coordinates.data());
    assign(coordinates.data(), status == DIST_OK ? coordinates.size() : 0);
    return status;
  }

 private:
  static size_t rank_of(const dist_device_assignment *assignment) {
    return (size_t)dist_topology_mesh_rank(dist_device_assignment_topology(assignment));
  }
  template <class Number> void assign(const Number *numbers, size_t n) {
    numbers_.assign(numbers, numbers + (numbers ? n : 0));
  }

  std::vector<int64_t> numbers_;
};

/** dist_split_to_logical_devices(), with the type that SWIG takes for int64_t. */
static dist_status split_to_logical_devices(dist_replica *replica, dist_value *value, const long long *numbers,
                                            size_t n, const dist_split_options *options, dist_value **out_value) {
  const std::vector<int64_t> dimensions(numbers, numbers + n);
  return dist_split_to_logical_devices(replica, value, dimensions.data(), n, options, out_value);
}

/** Tensor `index` behind an address that Callbacks was given, as numbers (section 2). */
static void tensor_at(int64_t tensors, int64_t index, dist_tensor *out_tensor) {
  *out_tensor = static_cast<const dist_tensor *>(dist_swig::pointer(tensors))[index];
}

/** Writes number `index` behind an address that Callbacks was given. */
static void set_number_at(int64_t numbers, int64_t index, int64_t number) {
  static_cast<int64_t *>(dist_swig::pointer(numbers))[index] = number;
}

/** A list of dist_destination; each names one of the three. */
class Destinations {
 public:
  void add(dist_variable *variable, dist_value *value, const char *device) {
    devices_.push_back(device ? device : "");
    const dist_destination destination = {variable, value, device ? devices_.back().c_str() : nullptr};
    all_.push_back(destination);
#ifdef SWIGPYTHON
    if (variable) held_.emplace_back(variable);
#endif
  }
  /* 0 where there are none */
  const dist_destination *get() const { return all_.empty() ? nullptr : all_.data(); }

 private:
  std::deque<std::string> devices_;
  std::vector<dist_destination> all_;
#ifdef SWIGPYTHON
  std::deque<dist_swig::Held> held_;
#endif
};

/* The form of the calls that programs make step after step: one row-major tensor of one dimension, in place, and
   of the options the two that are common. `tag` "" is none. */
static dist_status quick_all_reduce(dist_replica *replica, dist_reduce_op op, dist_dtype dtype, void *data, int64_t count,
                                    const char *tag, int64_t timeout_ns) {
  dist_tensor tensor = {data, dtype, 1, &count, nullptr};
  const dist_collective_options options = dist_swig::quick_options(tag, timeout_ns);
  return dist_all_reduce(replica, op, &tensor, &tensor, 1, &options, NULL);
}
static dist_status quick_broadcast(dist_replica *replica, int32_t root, dist_dtype dtype, void *data, int64_t count,
                                   const char *tag, int64_t timeout_ns) {
  dist_tensor tensor = {data, dtype, 1, &count, nullptr};
  const dist_collective_options options = dist_swig::quick_options(tag, timeout_ns);
  return dist_broadcast(replica, root, &tensor, &tensor, 1, &options, NULL);
}
static dist_status run_until(dist_strategy *strategy, dist_replica_fn fn, void *user_data, dist_cancel *cancel) {
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.cancel = cancel;
  return dist_run(strategy, fn, user_data, &options);
}
static dist_status quick_barrier(dist_replica *replica, const char *tag, int64_t timeout_ns) {
  const dist_collective_options options = dist_swig::quick_options(tag, timeout_ns);
  return dist_barrier(replica, &options, NULL);
}
%}
