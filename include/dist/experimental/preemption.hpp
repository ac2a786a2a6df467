// SPDX-License-Identifier: Apache-2.0
//
// dist/experimental/preemption.hpp: preemption.h for C++: jobs that save a checkpoint before a machine is preempted.
// All of it is experimental.
//
//     dist_preemption_options options = DIST_PREEMPTION_OPTIONS_INIT;
//     options.path = "model.safetensors";
//     dist::preemption_handler handler(strategy, options);                   // loads the checkpoint, if it exists
//     while (handler.total_run_calls() < steps) handler.run(train_step);     // throws CANCELLED when all is saved
#ifndef DIST_EXPERIMENTAL_PREEMPTION_HPP
#define DIST_EXPERIMENTAL_PREEMPTION_HPP

#include <cstdint>
#include <utility>

#include "../hpp/run.hpp"
#include "../hpp/strategy.hpp"
#include "preemption.h"

namespace dist {

// The preemption handler of a training loop. Destroy it before its strategy. It retains the variables of its options.
class preemption_handler {
 public:
  preemption_handler(const strategy_ref &owner, const dist_preemption_options &options) : owner_(owner) {
    check(dist_preemption_handler_create(owner.get(), &options, &handle_));
  }
  ~preemption_handler() { dist_preemption_handler_destroy(handle_); }
  preemption_handler(preemption_handler &&other) noexcept
      : owner_(other.owner_), handle_(std::exchange(other.handle_, nullptr)) {}
  preemption_handler &operator=(preemption_handler &&other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  preemption_handler(const preemption_handler &) = delete;
  preemption_handler &operator=(const preemption_handler &) = delete;

  // Any thread; also in a signal handler.
  void notify() const noexcept { dist_preemption_notify(handle_); }
  // Like strategy_ref::run().
  template <class Body>
  void run(Body &&body) const {
    check_not_over();
    owner_.run(std::forward<Body>(body));
    count_run();
  }
  template <class Body>
  void run(Body &&body, const dist_run_options &options) const {
    check_not_over(options.cancel);
    owner_.run(std::forward<Body>(body), options);
    count_run();
  }
  // Returns DIST_PREEMPTION_NONE, SAVED or OVER. A cancel object ends the wait.
  int32_t save_if_preempted(dist_cancel *cancel = nullptr) const {
    dist_preemption_state state = DIST_PREEMPTION_NONE;
    check(dist_preemption_save_if_preempted(handle_, cancel, &state));
    return state;
  }
  void count_run() const noexcept { dist_preemption_count_run(handle_); }
  int64_t total_run_calls() const noexcept { return dist_preemption_total_run_calls(handle_); }
  [[nodiscard]] dist_preemption_handler *get() const noexcept { return handle_; }

 private:
  // If the job should end, the C function returns its usual error and runs nothing.
  void check_not_over(dist_cancel *cancel = nullptr) const {
    if (save_if_preempted(cancel) == DIST_PREEMPTION_OVER)
      check(dist_preemption_run(handle_, nullptr, nullptr, nullptr));
  }

  strategy_ref owner_;
  dist_preemption_handler *handle_ = nullptr;
};

}  // namespace dist

#endif  // DIST_EXPERIMENTAL_PREEMPTION_HPP
