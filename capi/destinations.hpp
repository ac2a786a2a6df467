// SPDX-License-Identifier: Apache-2.0
// Reads destinations, for all functions that reduce or broadcast.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "capi/guard.hpp"
#include "core/cross_replica/destination.hpp"

namespace dist::capi {

// NULL means everywhere.
inline Destination destination_of(const dist_destination* destination) noexcept {
  if (destination == nullptr) return {nullptr, nullptr, nullptr, true};
  return {unwrap(destination->variable), unwrap(destination->value), destination->device, false};
}

// n values and their destinations. The destinations are empty if the caller passed NULL.
class Pairs {
 public:
  explicit Pairs(Memory& memory) : values_(&memory), destinations_(&memory) {}

  // `call` is the host's function.
  Status read(dist_value* const* values, const dist_destination* destinations, std::size_t n,
              dist_value** out_values, const char* call) {
    if (n == 0) return kOk;
    DIST_TRY(check_list(values, n, call, "values"));
    DIST_TRY(check_list(out_values, n, call, "out_values"));
    if (destinations != nullptr) DIST_TRY(check_list(destinations, n, call, "destinations"));
    values_.reserve(n);
    for (std::size_t k = 0; k < n; ++k) {
      if (values[k] == nullptr) return invalid_argument("`%s()`: `values[%zu]` is `NULL`", call, k);
      values_.push_back(unwrap(values[k]));
      if (destinations != nullptr) destinations_.push_back(destination_of(&destinations[k]));
    }
    return kOk;
  }

  std::span<Value* const> values() const noexcept { return values_; }
  std::span<const Destination> destinations() const noexcept { return destinations_; }

 private:
  std::pmr::vector<Value*> values_;
  std::pmr::vector<Destination> destinations_;
};

}  // namespace dist::capi
