/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_serve.i: instances, requests and batches. A part of dist.i, by dist_options.i.
 */
%dist_options(dist_instances_options)
%ignore dist_instances_options::create_state;
%ignore dist_instances_options::destroy_state;
%ignore dist_instances_options::warm_up;
%ignore dist_instances_options::user_data;
%extend dist_instances_options {
  /* functions of one token, which is used until the last state has ended */
  void set_functions(int64_t token, int32_t has_state, int32_t has_warm_up) {
    if (has_state) $self->create_state = dist_swig::on_create_state;
    if (has_state) $self->destroy_state = dist_swig::on_destroy_state;
    if (has_warm_up) $self->warm_up = dist_swig::on_warm_up;
    $self->user_data = dist_swig::pointer(token);
  }
};

/* submit(): an object for the options would cost more than the call. Without `done`: completions say the same, on a thread
   of the language's own. */
%ignore dist_submit;
%ignore dist_submit_options;
%ignore dist_submit_options_init;
%inline %{
/** dist_submit() with its options; the request's token is dist_request_user_data(). */
static dist_status submit(dist_strategy *strategy, dist_replica_fn fn, void *user_data, int32_t priority,
                          int64_t timeout_ns, dist_cancel *cancel, dist_completions *completions,
                          int64_t request_id, dist_request **out_request) {
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
    $self->buckets = n ? dist_swig::keep($self, numbers, n) : nullptr;
    $self->num_buckets = n;
  }
  /* states and results are tokens, which Callbacks::release() gets back */
  void set_tokens() { $self->free_state = $self->free_result = dist_swig::on_free; }
};

/* batcher_submit(): as submit() */
%ignore dist_batcher_submit;
%ignore dist_item_options;
%ignore dist_item_options_init;
%inline %{
/** dist_batcher_submit() with its options; the item's token is dist_request_user_data(), and dist_batch_user_data(). */
static dist_status batcher_submit(dist_batcher *batcher, int64_t token, int32_t priority, int64_t timeout_ns,
                                  dist_cancel *cancel, dist_completions *completions, int64_t length, int64_t bytes,
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
