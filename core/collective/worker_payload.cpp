// SPDX-License-Identifier: Apache-2.0
#include "core/collective/worker_payload.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/wire.hpp"

namespace dist {
namespace {

constexpr std::size_t kAlign = 64;
constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + kAlign - 1) / kAlign * kAlign; }

const dist_tensor& like(const Call& call, std::size_t t) noexcept {
  return call.in != nullptr ? call.in[t] : call.out[t];
}
bool has_parts(const Call& call) noexcept { return call.joins() || call.cuts(); }
// Whether a payload must describe anything. If not, the descriptions of all members would be identical.
bool says_something(const Call& call) noexcept {
  return !call.plain() || has_parts(call) || call.offsets != nullptr || call.traits().pairs();
}

}  // namespace

Status pack_payload(const Call& call, const CallDescriptor& descriptor, int num_members,
                    Payload& payload) noexcept {
  const bool parts = has_parts(call);
  const std::size_t lists = call.in == nullptr ? 0 : call.lists();
  const std::size_t offsets = descriptor.offsets != nullptr ? static_cast<std::size_t>(num_members) + 1 : 0;
  const std::size_t weights = descriptor.weights != nullptr ? lists : 0;
  std::size_t said = 0;
  if (says_something(call)) {
    said = sizeof(uint32_t) + 2 + 2 * sizeof(int32_t) +
           ((parts ? 2 * call.n : 0) + offsets + weights) * sizeof(int64_t);
  }
  std::size_t bytes = said;
  for (std::size_t i = 0; payload.complete && i < lists * call.n; ++i)
    bytes = aligned(bytes) + elements_of(call.in[i]) * dtype_size(call.in[i].dtype);
  DIST_TRY(payload.resize(bytes));
  WireWriter writer(payload.data());
  if (said != 0) {
    writer.put(static_cast<uint32_t>(lists));
    writer.put(offsets != 0);
    writer.put(weights != 0);
    writer.put(call.destination);
    writer.put(call.source);
    for (std::size_t t = 0; parts && t < call.n; ++t) {
      const int32_t along = call.axis_of(t);
      const int64_t in_size = call.in != nullptr ? call.in[t].shape[along] : 0;
      const int64_t out_size = call.out != nullptr ? call.out[t].shape[along] : 0;
      writer.put(call.joins() ? in_size : out_size);
      writer.put(call.joins() ? out_size : in_size);
    }
    for (std::size_t r = 0; r < offsets; ++r) writer.put(descriptor.offsets[r]);
    for (std::size_t j = 0; j < weights; ++j) writer.put(descriptor.weights[j]);
  }
  for (std::size_t i = 0; payload.complete && i < lists * call.n; ++i) {
    writer.fill(payload.data() + aligned(static_cast<std::size_t>(writer.at() - payload.data())));
    dist_tensor dense = call.in[i];
    dense.data = writer.at();
    dense.strides = nullptr;
    const std::size_t size = elements_of(dense) * dtype_size(dense.dtype);
    if (size != 0) copy_elements(call.in[i], dense);
    writer = WireWriter(writer.at() + size);
  }
  return kOk;
}

bool PayloadReader::read(int rank, std::span<const std::byte> payload, Room& room,
                         CallDescriptor* out) const noexcept {
  WireReader reader(payload.data(), payload.size());
  const bool parts = has_parts(call_);
  const bool gives = call_.gives(rank) && call_.n != 0;
  std::size_t lists = gives ? 1 : 0;
  bool with_offsets = false;
  bool weighted = false;
  CallDescriptor descriptor{};
  if (says_something(call_)) {
    lists = reader.take_in<uint32_t>(0, call_.reduces() ? most_contributions(num_members_) : 1);
    with_offsets = reader.take<bool>();
    weighted = reader.take<bool>();
    const auto to = reader.take_in<int32_t>(-1, num_members_ - 1);
    const auto from = reader.take_in<int32_t>(-1, num_members_ - 1);
    if (call_.traits().pairs()) descriptor.set_pair(to, from);
    if (!reader.good() || (call_.n != 0 && (lists != 0) != gives) ||
        with_offsets != (call_.offsets != nullptr) || weighted != (call_.weights != nullptr && lists != 0))
      return false;
  }
  // If the elements are not in this payload, only the sizes of a list along the axis are needed.
  const std::size_t in_lists = complete_ ? lists : parts ? std::min<std::size_t>(lists, 1) : 0;
  std::size_t dims = 0;
  for (std::size_t t = 0; t < call_.n; ++t)
    dims += (in_lists + (parts ? 1 : 0)) * static_cast<std::size_t>(like(call_, t).ndim);
  auto* const sizes = room.take<int64_t>(parts ? 2 * call_.n : 0);
  auto* const offsets = room.take<int64_t>(with_offsets ? static_cast<std::size_t>(num_members_) + 1 : 0);
  auto* const weights = room.take<double>(weighted ? lists : 0);
  auto* tensor = room.take<dist_tensor>((in_lists + (parts ? 1 : 0)) * call_.n);
  auto* dim = room.take<int64_t>(dims);
  descriptor.contributions = lists != 0 ? lists : 1;
  out->contributions = descriptor.contributions;
  if (!room.there()) return true;

  for (std::size_t i = 0; parts && i < 2 * call_.n; ++i) {
    sizes[i] = reader.take_in<int64_t>(0, INT64_MAX);
  }
  for (int r = 0; with_offsets && r <= num_members_; ++r) {
    offsets[r] = reader.take_in<int64_t>(r == 0 ? 0 : offsets[r - 1], r == 0 ? 0 : INT64_MAX);
  }
  for (std::size_t t = 0; with_offsets && t < call_.n; ++t) {
    if (sizes[2 * t] != offsets[num_members_]) return false;
  }
  for (std::size_t j = 0; weighted && j < lists; ++j) {
    weights[j] = reader.take<double>();
    if (!(weights[j] >= 0) || std::isinf(weights[j])) return false;
  }
  if (!reader.good()) return false;
  descriptor.weights = weighted ? weights : nullptr;
  descriptor.offsets = with_offsets ? offsets : nullptr;
  // Tensors like this member's own, except for the size along the axis.
  const auto describe = [&](std::size_t t, bool in_side) -> dist_tensor& {
    dist_tensor& made = *tensor++;
    made = like(call_, t);
    made.strides = nullptr;
    made.data = nullptr;
    std::copy_n(like(call_, t).shape, made.ndim, dim);
    if (parts) dim[call_.axis_of(t)] = sizes[2 * t + (call_.joins() == in_side ? 0 : 1)];
    made.shape = dim;
    dim += made.ndim;
    return made;
  };
  const dist_tensor* const in = tensor;
  for (std::size_t i = 0; i < in_lists * call_.n; ++i) {
    dist_tensor& made = describe(i % call_.n, true);
    std::size_t bytes = dtype_size(made.dtype);
    for (int32_t d = 0; d < made.ndim; ++d) {
      if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(made.shape[d]), &bytes)) return false;
    }
    if (!complete_) continue;
    const std::size_t at = payload.size() - reader.left();
    reader.take_bytes(aligned(at) - at);
    made.data = const_cast<std::byte*>(reader.take_bytes(bytes));
    if (!reader.good()) return false;
  }
  const dist_tensor* const out_side = tensor;
  for (std::size_t t = 0; parts && t < call_.n; ++t) describe(t, false);
  descriptor.in = in_lists != 0 ? in : nullptr;
  descriptor.in_data = in_lists != 0 && call_.n != 0 ? static_cast<const std::byte*>(in[0].data) : nullptr;
  descriptor.out = parts ? out_side : nullptr;
  if (parts && call_.n != 0) {
    descriptor.set_sizes(sizes[0], sizes[1]);
  }
  *out = descriptor;
  // If some payloads are complete and others are not, the elements of all are sent again.
  return !complete_ || reader.left() == 0;
}

}  // namespace dist
