// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/cancel.hpp: cancel objects (run.h), with which any thread can end a run or a collective early.
//
//     dist::cancel stop;
//     dist_run_options options = DIST_RUN_OPTIONS_INIT;
//     options.cancel = stop.get();
//     strategy.run(step, options);        // throws dist::error (CANCELLED) if another thread calls stop.signal("why")

#ifndef DIST_HPP_CANCEL_HPP
#define DIST_HPP_CANCEL_HPP

#include "error.hpp"

namespace dist {

// Owns a cancel object. Calls that were started with it continue when it is destroyed.
class cancel {
 public:
  cancel() { check(dist_cancel_create(nullptr, &handle_)); }
  explicit cancel(const dist_allocator &allocator) { check(dist_cancel_create(&allocator, &handle_)); }
  ~cancel() { dist_cancel_destroy(handle_); }
  cancel(cancel &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  cancel &operator=(cancel &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  cancel(const cancel &) = delete;
  cancel &operator=(const cancel &) = delete;

  // For the options dist_run_options, dist_devices_options and collective_options.
  [[nodiscard]] dist_cancel *get() const noexcept { return handle_; }
  // Cancels everything that was started with this object or will be. Any thread may call it; later calls have no
  // effect.
  void signal(const char *reason = nullptr) const { check(dist_cancel_signal(handle_, reason)); }
  void signal(const std::string &reason) const { signal(detail::for_c(reason)); }
  bool signalled() const noexcept { return dist_cancel_signalled(handle_) != 0; }

 private:
  dist_cancel *handle_ = nullptr;
};

}  // namespace dist

#endif  // DIST_HPP_CANCEL_HPP
