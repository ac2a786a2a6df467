/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_python.i: how arguments look in Python. Handles are ints, out parameters are results, a status that is not
 * DIST_OK is an exception, made in the same native call. Tensors are what exports a buffer, or tuples of numbers.
 *
 * The GIL is given up in every call, so that whoever waits keeps nobody from computing, but for those under
 * "Calls that keep the GIL": they are over at once, and giving it up would let another thread have it for 5 ms.
 */
%{
#include <exception>
#include <limits>
%}

%rename(pass_) dist_position::pass; /* a word of Python's */

/* A net below the package's own `except`: Ctrl-C may come between two of its lines. It is sent once more, to be seen
   by the caller; whatever else there is goes to sys.unraisablehook. */
%{
static dist_status dist_swig_escaped() {
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
    PyErr_Clear();
    PyErr_SetInterrupt();
    return dist_fail(DIST_CANCELLED, "interrupted");
  }
  PyErr_WriteUnraisable(nullptr);
  return dist_fail(DIST_UNKNOWN, "an exception escaped from libdist's Python package");
}
%}
%define %dist_net(RESULT, METHOD)
%feature("director:except") Callbacks::METHOD {
  if ($error) return RESULT;
}
%enddef
%dist_net(dist_swig_escaped(), replica)
%dist_net(dist_swig_escaped(), reduce_components)
%dist_net(dist_swig_escaped(), broadcast_copies)
%dist_net(dist_swig_escaped(), gather_components)
%dist_net(-dist_swig_escaped(), values)
%dist_net(-dist_swig_escaped(), merge)
%dist_net(-dist_swig_escaped(), update)
%dist_net(-dist_swig_escaped(), source)
%dist_net(-dist_swig_escaped(), file_source)
%dist_net(-dist_swig_escaped(), dataset)
%dist_net(-dist_swig_escaped(), dataset_reduce)
%dist_net(-dist_swig_escaped(), value)
%dist_net(-dist_swig_escaped(), initial)
%dist_net(-dist_swig_escaped(), method)
%dist_net(-dist_swig_escaped(), closure)
%dist_net(-dist_swig_escaped(), create_state)
%dist_net((void)dist_swig_escaped(), destroy_state)
%dist_net(dist_swig_escaped(), warm_up)
%dist_net(dist_swig_escaped(), step)
%dist_net(dist_swig_escaped(), update_variables)
%dist_net(dist_swig_escaped(), partition)
%dist_net((void)dist_swig_escaped(), loop)
%dist_net((void)dist_swig_escaped(), reduce)
%dist_net((void)dist_swig_escaped(), apply)
%dist_net((void)dist_swig_escaped(), log)
%dist_net((void)dist_swig_escaped(), release)

/* ---- Statuses ---------------------------------------------------------------------------------------------------- */
%{
static PyObject *dist_swig_error_factory; /* takes the record of dist_swig_error(), gives the exception */

static void dist_swig_raise(dist_status status) {
  const std::string record = dist_swig_error(status);
  PyObject *const error = PyObject_CallFunction(dist_swig_error_factory, "y#", record.data(), (Py_ssize_t)record.size());
  if (!error) return;
  PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  Py_DECREF(error);
}
%}
%typemap(out) dist_status %{
  if ($1 != DIST_OK) {
    dist_swig_raise($1);
    SWIG_fail;
  }
  $result = SWIG_Py_Void();
%}
%typemap(in) dist_status status %{
  $1 = (dist_status)PyLong_AsLong($input);
  if (PyErr_Occurred()) SWIG_fail;
%}

/* ---- Handles and tokens -------------------------------------------------------------------------------------------- */
%{
namespace dist_swig {

/* Adds an output parameter to the results of a call. None, the result of a call that has no other, is replaced. */
static PyObject *append_output(PyObject *results, PyObject *output) {
#if SWIG_VERSION >= 0x040300
  return SWIG_Python_AppendOutput(results, output, 1);
#else
  return SWIG_Python_AppendOutput(results, output);
#endif
}

/* A number of Python's, where C's type can hold it. `name` is the option or the argument, as C and Python call it. */
static bool number_of(PyObject *object, const char *, double *out) {
  *out = PyFloat_AsDouble(object);
  return !PyErr_Occurred();
}
template <class Number> bool number_of(PyObject *object, const char *name, Number *out) {
  typedef std::numeric_limits<std::conditional_t<std::is_enum_v<Number>, int32_t, Number>> Limits;
  PyObject *const whole = PyNumber_Index(object);
  if (!whole) {
    PyErr_Format(PyExc_TypeError, "%s is a %s: an int is needed", name, Py_TYPE(object)->tp_name);
    return false;
  }
  int beyond = 0;
  const long long number = PyLong_AsLongLongAndOverflow(whole, &beyond);
  const bool large = beyond > 0 && !Limits::is_signed; /* fits maybe, though it has the highest of 64 bits */
  const unsigned long long natural = large ? PyLong_AsUnsignedLongLong(whole) : (unsigned long long)number;
  bool fits = !beyond && number >= (long long)Limits::min() && (number < 0 || natural <= Limits::max());
  if (large) fits = !PyErr_Occurred();
  PyErr_Clear();
  *out = (Number)natural;
  if (!fits) {
    PyErr_Format(PyExc_OverflowError, "%s is %R: it has to be from %lld to %llu", name, whole, (long long)Limits::min(),
                 (unsigned long long)Limits::max());
  }
  Py_DECREF(whole);
  return fits;
}

/* The items of a Python sequence, as numbers. */
template <class Number> bool numbers_of(PyObject *sequence, const char *name, std::vector<Number> *out) {
  PyObject *const items = PySequence_Fast(sequence, "a sequence of numbers is needed");
  if (!items) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
  out->reserve((size_t)n + 1); /* an empty list is not None */
  bool fit = true;
  for (Py_ssize_t i = 0; i < n && fit; i++) {
    Number number = 0;
    fit = number_of(PySequence_Fast_GET_ITEM(items, i), name, &number);
    out->push_back(number);
  }
  Py_DECREF(items);
  return fit;
}

}  // namespace dist_swig
%}
%define %dist_integer(PATTERN, CODE...)
%typemap(in) PATTERN {
  const int64_t number = (int64_t)PyLong_AsLongLong($input);
  if (number == -1 && PyErr_Occurred()) SWIG_fail;
  CODE
}
%enddef
%define %dist_handle(TYPE)
%dist_integer(TYPE *, $1 = ($1_ltype)dist_swig::pointer(number);)
%typemap(out) TYPE * %{ $result = PyLong_FromLongLong(dist_swig::number($1)); %}
%typemap(in) TYPE *const * (std::vector<int64_t> handles) %{
  if ($input != Py_None) {
    if (!dist_swig::numbers_of($input, "$1_name", &handles)) SWIG_fail;
    $1 = ($1_ltype)handles.data();
  }
%}
%typemap(argout) TYPE *const * ""
%typemap(in, numinputs=0) TYPE ** (TYPE *handle) %{
  handle = nullptr;
  $1 = &handle;
%}
%typemap(argout) TYPE ** %{
  $result = dist_swig::append_output($result, PyLong_FromLongLong(dist_swig::number(handle$argnum)));
%}
%enddef
%include "dist_python_handles.i"
%dist_handle(dist_replica)
%dist_handle(dist_completions)
%dist_handle(dist_batch)
%dist_handle(dist_value)
%dist_handle(dist_cluster_resolver)
%dist_handle(dist_network)
%dist_handle(dist_budget)
%dist_handle(dist_remote_value)
%dist_handle(dist_closure)
%dist_handle(dist_topology)
%dist_handle(dist_device_assignment)
%dist_handle(DLManagedTensor)
%apply dist_value * { void * }; /* dist_value_object(): a token */
%typemap(in, numinputs=0) void ** (void *handle) %{
  handle = nullptr;
  $1 = &handle;
%}
%typemap(argout) void ** %{
  $result = dist_swig::append_output($result, PyLong_FromLongLong(dist_swig::number(handle$argnum)));
%}

%define %dist_out_values(VALUES, OUT)
%typemap(argout) VALUES %{
  {
    PyObject *const list = PyList_New((Py_ssize_t)$1);
    for (size_t i = 0; list && i < $1; i++)
      PyList_SET_ITEM(list, (Py_ssize_t)i, PyLong_FromLongLong(dist_swig::number(OUT[i])));
    $result = dist_swig::append_output($result, list);
  }
%}
%enddef
%typemap(in) (size_t n, dist_value **out_values) (std::vector<dist_value *> values) %{
  $1 = PyLong_AsSize_t($input);
  if (PyErr_Occurred()) SWIG_fail;
  values.assign($1 + 1, nullptr);
  $2 = values.data();
%}
%dist_out_values((size_t n, dist_value **out_values), $2)

/* The options come beside the number: (n, options or None). */
%typemap(in) (size_t n, const dist_communication_options *options, dist_value **out_values)
             (std::vector<dist_value *> values, PyObject *given, Py_ssize_t number) %{
  if (!PyArg_ParseTuple($input, "nO", &number, &given)) SWIG_fail;
  if (!SWIG_IsOK(SWIG_ConvertPtr(given, (void **)&$2, $2_descriptor, 0))) {
    SWIG_exception_fail(SWIG_TypeError, "options: a dist_communication_options, or None");
  }
  $1 = (size_t)number;
  values.assign($1 + 1, nullptr);
  $3 = values.data();
%}
%dist_out_values((size_t n, const dist_communication_options *options, dist_value **out_values), $3)

%define %dist_token(PATTERN, CODE...)
%typemap(in) PATTERN {
  const int64_t token = (int64_t)PyLong_AsLongLong($input);
  if (token == -1 && PyErr_Occurred()) SWIG_fail;
  CODE
}
%enddef

/* ---- Numbers ---------------------------------------------------------------------------------------------------------- */
%define %dist_number(TYPE)
%typemap(in) TYPE %{
  if (!dist_swig::number_of($input, "$1_name", &$1)) SWIG_fail;
%}
%enddef
%dist_number(int32_t)
%dist_number(int64_t)
%dist_number(uint64_t)
%dist_number(size_t)
%dist_number(double)

%define %dist_numbers(TYPE, MAKE)
%typemap(in) const TYPE * (std::vector<$*1_ltype> numbers) %{
  if ($input != Py_None) {
    if (!dist_swig::numbers_of($input, "$1_name", &numbers)) SWIG_fail;
    $1 = numbers.data();
  }
%}
%typemap(argout) const TYPE * ""
%typemap(in, numinputs=0) TYPE * ($*1_ltype number) %{
  number = {};
  $1 = &number;
%}
%typemap(argout) TYPE * %{ $result = dist_swig::append_output($result, MAKE(number$argnum)); %}
%enddef
%dist_numbers(int32_t, PyLong_FromLong)
%dist_numbers(int64_t, PyLong_FromLongLong)
%dist_numbers(double, PyFloat_FromDouble)
%dist_numbers(size_t, PyLong_FromSize_t)
%apply int32_t * { dist_reduce_op *out_op, dist_preemption_state *out_state };
%apply const int64_t * { const long long * };

%typemap(in) (int64_t *out_sizes, size_t n) (std::vector<int64_t> sizes) %{
  $2 = PyLong_AsSize_t($input);
  if (PyErr_Occurred()) SWIG_fail;
  sizes.assign($2 + 1, 0);
  $1 = ($1_ltype)sizes.data();
%}
%typemap(argout) (int64_t *out_sizes, size_t n) %{
  {
    PyObject *const list = PyList_New((Py_ssize_t)$2);
    for (size_t i = 0; list && i < $2; i++) PyList_SET_ITEM(list, (Py_ssize_t)i, PyLong_FromLongLong($1[i]));
    $result = dist_swig::append_output($result, list);
  }
%}

/* ---- Texts ------------------------------------------------------------------------------------------------------------- */
%{
namespace dist_swig {

/* The UTF-8 of a str, which keeps it; no text for libdist holds a NUL. */
static bool text_of(PyObject *object, const char **out) {
  Py_ssize_t size = 0;
  const char *const text = PyUnicode_AsUTF8AndSize(object, &size);
  if (!text) return false;
  if (std::strlen(text) != (size_t)size) {
    PyErr_SetString(PyExc_ValueError, "embedded null character");
    return false;
  }
  *out = text;
  return true;
}

/* A tag that is too long is cut, maybe inside a letter. */
static PyObject *text_from(const char *text) {
  if (!text) return SWIG_Py_Void();
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)std::strlen(text), "replace");
}

}  // namespace dist_swig
%}
%typemap(in) const char * (const char *text) %{
  text = nullptr;
  if ($input != Py_None && !dist_swig::text_of($input, &text)) SWIG_fail;
  $1 = ($1_ltype)text;
%}
%typemap(freearg) const char * ""
%typemap(out) const char * %{ $result = dist_swig::text_from($1); %}
%typemap(directorin) const char * %{ $input = dist_swig::text_from($1); %}
%typemap(in) const char *const * (std::vector<const char *> texts) %{
  if ($input != Py_None) {
    const Py_ssize_t size = PySequence_Size($input);
    if (size < 0) SWIG_fail;
    for (Py_ssize_t i = 0; i < size; i++) {
      texts.push_back(nullptr);
      PyObject *const item = PySequence_GetItem($input, i);
      const bool is_text = item && dist_swig::text_of(item, &texts.back());
      Py_XDECREF(item); /* the sequence has it too */
      if (!is_text) SWIG_fail;
    }
    texts.push_back(nullptr);
    $1 = ($1_ltype)texts.data();
  }
%}
%typemap(in, numinputs=0) const char ** (char *text) %{
  text = nullptr;
  $1 = ($1_ltype)&text;
%}
%typemap(argout) const char ** %{
  $result = dist_swig::append_output($result, dist_swig::text_from(text$argnum));
%}
%typemap(in, numinputs=0) (char *out_text, size_t size_bytes) (char text[1024]) %{
  text[0] = 0;
  $1 = text;
  $2 = sizeof text;
%}
%typemap(argout) (char *out_text, size_t size_bytes) %{
  $result = dist_swig::append_output($result, dist_swig::text_from($1));
%}
%apply (char *out_text, size_t size_bytes) { (char *out_name, size_t size_bytes) };

/* ---- Calls that keep the GIL ----------------------------------------------------------------------------------------------- */
/* Before the files that define such functions: a feature concerns only what is declared after it. */
%define %dist_quick(NAME)
%feature("nothreadallow") NAME;
%enddef
%formacro(%dist_quick, fail, fail_as_told, tensor_at, set_number_at, set_callbacks, set_error_factory, finalize_here,
          dlpack_capsule, dlpack_managed, dlpack_taken)
%formacro(%dist_quick, dist_version, dist_has_feature, dist_status_name, dist_enum_name, dist_strategy_num_replicas,
          dist_strategy_kind_of, dist_replica_id, dist_replica_num_replicas, dist_replica_strategy, dist_group_size,
          dist_group_rank, dist_replica_version, dist_versions_latest)
%formacro(%dist_quick, dist_value_wrap_tensor, dist_value_create_per_replica, dist_value_create_mirrored,
          dist_value_create_list, dist_value_create_tuple, dist_value_create_dict, dist_value_create_none,
          dist_value_create_text, dist_value_wrap_object, dist_value_create_variable, dist_value_retain,
          dist_value_release, dist_value_kind_of, dist_value_size, dist_value_item, dist_value_key, dist_value_get,
          dist_value_tensor, dist_value_variable, dist_value_text, dist_value_object, dist_value_container,
          dist_value_from_dlpack, dist_value_to_dlpack)
%formacro(%dist_quick, dist_variable_name, dist_variable_class, dist_variable_synchronization,
          dist_variable_aggregation, dist_variable_num_copies, dist_variable_copy_name,
          dist_variable_component, dist_metric_kind_of, dist_metric_name, dist_metric_variable)
%formacro(%dist_quick, dist_closure_name, dist_closure_id, dist_closure_worker, dist_closure_cancel)
%formacro(%dist_quick, dist_scope_enter, dist_scope_exit, dist_set_strategy, dist_get_strategy, dist_has_strategy,
          dist_in_cross_replica_context, dist_get_replica, dist_colocate_enter, dist_colocate_exit)
%formacro(%dist_quick, dist_collective_options::dist_collective_options,
          dist_collective_options::~dist_collective_options, dist_collective_options::numerics,
          dist_collective_options::tag, dist_collective_options::timeout_ns, dist_collective_options::group,
          dist_collective_options::contributions, dist_collective_options::axis, dist_collective_options::planned,
          dist_collective_options::bytes_per_pack,
          dist_collective_options::set_weights, dist_collective_options::set_reduce,
          dist_collective_options::set_splits, dist_collective_options::begin_work, dist_collective_options::work)
%formacro(%dist_quick, dist_strategy_num_logical_devices, dist_strategy_device_assignment, dist_device_replica,
          dist_device_axis, dist_device_axis_group, split_to_logical_devices, dist_assign_to_logical_device,
          dist_replicate_to_logical_devices, dist_value_partition, dist_partition_check, dist_reshard_bytes)
%formacro(%dist_quick, Numbers::Numbers, Numbers::~Numbers, Numbers::size, Numbers::at, Numbers::topology_mesh_shape,
          Numbers::device_assignment_coordinates, Numbers::partition_shape, Numbers::partition_dimensions,
          Numbers::partition_shard, Numbers::value_shard, Numbers::device_coordinates)
%formacro(%dist_quick, dist_split_options::dist_split_options, dist_split_options::~dist_split_options,
          dist_split_options::uneven, dist_devices_options::dist_devices_options,
          dist_devices_options::~dist_devices_options, dist_devices_options::timeout_ns,
          dist_devices_options::add_result)
%formacro(%dist_quick, dist_partition::dist_partition, dist_partition::~dist_partition, dist_partition::kind,
          dist_partition::set_shape, dist_partition::set_dimensions, dist_partition::num_logical_devices,
          dist_partition::logical_device, dist_partition::uneven, dist_partition::spmd)
%formacro(%dist_quick, dist_halo::dist_halo, dist_halo::~dist_halo, dist_halo::set_parts, dist_halo::set_low,
          dist_halo::set_high, dist_halo::set_edges)
%formacro(%dist_quick, dist_topology_mesh_rank, dist_topology_num_tasks, dist_topology_num_devices_per_task,
          dist_topology_num_missing_devices, dist_topology_destroy, dist_device_assignment_topology,
          dist_device_assignment_num_replicas, dist_device_assignment_num_logical_devices,
          dist_device_assignment_destroy)

%include "dist_python_tensors.i"
%include "dist_python_threads.i"
