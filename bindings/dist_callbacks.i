/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_callbacks.i: calls back into the language. A part of dist.i.
 */
/* One object of the language takes all of them. `token` is what the language gave in place of a function and
 * its user_data; handles are integers. What a function hands over is its result: a handle, 0 for NULL, or the
 * negative of a status that is not DIST_OK, whose text dist_fail() has got on that thread. Nothing may unwind
 * out of it. */
%feature("director") Callbacks;
%inline %{
struct Callbacks {
  virtual ~Callbacks() {}
#if defined(SWIGPYTHON)
  virtual int32_t replica(int64_t token, int64_t replica) = 0;
#else
  /* id and num_replicas: the replica's, which the language would otherwise ask for in further calls */
  virtual int32_t replica(int64_t token, int64_t replica, int32_t id, int32_t num_replicas) = 0;
#endif
  virtual int64_t values(int64_t token, int64_t replica, int64_t args, int64_t kwargs) = 0;
  virtual int64_t merge(int64_t token, int64_t strategy, int64_t args, int64_t kwargs) = 0;
  /* copy: the address of a dist_tensor, for tensor_at(); 0 where there is none */
  virtual int64_t update(int64_t token, int32_t replica, const char *device, int64_t copy, int64_t args,
                         int64_t kwargs) = 0;
  virtual int64_t source(int64_t token, int64_t index) = 0;
  virtual int64_t file_source(int64_t token, int64_t file, const char *name, int64_t index) = 0;
  virtual int64_t dataset(int64_t token, int32_t num_pipelines, int32_t pipeline, int32_t num_replicas) = 0;
  virtual int64_t dataset_reduce(int64_t token, int64_t state, int64_t batch) = 0;
  virtual int64_t value(int64_t token, int32_t replica, int32_t num_replicas) = 0;
  virtual int64_t initial(int64_t token) = 0;
  /* cancel: a dist_cancel, there until the call is over */
  virtual int64_t method(int64_t token, const char *name, int64_t cancel, int64_t timeout_ns, int64_t args) = 0;
  /* closure: a dist_closure, there until the call is over */
  virtual int64_t closure(int64_t token, int64_t closure, int64_t args) = 0;
  /* of instances; a state is a number that is not 0 */
  virtual int64_t create_state(int64_t token, int64_t replica) = 0;
  virtual void destroy_state(int64_t token, int64_t state) = 0;
  virtual int32_t warm_up(int64_t token, int64_t replica) = 0;
  /* a step of a batcher's; batch: a dist_batch, there until the call is over */
  virtual int32_t step(int64_t token, int64_t replica, int64_t batch) = 0;
  /* of a parameter server; n tensors by tensor_at() */
  virtual int32_t update_variables(int64_t token, int64_t variables, int64_t n, int64_t args) = 0;
  /* spec by tensor_at(); partitions by set_number_at(), as many as it has dimensions */
  virtual int32_t partition(int64_t token, int64_t spec, int64_t partitions) = 0;
  virtual void loop(int64_t token, int64_t begin, int64_t end) = 0;
  /* addresses of `count` elements each */
  virtual void reduce(int64_t token, int64_t acc, int64_t in, int64_t count, int32_t dtype) = 0;
  /* a dist_block; `states` is the address of num_states addresses */
  virtual void apply(int64_t token, int64_t tensor, int64_t first, int64_t count, int32_t dtype, int64_t gradient,
                     int64_t parameter, int32_t num_states, int64_t states) = 0;
  /* of dist_cross_device_functions and dist_strategy_functions; tensors by tensor_at() */
  virtual int32_t reduce_components(int64_t token, int32_t op, int64_t components, int64_t n, int64_t out) = 0;
  virtual int32_t broadcast_copies(int64_t token, int64_t value, int64_t copies, int64_t n) = 0;
  virtual int32_t gather_components(int64_t token, int64_t components, int64_t n, int32_t axis, int64_t out) = 0;
  virtual void log(int64_t token, int32_t level, const char *message) = 0;
  /* of an executor: has run_task(task, task_data) called once, on any thread and at any time; not 0: it will not be */
  virtual int32_t execute(int64_t token, int64_t task, int64_t task_data) = 0;
  /* the library no longer uses what the token stands for */
  virtual void release(int64_t token) = 0;
};
%}
#if !defined(SWIGPYTHON)
%{
namespace dist_swig {

template <class Handle> Handle *handed(int64_t number) { return (Handle *)pointer(number); }

/* Every callback goes through call(), or through notify() if nothing depends on it. Python has its own versions,
   because its interpreter may have ended (dist_python.i). */
template <class Object, class Result, class... Parameters, class... Arguments>
Result call(Object *object, Result (Object::*method)(Parameters...), Arguments... arguments) {
  return (object->*method)(arguments...);
}
template <class Object, class... Parameters, class... Arguments>
void notify(Object *object, void (Object::*method)(Parameters...), Arguments... arguments) {
  (object->*method)(arguments...);
}

}  // namespace dist_swig
%}
#endif
%{
namespace dist_swig {

static Callbacks *callbacks; /* set once, before the first token is given away */

template <class Handle> dist_status hand_over(int64_t result, Handle **out) {
  if (result < 0) return (dist_status)-result;
  *out = handed<Handle>(result);
  return DIST_OK;
}

static dist_status on_replica(dist_replica *replica, void *token) {
#if defined(SWIGPYTHON)
  return call(callbacks, &Callbacks::replica, number(token), number(replica));
#else
  return call(callbacks, &Callbacks::replica, number(token), number(replica), dist_replica_id(replica),
              dist_replica_num_replicas(replica));
#endif
}
static dist_status on_values(dist_replica *replica, dist_value *args, dist_value *kwargs, dist_value **out,
                             void *token) {
  return hand_over(call(callbacks, &Callbacks::values, number(token), number(replica), number(args), number(kwargs)),
                   out);
}
static dist_status on_merge(dist_strategy *strategy, dist_value *args, dist_value *kwargs, dist_value **out, void *token) {
  return hand_over(call(callbacks, &Callbacks::merge, number(token), number(strategy), number(args), number(kwargs)), out);
}
static dist_status on_update(dist_strategy *, const dist_update_place *place, dist_value *args, dist_value *kwargs,
                             dist_value **out, void *token) {
  return hand_over(call(callbacks, &Callbacks::update, number(token), place->replica, place->device,
                        number(place->copy), number(args), number(kwargs)),
                   out);
}
static dist_status on_source(dist_strategy *, int64_t index, dist_value **out, void *token) {
  return hand_over(call(callbacks, &Callbacks::source, number(token), index), out);
}
static dist_status on_file_source(dist_strategy *, size_t file, const char *name, int64_t index, dist_value **out, void *token) {
  return hand_over(call(callbacks, &Callbacks::file_source, number(token), (int64_t)file, name, index), out);
}
static dist_status on_dataset(dist_strategy *, const dist_input_context *context, dist_dataset **out, void *token) {
  return hand_over(call(callbacks, &Callbacks::dataset, number(token), context->num_input_pipelines,
                        context->input_pipeline_id, context->num_replicas_in_sync),
                   out);
}
static dist_status on_dataset_reduce(dist_dataset *, dist_value *state, dist_value *batch, dist_value **out,
                                     void *token) {
  return hand_over(call(callbacks, &Callbacks::dataset_reduce, number(token), number(state), number(batch)), out);
}
static dist_status on_value(dist_strategy *, const dist_value_context *context, dist_value **out, void *token) {
  return hand_over(call(callbacks, &Callbacks::value, number(token), context->replica_id_in_sync_group,
                        context->num_replicas_in_sync),
                   out);
}
static dist_status on_initial(dist_strategy *, dist_value **out, void *token) {
  return hand_over(call(callbacks, &Callbacks::initial, number(token)), out);
}
static dist_status on_method(const dist_rpc_context *context, dist_value *args, dist_value **out, void *token) {
  return hand_over(call(callbacks, &Callbacks::method, number(token), context->method, number(context->cancel),
                        context->timeout_ns, number(args)),
                   out);
}
static dist_status on_closure(dist_closure *closure, dist_value *args, dist_value **out, void *token) {
  return hand_over(call(callbacks, &Callbacks::closure, number(token), number(closure), number(args)), out);
}
static dist_status on_create_state(dist_replica *replica, void **out_state, void *token) {
  return hand_over(call(callbacks, &Callbacks::create_state, number(token), number(replica)), out_state);
}
static void on_destroy_state(void *state, void *token) {
  notify(callbacks, &Callbacks::destroy_state, number(token), number(state));
}
static dist_status on_warm_up(dist_replica *replica, void *token) {
  return call(callbacks, &Callbacks::warm_up, number(token), number(replica));
}
static dist_status on_step(dist_replica *replica, dist_batch *batch, void *token) {
  return call(callbacks, &Callbacks::step, number(token), number(replica), number(batch));
}
/* an item's state, a result, or a version: a token too */
static void on_free(void *what, void *) { notify(callbacks, &Callbacks::release, number(what)); }
static dist_status on_update_variables(dist_tensor *variables, size_t n, dist_value *args, void *token) {
  return call(callbacks, &Callbacks::update_variables, number(token), number(variables), (int64_t)n, number(args));
}
static dist_status on_partition(const dist_tensor *spec, int64_t *out_partitions, void *token) {
  return call(callbacks, &Callbacks::partition, number(token), number(spec), number(out_partitions));
}
static void on_loop(int64_t begin, int64_t end, void *token) {
  call(callbacks, &Callbacks::loop, number(token), begin, end);
}
static void on_reduce(void *acc, const void *in, int64_t count, dist_dtype dtype, void *token) {
  call(callbacks, &Callbacks::reduce, number(token), number(acc), number(in), count, dtype);
}
static void on_apply(const dist_block *block, void *token) {
  call(callbacks, &Callbacks::apply, number(token), (int64_t)block->tensor, block->first, block->count, block->dtype,
                   number(block->gradient), number(block->parameter), block->num_states, number(block->states));
}
static dist_status on_reduce_components(dist_reduce_op op, const dist_tensor *components, size_t n,
                                        dist_tensor *out, void *token) {
  return call(callbacks, &Callbacks::reduce_components, number(token), op, number(components), (int64_t)n, number(out));
}
static dist_status on_broadcast_copies(const dist_tensor *value, dist_tensor *copies, size_t n, void *token) {
  return call(callbacks, &Callbacks::broadcast_copies, number(token), number(value), number(copies), (int64_t)n);
}
static dist_status on_gather_components(const dist_tensor *components, size_t n, int32_t axis, dist_tensor *out,
                                        void *token) {
  return call(callbacks, &Callbacks::gather_components, number(token), number(components), (int64_t)n, axis, number(out));
}
static void on_log(dist_log_level level, const char *message, void *token) {
  notify(callbacks, &Callbacks::log, number(token), level, message);
}
static int32_t on_execute(dist_task_fn task, void *task_data, void *token) {
  return call(callbacks, &Callbacks::execute, number(token), number((const void *)task), number(task_data));
}
static void on_release(void *token) { notify(callbacks, &Callbacks::release, number(token)); }
static int32_t own_copy(int32_t replica_id, int32_t, void *) { return replica_id; }
static int32_t shared_copy(int32_t, int32_t, void *) { return 0; }

}  // namespace dist_swig
%}
%inline %{
/** Who takes the calls back; set once, when the language's module is loaded, and never ended. */
static void set_callbacks(Callbacks *callbacks) { dist_swig::callbacks = callbacks; }

/** What Callbacks::execute() was given, also when the strategy has ended; once. */
static void run_task(int64_t task, int64_t task_data) {
  ((dist_task_fn)dist_swig::pointer(task))(dist_swig::pointer(task_data));
}
%}


/* A function and its user_data are one token, 0 for NULL. %dist_token (dist_LANGUAGE.i) makes a pattern an integer of 64 bits,
   which the given code finds in `token`. */
%define %dist_function(FN, TRAMPOLINE)
%dist_token((FN fn, void *user_data), $1 = token ? dist_swig::TRAMPOLINE : nullptr; $2 = dist_swig::pointer(token);)
%enddef
%dist_function(dist_replica_fn, on_replica)
%dist_function(dist_values_fn, on_values)
%dist_function(dist_merge_fn, on_merge)
%dist_function(dist_update_fn, on_update)
%dist_function(dist_dataset_fn, on_dataset)
%dist_function(dist_dataset_reduce_fn, on_dataset_reduce)
%dist_function(dist_value_fn, on_value)
%dist_function(dist_range_fn, on_loop)
%dist_token((dist_batch_fn step, void *user_data),
            $1 = token ? dist_swig::on_step : nullptr; $2 = dist_swig::pointer(token);)
%dist_token((dist_source_fn fn, void *user_data, dist_release_fn release),
            $1 = token ? dist_swig::on_source : nullptr; $2 = dist_swig::pointer(token); $3 = dist_swig::on_release;)
%dist_token((dist_file_source_fn fn, void *user_data, dist_release_fn release),
            $1 = token ? dist_swig::on_file_source : nullptr; $2 = dist_swig::pointer(token); $3 = dist_swig::on_release;)
%dist_token((dist_rpc_fn fn, void *user_data, dist_release_fn release),
            $1 = token ? dist_swig::on_method : nullptr; $2 = dist_swig::pointer(token); $3 = dist_swig::on_release;)
%dist_token((dist_closure_fn fn, void *user_data, dist_release_fn release),
            $1 = token ? dist_swig::on_closure : nullptr; $2 = dist_swig::pointer(token); $3 = dist_swig::on_release;)
%dist_token((dist_server_update_fn fn, void *user_data, dist_release_fn release),
            $1 = token ? dist_swig::on_update_variables : nullptr; $2 = dist_swig::pointer(token);
            $3 = dist_swig::on_release;)
%dist_token((dist_release_fn release, void *user_data),
            $1 = dist_swig::on_release; $2 = dist_swig::pointer(token);)
%dist_token((void *object, dist_release_fn release),
            $1 = dist_swig::pointer(token); $2 = dist_swig::on_release;)
%dist_token((void *content, dist_version_release_fn release, void *user_data),
            $1 = dist_swig::pointer(token); $2 = dist_swig::on_free; $3 = nullptr;)
