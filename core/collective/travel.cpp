// SPDX-License-Identifier: Apache-2.0
#include "core/collective/travel.hpp"

#include <algorithm>
#include <cstring>

#include "core/collective/algorithm.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/identity.hpp"
#include "core/kernel/reduce.hpp"

namespace dist {
namespace {

std::size_t given(const Slot& slot) noexcept { return static_cast<std::size_t>(slot.travels); }
// The bytes that a member expects, counted in the input's dtype.
std::size_t wanted(const Slot& slot) noexcept { return reinterpret_cast<std::uintptr_t>(slot.extra); }

}  // namespace

Travel::Travel(const Member& member, const Call& call) noexcept
    : group_(member.group), call_(call), me_(member.me), size_(member.group.size()), bytes_(Slot::kStays) {
  if (!can_travel()) return;
  std::size_t bytes = call.in != nullptr ? call.bytes : 0;
  if (is_list()) {
    bytes = first_place();
    for (std::size_t t = 0; t < call.n; ++t) {
      sizes_[t] = elements_of(call.in[t]) * dtype_size(call.in[t].dtype);
      bytes += room_of(t);
    }
  }
  if (bytes <= most_bytes()) bytes_ = static_cast<std::ptrdiff_t>(bytes);
}

// The most that a member may bring. A member that receives parts gets this much from all members together;
// otherwise it may get this much from each one.
std::size_t Travel::most_bytes() const noexcept {
  const CollectiveTraits& traits = call_.traits();
  if (traits.cuts || traits.sources == Ends::kRoot) return EagerPayload::kBytes;
  if (traits.reduces) return most_that_travels(size_);
  const auto peers = static_cast<std::size_t>(size_ > 1 ? size_ - 1 : 1);
  return std::max(EagerPayload::kBytes / peers, Slot::kInlineBytes);
}

bool Travel::can_travel() const noexcept {
  const CollectiveTraits& traits = call_.traits();
  if (call_.strided || !call_.plain() || call_.splits != nullptr) return false;
  // Packing longer lists takes more time than a second phase, and other collectives rarely have lists.
  if (call_.n > kMostTensors ||
      (call_.n != 1 && (call_.collective != Collective::kAllReduce || size_ > kMostOfLists)))
    return false;
  if (traits.pairs() || traits.fused) return false;
  if (call_.reduces() && (call_.op == DIST_REDUCE_USER || call_.numerics != DIST_NUMERICS_ORDERED))
    return false;
  if (traits.whole()) return true;
  // The parts that are cut or joined are contiguous.
  for (int32_t i = 0; i < call_.axis_of(0); ++i) {
    if (like().shape[i] != 1) return false;
  }
  return true;
}

void Travel::put() const noexcept {
  std::size_t out = 0;
  if (bytes_ >= 0 && is_list()) {
    put_list();
  } else if (bytes_ >= 0) {
    if (call_.out != nullptr) out = elements_of(call_.out[0]) * dtype_size(like().dtype);
    const auto bytes = static_cast<std::size_t>(bytes_);
    if (bytes != 0) std::memcpy(group_.outgoing_bytes(me_, beside(bytes)), call_.in[0].data, bytes);
  }
  // The slot is written last, because a peer may be looking for the number in it.
  Slot& slot = group_.outgoing(me_);
  call_.describe_in(slot.descriptor);
  slot.travels = static_cast<int32_t>(bytes_);
  slot.extra = reinterpret_cast<const void*>(out);
}

bool Travel::all_travel() const noexcept {
  if (bytes_ < 0) return false;
  for (int p = 0; p < size_; ++p) {
    if (slot(p).travels < 0) return false;
  }
  if (is_list()) return !list_overlaps();
  if (!call_.traits().whole() && !parts_fit()) return false;
  // An output that members share is a buffer of the peers.
  if (shared()) return false;
  // In a small group all members check each other for overlaps. In a larger one the affected member reports
  // them.
  for (int p = 0; p < size_ && size_ <= kFew; ++p) {
    if (harmed_by(p) >= 0) return false;
  }
  return true;
}

bool Travel::shared() const noexcept {
  if (!call_.traits().alike() || call_.traits().destinations != Ends::kAll || size_ == 1) return false;
  const void* const first = slot(0).descriptor.out_data;
  for (int p = 1; p < size_; ++p) {
    if (slot(p).descriptor.out_data != first) return false;
  }
  return first != nullptr;
}

// Whether the sizes of the parts add up, and each part inside a whole tensor is at its own place there.
bool Travel::parts_fit() const noexcept {
  const bool joins = call_.joins();
  std::size_t parts = 0;
  std::size_t whole = 0;
  for (int p = 0; p < size_; ++p) {
    const Slot& its = slot(p);
    if (!own_place(p, parts)) return false;
    parts += call_.traits().swaps() ? given(its) / static_cast<std::size_t>(size_)
             : joins                ? given(its)
                                    : wanted(its);
    if (!joins && call_.gives(p)) whole = given(its);
  }
  if (!joins) return parts == whole;
  for (int p = 0; p < size_; ++p) {
    if (call_.gets(p) && wanted(slot(p)) != parts) return false;
  }
  return true;
}

bool Travel::own_place(int rank, std::size_t before) const noexcept {
  if (!call_.traits().may_lie_inside()) return true;
  const Slot& its = slot(rank);
  const std::byte* const in = its.descriptor.in_data;
  const std::byte* const out = its.descriptor.out_data;
  if (in == nullptr || out == nullptr || !overlap(in, given(its), out, wanted(its))) return true;
  return call_.joins() ? in == out + before : out == in + before;
}

// A member with a buffer that overlaps the output of `rank`; -1: none. An input may be the output itself if
// all members receive the same: an element is read before it is written.
int Travel::harmed_by(int rank) const noexcept {
  const dist_dtype in_dtype = like().dtype;
  const dist_dtype dtype = call_.out_dtype(in_dtype);
  const auto out_bytes = [&](const Slot& its) {
    return wanted(its) / dtype_size(in_dtype) * dtype_size(dtype);
  };
  const std::byte* const out = slot(rank).descriptor.out_data;
  const std::size_t bytes = out_bytes(slot(rank));
  if (out == nullptr || bytes == 0) return -1;
  for (int p = 0; p < size_; ++p) {
    if (p == rank) continue;
    const Slot& theirs = slot(p);
    const CallDescriptor& descriptor = theirs.descriptor;
    if (descriptor.out_data != nullptr && overlap(descriptor.out_data, out_bytes(theirs), out, bytes))
      return p;
    const bool in_place =
        call_.traits().alike() && call_.traits().whole() && descriptor.in_data == out && dtype == in_dtype;
    if (descriptor.in_data != nullptr && !in_place && overlap(descriptor.in_data, given(theirs), out, bytes))
      return p;
  }
  return -1;
}

std::byte* Travel::output_of(int rank, std::size_t t) const noexcept {
  std::byte* output;
  std::memcpy(&output, brought_by(rank) + t * sizeof output, sizeof output);
  return output;
}

void Travel::put_list() const noexcept {
  std::byte* const to = group_.outgoing_bytes(me_, beside(static_cast<std::size_t>(bytes_)));
  std::size_t place = first_place();
  for (std::size_t t = 0; t < call_.n; ++t) {
    const void* const output = call_.out[t].data;
    std::memcpy(to + t * sizeof output, &output, sizeof output);
    if (sizes_[t] != 0) std::memcpy(to + place, call_.in[t].data, sizes_[t]);
    place += room_of(t);
  }
}

// Whether the outputs of one tensor of some members overlap or are the same.
bool Travel::list_overlaps() const noexcept {
  for (std::size_t t = 0; t < call_.n; ++t) {
    const dist_dtype dtype = call_.in[t].dtype;
    const std::size_t bytes = sizes_[t] / dtype_size(dtype) * dtype_size(call_.out_dtype(dtype));
    for (int p = 1; p < size_ && bytes != 0; ++p) {
      for (int q = 0; q < p; ++q) {
        if (overlap(output_of(p, t), bytes, output_of(q, t), bytes)) return true;
      }
    }
  }
  return false;
}

void Travel::take_list() const noexcept {
  const auto all = static_cast<std::size_t>(size_);
  const FpEnvironment environment;
  const std::byte* brought[kMostOfLists];
  for (std::size_t p = 0; p < all; ++p) brought[p] = brought_by(static_cast<int>(p)) + first_place();
  dist_dtype dtype{};
  ReduceKernel kernel = nullptr;
  for (std::size_t t = 0; t < call_.n; ++t) {
    if (call_.in[t].dtype != dtype) {
      dtype = call_.in[t].dtype;
      kernel = reduce_kernel(dtype, call_.op);
    }
    auto* to = static_cast<std::byte*>(call_.out[t].data);
    const std::size_t count = sizes_[t] / dtype_size(dtype);
    if (count != 0) kernel({brought, &to, all, 1, count, static_cast<double>(all), false});
    for (std::size_t p = 0; p < all; ++p) brought[p] += room_of(t);
  }
}

int Travel::overlapping() const noexcept { return is_list() || size_ <= kFew ? -1 : harmed_by(me_); }

// Folds `bytes` of what the first `count` members bring, starting at byte `from`, into the output.
void Travel::fold(std::size_t count, std::size_t from, std::size_t bytes) const noexcept {
  auto* to = static_cast<std::byte*>(call_.out[0].data);
  const std::byte* src[kMostBySlots];
  for (std::size_t p = 0; p < count; ++p) src[p] = brought_by(static_cast<int>(p)) + from;
  const dist_dtype dtype = call_.in[0].dtype;
  reduce_kernel(dtype,
                call_.op)({src, &to, count, 1, bytes / dtype_size(dtype), static_cast<double>(count), false});
}

void Travel::take() const noexcept {
  if (call_.out == nullptr) return;
  if (is_list()) return take_list();
  if (!call_.reduces()) return call_.traits().whole() ? take_whole() : take_part();
  const FpEnvironment environment;
  call_.traits().whole() ? take_whole() : take_part();
}

void Travel::take_whole() const noexcept {
  const std::size_t bytes = wanted(slot(me_));
  if (bytes == 0) return;
  const auto all = static_cast<std::size_t>(size_);
  if (!call_.reduces())
    return static_cast<void>(std::memcpy(call_.out[0].data, brought_by(call_.root), bytes));
  if (!call_.traits().prefixes) return fold(all, 0, bytes);
  const std::size_t count = static_cast<std::size_t>(me_) + (call_.kind == DIST_SCAN_INCLUSIVE ? 1 : 0);
  if (count != 0) return fold(count, 0, bytes);
  fill_identity(call_.in[0].dtype, call_.op, static_cast<std::byte*>(call_.out[0].data),
                elements_of(call_.in[0]));
}

void Travel::take_part() const noexcept {
  auto* const out = static_cast<std::byte*>(call_.out[0].data);
  std::size_t before = 0;
  if (!call_.joins()) {
    for (int p = 0; p < me_; ++p) before += wanted(slot(p));
    const std::size_t bytes = wanted(slot(me_));
    if (bytes == 0) return;
    if (call_.reduces()) return fold(static_cast<std::size_t>(size_), before, bytes);
    return static_cast<void>(std::memcpy(out, brought_by(call_.root) + before, bytes));
  }
  for (int p = 0; p < size_; ++p) {
    std::size_t bytes = given(slot(p));
    if (call_.traits().swaps()) bytes /= static_cast<std::size_t>(size_);
    const std::size_t from = call_.traits().swaps() ? bytes * static_cast<std::size_t>(me_) : 0;
    if (bytes != 0) std::memcpy(out + before, brought_by(p) + from, bytes);
    before += bytes;
  }
}

}  // namespace dist
