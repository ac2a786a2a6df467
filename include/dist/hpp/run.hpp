// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/run.hpp: run.h for C++: runs and merge calls. An exception that leaves a replica's function ends the run for
// all replicas and is rethrown to the caller; so is one that leaves a merge function.
//
//     const dist::value losses = strategy.run_values(
//         [](dist::replica replica, const dist::value &args) { return loss_of(replica, args[0]); }, batch);
#ifndef DIST_HPP_RUN_HPP
#define DIST_HPP_RUN_HPP

#include "replica.hpp"

namespace dist {

namespace detail {

// The function of one run with values, and the exceptions that it threw on its members: replicas, or a replica's
// logical devices.
template <class Body>
struct values_body {
  Body *body;
  failures thrown;

  explicit values_body(Body &given) noexcept : body(std::addressof(given)) {}
  dist_status call(dist_replica *handle, dist_value *args, dist_value *kwargs, dist_value **out) {
    const borrowed positional(args), named(kwargs);
    return shielded(thrown, dist_replica_id(handle), [&] {
      hand_over(out, [&] { return call_with(*body, replica(handle), *positional, *named); });
    });
  }
};

// With a timeout, the call may return before its functions do: then the last function to return deletes this object.
template <class Body>
struct lasting_body {
  Body body;
  values_body<Body> calls;
  std::atomic<int32_t> users;  // the caller, and each member until its function has returned

  template <class Given>
  lasting_body(Given &&given, int32_t members)
      : body(std::forward<Given>(given)), calls(body), users(members + 1) {}
  void leave() noexcept {
    if (users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

// Runs `body` with start(fn, user_data, out): dist_run_values() or dist_run_on_devices(). `culprit` returns, from the
// report, the member whose exception must be thrown.
template <class Body, class Start, class Culprit>
value run_body(Body &&body, int32_t members, int64_t timeout_ns, Start &&start, Culprit &&culprit) {
  using plain = std::remove_reference_t<Body>;
  using kept = std::decay_t<Body>;
  dist_value *result = nullptr;
  if (timeout_ns <= 0) {
    values_body<plain> calls(body);
    const dist_values_fn call = [](dist_replica *handle, dist_value *args, dist_value *kwargs,
                                   dist_value **out, void *user_data) {
      return static_cast<values_body<plain> *>(user_data)->call(handle, args, kwargs, out);
    };
    const dist_status status = start(call, &calls, &result);
    if (status == DIST_OK) return value::adopt(result);
    const error report(status);
    calls.thrown.raise_of(culprit(report), report);
  }
  struct lasting_ref {
    lasting_body<kept> *object;
    bool all_out = true;
    ~lasting_ref() {
      if (all_out)
        delete object;
      else
        object->leave();
    }
  } lasting{new lasting_body<kept>(std::forward<Body>(body), members)};
  const dist_values_fn call = [](dist_replica *handle, dist_value *args, dist_value *kwargs, dist_value **out,
                                 void *user_data) {
    auto *self = static_cast<lasting_body<kept> *>(user_data);
    const dist_status status = self->calls.call(handle, args, kwargs, out);
    self->leave();
    return status;
  };
  const dist_status status = start(call, lasting.object, &result);
  lasting.all_out = status == DIST_OK;
  if (status == DIST_OK) return value::adopt(result);
  const error report(status);
  lasting.all_out = report.inside() == 0;
  lasting.object->calls.thrown.raise_of(culprit(report), report);
}

}  // namespace detail

template <class Body>
void strategy_ref::run(Body &&body) const {
  const dist_run_options options = DIST_RUN_OPTIONS_INIT;
  run(std::forward<Body>(body), options);
}

template <class Body>
void strategy_ref::run(Body &&body, const dist_run_options &options) const {
  if (options.timeout_ns > 0) {
    (void)run_values([own = std::decay_t<Body>(std::forward<Body>(body))](
                         replica replica, const value &) mutable { own(replica); },
                     value(), value(), options);
    return;
  }
  using call = detail::callback<std::remove_reference_t<Body>>;
  call all(body);
  const dist_status status = dist_run(
      handle_,
      [](dist_replica *handle, void *user_data) {
        auto &self = call::of(user_data);
        return detail::shielded(self.thrown, dist_replica_id(handle), [&] { (*self.fn)(replica(handle)); });
      },
      &all, &options);
  if (status == DIST_OK) return;
  const error report(status);
  all.thrown.raise_of(report.replica(), report);
}

template <class Body>
value strategy_ref::run_values(Body &&body, const value &args, const value &kwargs,
                               const dist_run_options &options) const {
  return detail::run_body(
      std::forward<Body>(body), num_replicas(), options.timeout_ns,
      [&](dist_values_fn fn, void *user_data, dist_value **out) {
        return dist_run_values(handle_, fn, user_data, args.get(), kwargs.get(), &options, out);
      },
      [](const error &report) { return report.replica(); });
}
template <class Body>
value strategy_ref::run_values(Body &&body, const value &args, const value &kwargs) const {
  const dist_run_options options = DIST_RUN_OPTIONS_INIT;
  return run_values(std::forward<Body>(body), args, kwargs, options);
}
template <class Body>
value strategy_ref::run_values(Body &&body, const value &args) const {
  return run_values(std::forward<Body>(body), args, value());
}
template <class Body>
value strategy_ref::run_values(Body &&body) const {
  return run_values(std::forward<Body>(body), value(), value());
}

template <class Body>
void strategy_ref::enter(int32_t replica_id, Body &&body) const {
  dist_replica *handle = nullptr;
  check(dist_replica_enter(handle_, replica_id, &handle));
  detail::failures thrown;
  const dist_status own = detail::shielded(thrown, replica_id, [&] { body(replica(handle)); });
  const dist_status status = dist_replica_leave(handle, own);
  if (status == DIST_OK && own == DIST_OK) return;
  thrown.raise_of(replica_id, error(status));
}

template <class Fn>
value replica::merge_call(Fn &&fn, const value &args, const value &kwargs,
                          const collective_options &options) const {
  using call = detail::callback<std::remove_reference_t<Fn>>;
  call once(fn);
  const auto given = options.get();
  dist_value *result = nullptr;
  once.thrown.check(dist_merge_call(
      handle_,
      [](dist_strategy *strategy, dist_value *merged, dist_value *named, dist_value **out, void *user_data) {
        auto &self = call::of(user_data);
        const detail::borrowed items(merged), keys(named);
        return detail::shielded(self.thrown, -1, [&] {
          detail::hand_over(out, [&] {
            if constexpr (std::is_invocable_v<Fn &, strategy_ref, const value &, const value &>) {
              return (*self.fn)(strategy_ref(strategy), *items, *keys);
            } else {
              return (*self.fn)(strategy_ref(strategy), *items);
            }
          });
        });
      },
      &once, args.get(), kwargs.get(), &given, &result));
  return value::adopt(result);
}

// ---- Optimizer steps -------------------------------------------------------------------------------------

// The way in which reduce_apply() uses a reduced gradient.
class apply {
 public:
  static apply sgd(double learning_rate, double momentum = 0) noexcept {
    apply made;
    made.options_.kind = DIST_APPLY_SGD;
    made.options_.learning_rate = learning_rate;
    made.options_.momentum = momentum;
    return made;
  }
  // fn(const dist_block &) is called for each part of each tensor. It must be a named object and noexcept, because it
  // runs inside the library.
  template <class Fn>
  static apply with(Fn &fn) noexcept {
    static_assert(std::is_nothrow_invocable_v<Fn &, const dist_block &>,
                  "the function runs inside the library: declare it noexcept");
    apply made;
    made.options_.kind = DIST_APPLY_CALLBACK;
    made.options_.fn = [](const dist_block *block, void *user_data) {
      (*static_cast<Fn *>(user_data))(*block);
    };
    made.options_.user_data = detail::address_of(fn);
    return made;
  }
  // State lists, each like the list of parameters, one after another: one for momentum, or as many as a host function
  // needs.
  apply &states(const tensor_list &lists) noexcept {
    options_.states = lists.get();
    num_states_ = lists.size();
    return *this;
  }
  apply &clip_norm(double norm) noexcept {
    options_.clip_norm = norm;
    return *this;
  }

 private:
  friend class replica;
  apply() noexcept = default;

  dist_apply_options options_ = DIST_APPLY_OPTIONS_INIT;
  std::size_t num_states_ = 0;  // tensors, in all lists
};

inline double replica::reduce_apply(const reduction &op, const tensors &gradients, const tensors &parameters,
                                    const apply &how, const collective_options &options) const {
  const auto given = detail::with_operator(op, gradients, options);
  const std::size_t n = detail::count(gradients, parameters, options.contributions);
  double norm = 0;
  dist_apply_options c = how.options_;
  c.num_states = n == 0 ? 0 : how.num_states_ / n;
  if (c.num_states * n != how.num_states_)
    throw error(DIST_INVALID_ARGUMENT, "the states are whole lists like the parameters");
  dist::check(dist_reduce_apply(handle_, op.op(), gradients.out(), parameters.out(), n, &c, &given, &norm));
  return norm;
}

}  // namespace dist

#endif  // DIST_HPP_RUN_HPP
