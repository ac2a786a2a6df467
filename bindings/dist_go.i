/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_go.i: how arguments look in Go. Handles are int64, arrays are slices, out parameters are pointers and
 * slices that the caller made. A function that returns a status returns an `error`, made in the same native call.
 * Memory of Go's is passed without a copy, for the time of the call.
 */
%insert(cgo_comment) %{
// cgo learns what a name is from the compiler's errors about statements that contain __cgo_undefined__2. If that is
// not declared, GCC searches all names for a similar one, 3 ms for each function here.
extern _gostring_ __cgo_undefined__2;
#cgo pkg-config: dist
#cgo CFLAGS: -g0
#cgo CXXFLAGS: -O1 -g0
%}

/* ---- Statuses ------------------------------------------------------------------------------------------------- */
%insert(go_wrapper) %{
// StatusError is a status that is not OK: the record of dist_swig_error() in dist.i.
type StatusError struct{ Record string }

func (e *StatusError) Error() string { return e.Record }
%}
%typemap(gotype) dist_status "error"
%typemap(imtype) dist_status "string"
%{
static _gostring_ dist_swig_report(dist_status status) {
  if (status == DIST_OK) return _gostring_{nullptr, 0};
  const std::string record = dist_swig_error(status);
  return Swig_AllocateString(record.data(), record.size());
}
%}
%typemap(out) dist_status %{ $result = dist_swig_report($1); %}
%typemap(goout) dist_status %{
	if $1 != "" {
		$result = &StatusError{swigCopyString($1)}
	}
%}
%typemap(gotype) dist_status status "int"
%typemap(imtype) dist_status status "int"
%typemap(in) dist_status status %{ $1 = (dist_status)$input; %}

/* What C code of the program's says, on the thread that it ran on. */
%inline %{
/** The report of a status that C code has just given on this thread; one without words gets some. */
static dist_status told(int32_t status) {
  dist_error_info info = DIST_ERROR_INFO_INIT;
  if (status == DIST_OK || (dist_last_error_marked(&info) == DIST_OK && info.code == status)) return status;
  return dist_fail(status, "C code gave this status, and did not say why");
}
%}

/* ---- Callbacks --------------------------------------------------------------------------------------------------- */
/* The one director of type Callbacks. generate.sh makes SWIG's callbacks use this variable. SWIG's own code looks the
   director up in a map under a mutex, and replicas that begin at the same time would wait for each other. */
%go_import("sync/atomic")
%insert(go_wrapper) %{
var theCallbacks atomic.Pointer[_swig_DirectorCallbacks]

// SetCallbacks makes libdist call the methods of v. It must be called once, before any other function.
func SetCallbacks(v interface{}) {
	director := NewDirectorCallbacks(v).(*_swig_DirectorCallbacks)
	theCallbacks.Store(director)
	Set_callbacks(director)
}
%}

/* ---- Handles and tokens ------------------------------------------------------------------------------------------ */
%define %dist_handle(TYPE)
%typemap(gotype) TYPE * "int64"
%typemap(imtype) TYPE * "int64"
%typemap(in) TYPE * %{ $1 = ($1_ltype)dist_swig::pointer($input); %}
%typemap(out) TYPE * %{ $result = dist_swig::number($1); %}
/* a list of them; out_values is one that is written */
%typemap(gotype) TYPE *const * "[]int64"
%typemap(in) TYPE *const * %{ $1 = ($1_ltype)$input.array; %}
%typemap(gotype) TYPE ** "*int64"
%typemap(in) TYPE ** %{ $1 = ($1_ltype)$input; %}
%enddef
%dist_handle(dist_strategy)
%dist_handle(dist_replica)
%dist_handle(dist_group)
%dist_handle(dist_work)
%dist_handle(dist_request)
%dist_handle(dist_completions)
%dist_handle(dist_batcher)
%dist_handle(dist_batch)
%dist_handle(dist_versions)
%dist_handle(dist_cancel)
%dist_handle(dist_value)
%dist_handle(dist_variable)
%dist_handle(dist_dataset)
%dist_handle(dist_iterator)
%dist_handle(dist_cross_device)
%dist_handle(dist_cluster_resolver)
%dist_handle(dist_network)
%dist_handle(dist_budget)
%dist_handle(dist_metric)
%dist_handle(dist_checkpoint)
%dist_handle(dist_preemption_handler)
%dist_handle(dist_rpc_server)
%dist_handle(dist_rpc_client)
%dist_handle(dist_remote_value)
%dist_handle(dist_server)
%dist_handle(dist_closure)
%dist_handle(dist_coordinator)
%dist_handle(dist_topology)
%dist_handle(dist_device_assignment)
%dist_handle(struct DLManagedTensor)
%apply dist_value *const * { dist_value **out_values };
%apply dist_value ** { void ** };
%apply dist_value * { void * }; /* dist_value_object(): a token */

%define %dist_token(PATTERN, CODE...)
%typemap(gotype) PATTERN "int64"
%typemap(imtype) PATTERN "int64"
%typemap(in) PATTERN { const int64_t token = $input; CODE }
%enddef

/* ---- Numbers ------------------------------------------------------------------------------------------------------ */
%define %dist_numbers(TYPE, GO)
%typemap(gotype) const TYPE * "[]GO"
%typemap(in) const TYPE * %{ $1 = ($1_ltype)$input.array; %}
%typemap(gotype) TYPE * "*GO"
%typemap(in) TYPE * %{ $1 = ($1_ltype)$input; %}
%enddef
%dist_numbers(int32_t, int32)
%dist_numbers(int64_t, int64)
%dist_numbers(double, float64)
%typemap(gotype) size_t * "*uint64"
%typemap(in) size_t * %{ $1 = ($1_ltype)$input; %}
%apply int32_t * { dist_reduce_op *out_op, dist_preemption_state *out_state };
%apply const int64_t * { int64_t *out_sizes, const long long * };

/* ---- Tensors and memory --------------------------------------------------------------------------------------------- */
%typemap(gotype) dist_tensor * "[]int64"
%typemap(in) dist_tensor * (dist_swig::Tensors tensors) %{
  $1 = tensors.unpack((const int64_t *)$input.array, (size_t)$input.len);
%}
/* one that is written: room for dist_swig::kTensorNumbers */
%typemap(gotype) (dist_tensor *out_tensor), (dist_tensor *out_spec) "[]int64"
%typemap(in) dist_tensor *out_tensor (dist_tensor view), dist_tensor *out_spec (dist_tensor view) %{
  view = dist_tensor();
  $1 = &view;
%}
%typemap(argout) dist_tensor *out_tensor, dist_tensor *out_spec %{
  {
    int64_t numbers[dist_swig::kTensorNumbers] = {0};
    dist_swig::pack(view$argnum, numbers);
    std::memcpy($input.array, numbers, sizeof numbers);
  }
%}
%typemap(gotype) void *data "[]byte"
%typemap(imtype) void *data "[]byte"
%typemap(in) void *data %{ $1 = $input.array; %}

/* ---- Texts ------------------------------------------------------------------------------------------------------------ */
/* In: short ones without malloc. */
%typemap(in) const char * (std::string text) %{
  text.assign($input.p, (size_t)$input.n);
  $1 = &text[0];
%}
%typemap(freearg) const char * ""
/* A destination's device, and the job in a device's name: none is NULL. */
%typemap(in) const char *device (std::string text), const char *job (std::string text) %{
  text.assign($input.p, (size_t)$input.n);
  $1 = text.empty() ? nullptr : &text[0];
%}
/* Lists: as one text, in which each has its NUL, for Go's pointers must not lead to Go's pointers. */
%insert(go_wrapper) %{
func swigTexts(texts []string) string {
	var all []byte
	for _, text := range texts {
		for i := 0; i < len(text) && text[i] != 0; i++ {
			all = append(all, text[i])
		}
		all = append(all, 0)
	}
	return string(all)
}
%}
%typemap(gotype) const char *const * "[]string"
%typemap(imtype) const char *const * "string"
%typemap(goin) const char *const * %{
	$result = swigTexts($input)
%}
%typemap(in) const char *const * (std::string texts, std::vector<const char *> pointers) %{
  texts.assign($input.p, (size_t)$input.n);
  for (size_t at = 0; at < texts.size(); at += std::strlen(&texts[at]) + 1) pointers.push_back(&texts[at]);
  $1 = ($1_ltype)(pointers.empty() ? nullptr : pointers.data());
%}
%typemap(freearg) const char *const * ""
/* Out: one that a library's object owns, and one that is written into bytes. */
%typemap(gotype) const char ** "*string"
%typemap(in) const char ** (char *text) %{
  text = nullptr;
  $1 = ($1_ltype)&text;
%}
%typemap(argout) const char ** %{
  if (text$argnum) *$input = Swig_AllocateString(text$argnum, std::strlen(text$argnum));
%}
%typemap(goargout) const char ** %{
	if *$input != "" {
		*$input = swigCopyString(*$input)
	}
%}
%typemap(gotype) char *out_name, char *out_text "[]byte"
%typemap(in) char *out_name, char *out_text %{ $1 = ($1_ltype)$input.array; %}
%typemap(freearg) char *out_name, char *out_text ""

/* ---- Memory ------------------------------------------------------------------------------------------------------------ */
/* Go's collector is told how much memory there is: strategies and cross-device operations get an allocator that counts,
   and is else what libdist takes by itself. */
%{
#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace dist_swig {

static std::atomic<int64_t> memory_held{0};

static void *counting_alloc(size_t size_bytes, size_t align_bytes, void *) {
  void *memory = nullptr;
  if (posix_memalign(&memory, std::max(align_bytes, sizeof(void *)), size_bytes) != 0) return nullptr;
  memory_held.fetch_add((int64_t)size_bytes, std::memory_order_relaxed);
  return memory;
}
static void counting_free(void *memory, size_t size_bytes, size_t, void *) {
  memory_held.fetch_sub((int64_t)size_bytes, std::memory_order_relaxed);
  std::free(memory);
}
static const dist_allocator counting = {counting_alloc, counting_free, nullptr};

}  // namespace dist_swig
%}
%inline %{
/** The address of the number of bytes that libdist holds. */
static int64_t memory_counter() { return dist_swig::number(&dist_swig::memory_held); }
%}
%extend dist_strategy_options {
  void count_memory() { dist_swig::parts($self)->host_part.allocator = dist_swig::counting; }
};
%extend dist_cross_device_options {
  void count_memory() { $self->allocator = dist_swig::counting; }
};
%extend dist_network_options {
  void count_memory() { $self->allocator = dist_swig::counting; }
};
%extend dist_rpc_server_options {
  void count_memory() { $self->allocator = dist_swig::counting; }
};
%extend dist_rpc_client_options {
  void count_memory() { $self->allocator = dist_swig::counting; }
};
%extend dist_server_options {
  void count_memory() { $self->allocator = dist_swig::counting; }
};
