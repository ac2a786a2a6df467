// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/workers.hpp: workers.h for C++: networks between workers in one process, and re-forming after workers are
// lost or join.
//
//     for (bool complete = false; !complete;) {
//       try {
//         complete = train(strategy);                                                 // from the last checkpoint
//       } catch (const dist::error &lost) {
//         if (lost.code() != DIST_UNAVAILABLE && lost.code() != DIST_ABORTED) throw;
//         strategy.reform();
//       }
//     }
#ifndef DIST_HPP_WORKERS_HPP
#define DIST_HPP_WORKERS_HPP

#include <utility>

#include "strategy.hpp"

namespace dist {

// For dist_worker_options.network, which retains it.
class network {
 public:
  explicit network(int32_t num_workers) { check(dist_network_create(num_workers, nullptr, &handle_)); }
  network(int32_t num_workers, const dist_network_options &options) {
    check(dist_network_create(num_workers, &options, &handle_));
  }
  ~network() { dist_network_destroy(handle_); }
  network(network &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  network &operator=(network &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  network(const network &) = delete;
  network &operator=(const network &) = delete;

  [[nodiscard]] dist_network *get() const noexcept { return handle_; }

 private:
  dist_network *handle_ = nullptr;
};

inline void strategy_ref::reform() const { check(dist_strategy_reform(handle_, nullptr)); }

inline void strategy_ref::reform(const dist_reform_options &options) const {
  check(dist_strategy_reform(handle_, &options));
}

inline bool strategy_ref::reform_due() const {
  int32_t due = 0;
  check(dist_strategy_reform_due(handle_, &due));
  return due != 0;
}

}  // namespace dist

#endif  // DIST_HPP_WORKERS_HPP
