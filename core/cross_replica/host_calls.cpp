// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/host_calls.hpp"

#include <memory_resource>
#include <vector>

#include "core/base/host_call.hpp"
#include "core/base/tensor.hpp"
#include "core/cross_replica/cross_device.hpp"

namespace dist {

bool host_reduces(const CrossReplica& context) noexcept {
  return context.cross_device != nullptr && context.cross_device->host().reduce != nullptr;
}

Status make_result(Memory& memory, dist_reduce_op op, const dist_tensor& like, ValueRef* out) {
  dist_tensor wanted = like;
  wanted.data = nullptr;
  wanted.strides = nullptr;
  if (op == DIST_REDUCE_MEAN) wanted.dtype = dtype_of_mean(like.dtype);
  return Value::copy_tensor(memory, wanted, out);
}

Status reduce_by_host(const CrossReplica& context, dist_reduce_op op, std::span<const dist_tensor> tensors,
                      ValueRef* out) {
  ValueRef result;
  DIST_TRY(make_result(*context.memory, op, tensors[0], &result));
  dist_tensor to = result->tensor();
  const HostFunctions& host = context.cross_device->host();
  const uint64_t before = failures_on_this_thread();
  const dist_status status = guarded("the reduce function", [&] {
    return host.reduce(op, tensors.data(), tensors.size(), &to, host.user_data);
  });
  DIST_TRY(host_status(status, before, "reduce function"));
  *out = std::move(result);
  return kOk;
}

Status broadcast_by_host(const CrossReplica& context, const dist_tensor& value, ValueRef* out) {
  const auto n = static_cast<std::size_t>(context.replicas.local());
  dist_tensor wanted = value;
  wanted.data = nullptr;
  wanted.strides = nullptr;
  std::pmr::vector<ValueRef> copies(n, context.memory);
  std::pmr::vector<Value*> components(n, context.memory);
  std::pmr::vector<dist_tensor> tensors(n, context.memory);
  for (std::size_t r = 0; r < n; ++r) {
    DIST_TRY(Value::copy_tensor(*context.memory, wanted, &copies[r]));
    components[r] = copies[r].get();
    tensors[r] = copies[r]->tensor();
  }
  const HostFunctions& host = context.cross_device->host();
  const uint64_t before = failures_on_this_thread();
  const dist_status status = guarded(
      "the broadcast function", [&] { return host.broadcast(&value, tensors.data(), n, host.user_data); });
  DIST_TRY(host_status(status, before, "broadcast function"));
  return Value::create(*context.memory, DIST_VALUE_MIRRORED, components, out);
}

Status gather_by_host(const CrossReplica& context, std::span<const dist_tensor> tensors, int32_t axis,
                      dist_tensor to) noexcept {
  const HostFunctions& host = context.cross_device->host();
  const uint64_t before = failures_on_this_thread();
  const dist_status status = guarded("the gather function", [&] {
    return host.gather(tensors.data(), tensors.size(), axis, &to, host.user_data);
  });
  return host_status(status, before, "gather function");
}

}  // namespace dist
