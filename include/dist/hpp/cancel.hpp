// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/cancel.hpp: cancel objects, of run.h for C++: what any thread can ask to end early.
//
//     dist::cancel stop;
//     dist_run_options options = DIST_RUN_OPTIONS_INIT;
//     options.cancel = stop.get();
//     strategy.run(body, options);        // throws dist::error, CANCELLED, where another thread calls stop.signal("why")

#include "error.hpp"

// ---- Experimental: what follows may change or go in any version, as types.h says

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_HPP_CANCEL_EXPERIMENTAL_HPP)
#define DIST_HPP_CANCEL_EXPERIMENTAL_HPP

namespace dist {

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

  // For options: dist_run_options, dist_devices_options, collective_options.
  [[nodiscard]] dist_cancel *get() const noexcept { return handle_; }
  // Ends what was begun with it, and what is begun with it from now on. Any thread may; a second time changes nothing.
  void signal(const char *reason = nullptr) const { check(dist_cancel_signal(handle_, reason)); }
  void signal(const std::string &reason) const { signal(detail::for_c(reason)); }
  bool signalled() const noexcept { return dist_cancel_signalled(handle_) != 0; }

 private:
  dist_cancel *handle_ = nullptr;
};

}  // namespace dist
#endif  // DIST_HPP_CANCEL_EXPERIMENTAL_HPP
