// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/strategy.hpp: strategy.h for C++. A strategy_ref is a handle that can be copied freely, such as merge
// functions and get_strategy() provide; a strategy owns what it holds and destroys it. All their methods are declared
// here, and defined in the header of their subject.
//
//     dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
//     options.num_replicas = 4;
//     options.threads = DIST_THREADS_LIBRARY;
//     dist::strategy strategy(options);                                               // or strategy(4), with defaults
//     strategy.run([](dist::replica replica) { replica.barrier(); });
#ifndef DIST_HPP_STRATEGY_HPP
#define DIST_HPP_STRATEGY_HPP

#include <functional>
#include <memory>

#include "names.hpp"

// C structs that methods take or return.
struct dist_strategy_properties;
struct dist_reform_options;
struct dist_cluster_resolver;
struct dist_drift;
struct dist_straggler;
struct dist_devices_options;
struct dist_submit_options;
struct DLManagedTensor;

namespace dist {

class value;
class variable_ref;
class destination;
class device_assignment_ref;
class partition;
class scope_guard;
class completions;
class request;
struct value_shard;

// A strategy that another object owns. Copies refer to the same strategy.
class strategy_ref {
 public:
  strategy_ref() noexcept = default;
  explicit strategy_ref(dist_strategy *handle) noexcept : handle_(handle) {}

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  [[nodiscard]] dist_strategy *get() const noexcept { return handle_; }

  // ---- What it is
  int32_t num_replicas() const noexcept { return dist_strategy_num_replicas(handle_); }
  int32_t num_logical_devices() const noexcept;
  dist_strategy_kind kind() const noexcept;
  const char *device(int32_t replica_id) const;
  const char *parameter_device(int32_t index) const;
  dist_strategy_properties query() const;
  // NULL if the strategy has no cluster.
  dist_cluster_resolver *cluster_resolver() const;
  device_assignment_ref device_assignment() const noexcept;

  // ---- Running replicas (run.hpp)
  // Calls body(replica) once on every replica, at the same time. Throws the exception of the failing replica, or
  // dist::error.
  template <class Body>
  void run(Body &&body) const;
  // With a timeout (options.timeout_ns), the body is copied and may still be in use after the call.
  template <class Body>
  void run(Body &&body, const dist_run_options &options) const;
  // The same with arguments and results: body(replica, args) or body(replica, args, kwargs) returns a value or nothing.
  // With a timeout (options.timeout_ns), the body is copied and may still be in use after the call.
  template <class Body>
  value run_values(Body &&body, const value &args, const value &kwargs,
                   const dist_run_options &options) const;
  template <class Body>
  value run_values(Body &&body, const value &args, const value &kwargs) const;
  template <class Body>
  value run_values(Body &&body, const value &args) const;
  template <class Body>
  value run_values(Body &&body) const;
  // With DIST_THREADS_HOST: this thread becomes replica `replica_id` for the duration of body(replica), then waits for
  // the others.
  template <class Body>
  void enter(int32_t replica_id, Body &&body) const;
  void cancel() const { check(dist_strategy_cancel(handle_)); }

  // ---- Requests, each on one free replica (serve.hpp)
  // Schedules body(replica) on the next idle replica. The returned object owns the function.
  template <class Body>
  request submit(Body &&body) const;
  template <class Body>
  request submit(Body &&body, const dist_submit_options &options) const;
  // The same; the completed request is added to `to`, with its user_data.
  template <class Body>
  void submit(completions &to, Body &&body) const;
  template <class Body>
  void submit(completions &to, Body &&body, dist_submit_options options, void *user_data = nullptr) const;
  // The same; done(const request &), which must be noexcept, is called on a library thread when the request has
  // completed.
  template <class Body, class Done>
  void submit_then(Body &&body, Done &&done) const;
  template <class Body, class Done>
  void submit_then(Body &&body, Done &&done, dist_submit_options options) const;
  // Closes the instances that dist::instances or the first submit() opened.
  void close_instances(int64_t timeout_ns = DIST_NO_TIMEOUT) const;
  // With DIST_THREADS_HOST: this thread serves as instance `replica_id` until the instances close.
  void serve(int32_t replica_id) const;

  // ---- Workers that come and go (workers.hpp)
  void reform() const;
  void reform(const dist_reform_options &options) const;
  bool reform_due() const;

  // ---- Values and variables outside runs (value.hpp, variable.hpp, cross_replica.hpp)
  template <class Fn>
  value values_from_function(Fn &&fn) const;
  value read(const variable_ref &variable) const;
  void assign(const variable_ref &variable, const value &given, dist_assign_op how = DIST_ASSIGN) const;
  void scatter(const variable_ref &variable, dist_scatter_op how, const value &slices) const;
  const char *variable_device(const variable_ref &variable, int32_t copy) const;
  // Throws error DIST_DATA_LOSS, with the replica and the two elements, if the copies are not equal.
  void check_drift(const variable_ref &variable) const;
  // The first difference between the copies.
  dist_drift drift(const variable_ref &variable) const;

  value reduce(reduce_op op, const value &given) const;
  value reduce(reduce_op op, const value &given, std::initializer_list<int32_t> axes) const;
  value reduce_to(reduce_op op, const value &given, const destination &where) const;
  value reduce_to(reduce_op op, const value &given, const destination &where,
                  const dist_communication_options &options) const;
  std::vector<value> batch_reduce_to(reduce_op op,
                                     const std::vector<std::pair<value, destination>> &pairs) const;
  std::vector<value> batch_reduce_to(reduce_op op, const std::vector<std::pair<value, destination>> &pairs,
                                     const dist_communication_options &options) const;
  value broadcast_to(const value &given, const destination &where) const;
  value gather(const value &given, int32_t axis) const;
  std::string destination_device(const destination &where) const;
  value local_results(const value &given) const;
  // Calls fn(const dist_update_place &, args) or fn(const dist_update_place &, args, kwargs) for every copy, one after
  // another; or fn(tensor copy, args), for several copies at the same time.
  template <class Fn>
  value update(const variable_ref &variable, Fn &&fn, const value &args) const;
  template <class Fn>
  value update(const variable_ref &variable, Fn &&fn, const value &args, const value &kwargs,
               bool ungrouped = false) const;
  template <class Fn>
  value update_non_slot(Fn &&fn, const value &args, const value &kwargs, bool ungrouped = false) const;

  // ---- Inspection (inspect.hpp)
  std::string explain() const;
  std::string write_trace() const;
  std::string write_metrics(const char *name = nullptr) const;
  std::vector<dist_straggler> stragglers() const;

  // ---- Scopes (scope.hpp): each ends when the returned guard is destroyed
  scope_guard scope() const;

 protected:
  // With host functions (see strategy_functions): throws the exception that they threw. A handle from libdist, such as
  // that of a merge function, does not have access to these exceptions and throws an error with the same text.
  void check_call(dist_status status) const {
    if (status == DIST_OK) return;
    if (failures_ != nullptr) failures_->check(status);
    throw error(status);
  }

  dist_strategy *handle_ = nullptr;
  detail::failures *failures_ = nullptr;  // of the owner's functions
};

namespace detail {
struct strategy_host;
}
struct strategy_functions;

// Owns a strategy. If a run is in progress, or groups or works still exist, the destructor cannot destroy the strategy,
// which then leaks; destroy() throws instead.
class strategy : public strategy_ref {
 public:
  // Creates a mirrored strategy; 0 = one replica per available CPU.
  explicit strategy(int32_t num_replicas = 0) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.num_replicas = num_replicas;
    check(dist_strategy_create(&options, &handle_));
  }
  explicit strategy(const dist_strategy_options &options) { check(dist_strategy_create(&options, &handle_)); }
  // With host functions, see cross_replica.hpp.
  strategy(dist_strategy_options options, strategy_functions functions);
  ~strategy() {
    if (dist_strategy_destroy(handle_) != DIST_OK)
      (void)host_.release();  // the strategy still exists, so its functions must too
  }
  strategy(strategy &&other) noexcept { swap(other); }
  strategy &operator=(strategy &&other) noexcept {
    swap(other);
    return *this;
  }
  strategy(const strategy &) = delete;
  strategy &operator=(const strategy &) = delete;

  // Destroys it now. If a run is in progress, or groups or works still exist, it throws and the strategy stays valid.
  void destroy() {
    check(dist_strategy_destroy(handle_));
    handle_ = nullptr;
  }
  // Stops it even if replica functions do not return. Throws DIST_DEADLINE_EXCEEDED if functions are still running:
  // what they use stays valid after this object's end, and the last function to return frees it.
  void shutdown(int64_t timeout_ns);

 private:
  void swap(strategy &other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(failures_, other.failures_);
    host_.swap(other.host_);
  }

  std::unique_ptr<detail::strategy_host, void (*)(detail::strategy_host *)> host_{nullptr, nullptr};
};

inline int32_t strategy_ref::num_logical_devices() const noexcept {
  return dist_strategy_num_logical_devices(handle_);
}

inline dist_strategy_kind strategy_ref::kind() const noexcept { return dist_strategy_kind_of(handle_); }

inline const char *strategy_ref::device(int32_t replica_id) const {
  const char *name = nullptr;
  check(dist_strategy_device(handle_, replica_id, &name));
  return name;
}

inline const char *strategy_ref::parameter_device(int32_t index) const {
  const char *name = nullptr;
  check(dist_strategy_parameter_device(handle_, index, &name));
  return name;
}

inline dist_strategy_properties strategy_ref::query() const {
  dist_strategy_properties properties = DIST_STRATEGY_PROPERTIES_INIT;
  check(dist_strategy_query(handle_, &properties));
  return properties;
}

inline dist_cluster_resolver *strategy_ref::cluster_resolver() const {
  dist_cluster_resolver *resolver = nullptr;
  check(dist_strategy_cluster_resolver(handle_, &resolver));
  return resolver;
}

inline void strategy::shutdown(int64_t timeout_ns) {
  const dist_status status = dist_strategy_shutdown(handle_, timeout_ns);
  if (status == DIST_DEADLINE_EXCEEDED) (void)host_.release();  // its functions may still be called
  check(status);
}

}  // namespace dist

#endif  // DIST_HPP_STRATEGY_HPP
