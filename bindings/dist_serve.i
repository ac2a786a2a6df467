/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_serve.i: instances, requests and batches. A part of dist.i, by dist_options.i.
 */
%extend dist_instances_options {
  /* functions of one token, which is used until the last state has ended */
  void set_functions(int64_t token, int32_t has_state, int32_t has_warm_up) {
    if (has_state) $self->create_state = dist_swig::on_create_state;
    if (has_state) $self->destroy_state = dist_swig::on_destroy_state;
    if (has_warm_up) $self->warm_up = dist_swig::on_warm_up;
    $self->user_data = dist_swig::pointer(token);
  }
};

%extend dist_batcher_options {
  /* states and results are tokens, which Callbacks::release() gets back */
  void set_tokens() { $self->free_state = $self->free_result = dist_swig::on_free; }
};
