// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/workers.hpp: workers.h for C++: how workers that are strategies of one process reach each other, and how workers
// that come and go re-form. All of it is experimental.
#ifndef DIST_HPP_WORKERS_HPP
#define DIST_HPP_WORKERS_HPP

#include "error.hpp"

#endif  // DIST_HPP_WORKERS_HPP

// ---- Experimental: what follows may change or go in any version, as types.h says

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_HPP_WORKERS_EXPERIMENTAL_HPP)
#define DIST_HPP_WORKERS_EXPERIMENTAL_HPP

#include <utility>

#include "error.hpp"
#include "strategy.hpp"

namespace dist {

// For dist_strategy_options.network, which holds it.
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

#endif  // DIST_EXPERIMENTAL
