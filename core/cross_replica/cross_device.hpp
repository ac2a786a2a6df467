// SPDX-License-Identifier: Apache-2.0
// CrossDevice: an object that reduces, broadcasts and gathers values. All of TensorFlow's kinds use libdist's
// own arithmetic, so the choice between them does not affect the bits. If the host supplies its own operator
// or functions, these determine the results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/arena.hpp"
#include "core/base/device_name.hpp"
#include "core/base/host_call.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/base/tensor.hpp"
#include "core/cross_replica/cross_replica.hpp"
#include "dist/types.h"

namespace dist {

// acc[i] = op(acc[i], in[i])
using AccumulateFn = void (*)(void* acc, const void* in, int64_t count, dist_dtype dtype, void* user_data);

// Functions of the host, each of which writes to tensors that libdist has allocated. NULL selects libdist's
// own.
struct HostFunctions {
  dist_reduce_values_fn reduce = nullptr;
  dist_broadcast_values_fn broadcast = nullptr;
  dist_gather_values_fn gather = nullptr;
  void* user_data = nullptr;
};

struct CrossDeviceOptions {
  dist_cross_device_kind kind = DIST_CROSS_DEVICE_DEFAULT;
  const char* reduce_to_device = nullptr;
  AccumulateFn accumulate = nullptr;
  void* accumulate_user_data = nullptr;
  std::size_t accumulate_element_bytes = 0;  // 0: that of the dtype
  HostFunctions host;
  bool has_functions = false;  // the host passed a table, which may be empty
};

class CrossDevice final : public Counted {
 public:
  static Status create(Memory& memory, const CrossDeviceOptions& options, Ref<CrossDevice>* out);

  dist_cross_device_kind kind() const noexcept { return kind_; }
  // NULL if none was requested.
  const char* reduce_to_device() const noexcept { return has_device_ ? device_.c_str() : nullptr; }

  bool accumulates() const noexcept { return accumulate_ != nullptr; }
  const HostFunctions& host() const noexcept { return host_; }
  bool calls_host() const noexcept {
    return accumulates() || host_.reduce != nullptr || host_.broadcast != nullptr || host_.gather != nullptr;
  }

  // acc = acc op value with the host's operator, in its element type; both are row-major without gaps.
  // check_elements() must have accepted the host's element size. Fails if the operator throws.
  Status accumulate(const dist_tensor& value, std::size_t bytes, void* acc) const {
    const std::size_t each = element_bytes_ != 0 ? element_bytes_ : dtype_size(value.dtype);
    const HostCall inside("a reduction operator", HostCall::Refuses::kCalls);
    const bool done = guarded_void("the reduction operator", [&] {
      accumulate_(acc, value.data, bytes / each, value.dtype, accumulate_user_data_);
    });
    return done ? kOk : Status(last_error().code);
  }
  Status check_elements(const dist_tensor& value, std::size_t bytes) const noexcept;

  // The context of these operations for `n` replicas that belong to no strategy.
  CrossReplica alone(int32_t n) noexcept {
    return {&memory(), ReplicaCount(n), &arena_, DIST_STRATEGY_MIRRORED, this};
  }

 private:
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);

  CrossDevice(Memory& memory, const CrossDeviceOptions& options, const DeviceName& device);
  ~CrossDevice() override = default;

  const dist_cross_device_kind kind_;
  const bool has_device_;
  const DeviceName device_;
  const AccumulateFn accumulate_;
  void* const accumulate_user_data_;
  const std::size_t element_bytes_;
  const HostFunctions host_;
  Arena arena_;
};

// Converts the status that a host function returned. Adds a message if the function has recorded none. `what`
// is the function's name.
Status host_status(dist_status status, uint64_t failures_before, const char* what) noexcept;

}  // namespace dist
