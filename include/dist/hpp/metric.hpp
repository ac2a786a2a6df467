// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/metric.hpp: metric.h for C++: metrics and losses.
//
//     dist::metric loss(strategy, DIST_METRIC_MEAN, "loss");
//     strategy.run([&](dist::replica replica) {
//       const std::vector<float> losses = losses_of(replica.id());
//       loss.update(replica, losses);
//     });
//     std::cout << loss.result() << '\n';                                             // the mean over all replicas

#ifndef DIST_HPP_METRIC_HPP
#define DIST_HPP_METRIC_HPP

#include "variable.hpp"

namespace dist {

// Owns a metric: a number accumulated over the updates of all replicas. Its methods need the strategy.
class metric {
 public:
  // kind: DIST_METRIC_...
  metric(const strategy_ref &owner, dist_metric_kind kind, const char *name = nullptr) : owner_(owner) {
    dist_metric *made = nullptr;
    check(dist_metric_create(owner.get(), kind, name, &made));
    handle_.reset(made);
  }

  // Adds a batch to this replica's copy, without waiting for other replicas.
  void update(const replica &caller, const const_tensors &values, const const_tensors &labels = nothing,
              const const_tensors &weights = nothing) const {
    check(dist_metric_update(caller.get(), handle_.get(), values.in(), labels.in(), weights.in()));
  }
  // Over all updates of all replicas.
  double result() const {
    double number = 0;
    check(dist_metric_result(owner_.get(), handle_.get(), &number));
    return number;
  }
  void reset() const { check(dist_metric_reset(owner_.get(), handle_.get())); }
  dist_metric_kind kind() const noexcept { return dist_metric_kind_of(handle_.get()); }
  const char *name() const noexcept { return dist_metric_name(handle_.get()); }
  // Its state, for checkpoints.
  variable_ref variable() const noexcept { return variable_ref(dist_metric_variable(handle_.get())); }
  [[nodiscard]] dist_metric *get() const noexcept { return handle_.get(); }

 private:
  struct destroy {
    void operator()(dist_metric *handle) const noexcept { dist_metric_destroy(handle); }
  };
  strategy_ref owner_;
  std::unique_ptr<dist_metric, destroy> handle_;
};

// A replica's share of the loss, with the dtype T of the losses; the sum over all replicas is the average over the
// global batch. With a global_batch_size, `caller` may be replica(nullptr); 0 = the size of this replica's batch times
// the number of replicas.
template <class T>
T average_loss(const replica &caller, const const_tensor &per_example_loss, int64_t global_batch_size = 0,
               const const_tensors &sample_weight = nothing) {
  T share{};
  const dist_tensor losses = per_example_loss.get();
  dist_tensor out = tensor(&share, {}).get();
  check(dist_average_loss(caller.get(), &losses, sample_weight.in(), global_batch_size, &out));
  return share;
}
// A replica's share of a loss that is the same on all replicas.
template <class T>
T scale_regularization_loss(const replica &caller, const const_tensor &loss) {
  T share{};
  const dist_tensor whole = loss.get();
  dist_tensor out = tensor(&share, {}).get();
  check(dist_scale_regularization_loss(caller.get(), &whole, &out));
  return share;
}

}  // namespace dist

#endif  // DIST_HPP_METRIC_HPP
