// SPDX-License-Identifier: Apache-2.0
#include "core/collective/travel.hpp"

#include <cstring>

#include "core/collective/route.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/identity.hpp"
#include "core/kernel/reduce.hpp"

namespace dist {
namespace {

std::size_t given(const Slot& slot) noexcept { return static_cast<std::size_t>(slot.travels); }
// In bytes of the input's dtype.
std::size_t wanted(const Slot& slot) noexcept { return reinterpret_cast<std::uintptr_t>(slot.extra); }

}  // namespace

Travel::Travel(const Member& member, const Call& call) noexcept
    : group_(member.group), call_(call), me_(member.me), size_(member.group.size()), bytes_(Slot::kStays) {
  fetched_ = call.bytes;
  if (!can_travel()) return;
  std::size_t bytes = call.in != nullptr ? call.bytes : 0;
  if (call.n > 1) {
    // Outputs are told, too.
    const std::size_t table = call.n * sizeof(Buffers);
    fetched_ = table;
    for (std::size_t t = 0; t < call.n; ++t) fetched_ += place_of(size_of(t));
    bytes = call.in != nullptr ? fetched_ : table;
  }
  if (bytes <= most_that_travels(size_)) bytes_ = static_cast<std::ptrdiff_t>(bytes);
}

bool Travel::can_travel() const noexcept {
  const CollectiveTraits& traits = call_.traits();
  if (call_.n == 0 || call_.strided || !call_.plain() || call_.splits != nullptr || traits.pairs() ||
      traits.fused)
    return false;
  if (call_.reduces() && (call_.op == DIST_REDUCE_USER || call_.numerics != DIST_NUMERICS_ORDERED))
    return false;
  // Lists are not looked through before it is clear that they are short.
  if (call_.bytes > EagerPayload::kBytes) return false;
  if (call_.n > 1) return traits.whole() && call_.n <= EagerPayload::kBytes / 16;
  if (traits.whole()) return call_.n == 1;
  // What is cut off or joined lies side by side.
  const dist_tensor& tensor = call_.in != nullptr ? call_.in[0] : call_.out[0];
  for (int32_t i = 0; i < call_.axis_of(0); ++i) {
    if (tensor.shape[i] != 1) return false;
  }
  return call_.n == 1;
}

// How many bytes of tensor t travel.
std::size_t Travel::size_of(std::size_t t) const noexcept {
  const dist_tensor& tensor = call_.in != nullptr ? call_.in[t] : call_.out[t];
  return elements_of(tensor) * dtype_size(tensor.dtype);
}

void Travel::put() const noexcept {
  Slot& slot = group_.outgoing(me_);
  slot.travels = static_cast<int32_t>(bytes_);
  if (bytes_ < 0) return;
  std::size_t out = 0;
  if (call_.n == 1 && call_.out != nullptr) {
    const dist_tensor& like = call_.in != nullptr ? call_.in[0] : call_.out[0];
    out = elements_of(call_.out[0]) * dtype_size(like.dtype);
  }
  slot.extra = reinterpret_cast<const void*>(out);
  if (bytes_ == 0) return;
  std::byte* to = group_.outgoing_bytes(me_, beside(static_cast<std::size_t>(bytes_)));
  if (call_.n == 1)
    return static_cast<void>(std::memcpy(to, call_.in[0].data, static_cast<std::size_t>(bytes_)));
  for (std::size_t t = 0; t < call_.n; ++t) {
    const Buffers own{call_.in != nullptr ? call_.in[t].data : nullptr,
                      call_.out != nullptr ? call_.out[t].data : nullptr};
    std::memcpy(to + t * sizeof own, &own, sizeof own);
  }
  to += call_.n * sizeof(Buffers);
  for (std::size_t t = 0; t < call_.n && call_.in != nullptr; ++t) {
    if (size_of(t) != 0) std::memcpy(to, call_.in[t].data, size_of(t));
    to += place_of(size_of(t));
  }
}

Travel::Buffers Travel::buffers_of(int rank, std::size_t t) const noexcept {
  if (call_.n == 1) return {slot(rank).offer.in_data, slot(rank).offer.out_data};
  Buffers buffers;
  std::memcpy(&buffers, brought_by(rank) + t * sizeof buffers, sizeof buffers);
  return buffers;
}

bool Travel::all_travel() const noexcept {
  if (bytes_ < 0) return false;
  for (int p = 0; p < size_; ++p) {
    if (slot(p).travels < 0) return false;
  }
  if (!call_.traits().whole() && !parts_fit()) return false;
  // An output that members share is a buffer of peers.
  for (std::size_t t = 0; t < call_.n; ++t) {
    if (shared(t)) return false;
    // Few find out together what overlaps; else whoever is concerned reports it.
    for (int p = 0; p < size_ && size_ <= kFew; ++p) {
      if (harmed_by(p, t) >= 0) return false;
    }
  }
  return true;
}

bool Travel::shared(std::size_t t) const noexcept {
  if (!call_.traits().alike() || call_.traits().destinations != Ends::kAll || size_ == 1) return false;
  const void* const first = buffers_of(0, t).out;
  for (int p = 1; p < size_; ++p) {
    if (buffers_of(p, t).out != first) return false;
  }
  return first != nullptr;
}

// Whether the sizes of the parts add up, and each part that lies in a whole lies at its own place there.
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
  const std::byte* const in = its.offer.in_data;
  const std::byte* const out = its.offer.out_data;
  if (in == nullptr || out == nullptr || !overlap(in, given(its), out, wanted(its))) return true;
  return call_.joins() ? in == out + before : out == in + before;
}

// A member with a buffer that overlaps the output of `rank`; -1: none. An input may be an output that gets what
// all get: who writes an element has read it before.
int Travel::harmed_by(int rank, std::size_t t) const noexcept {
  const dist_tensor& like = call_.in != nullptr ? call_.in[t] : call_.out[t];
  const dist_dtype dtype = call_.out_dtype(like.dtype);
  const std::size_t all = size_of(t);
  const auto in_bytes = [&](int p) { return call_.n == 1 ? given(slot(p)) : all; };
  const auto out_bytes = [&](int p) {
    return (call_.n == 1 ? wanted(slot(p)) : all) / dtype_size(like.dtype) * dtype_size(dtype);
  };
  const void* const out = buffers_of(rank, t).out;
  const std::size_t bytes = out_bytes(rank);
  if (out == nullptr || bytes == 0) return -1;
  for (int p = 0; p < size_; ++p) {
    if (p == rank) continue;
    const Buffers theirs = buffers_of(p, t);
    if (theirs.out != nullptr && overlap(theirs.out, out_bytes(p), out, bytes)) return p;
    const bool in_place =
        call_.traits().alike() && call_.traits().whole() && theirs.in == out && dtype == like.dtype;
    if (theirs.in != nullptr && !in_place && overlap(theirs.in, in_bytes(p), out, bytes)) return p;
  }
  return -1;
}

int Travel::overlapping(std::size_t* out_tensor) const noexcept {
  if (size_ <= kFew) return -1;
  for (std::size_t t = 0; t < call_.n; ++t) {
    *out_tensor = t;
    if (const int peer = harmed_by(me_, t); peer >= 0) return peer;
  }
  return -1;
}

// Folds `bytes` of what the first `count` members bring, from byte `from` on, into output t.
void Travel::fold(std::size_t t, std::size_t count, std::size_t from, std::size_t bytes) const noexcept {
  auto* to = static_cast<std::byte*>(call_.out[t].data);
  const std::byte* src[DIST_MAX_REPLICAS];
  for (std::size_t p = 0; p < count; ++p) src[p] = brought_by(static_cast<int>(p)) + from;
  const dist_dtype dtype = call_.in[t].dtype;
  reduce_kernel(dtype,
                call_.op)({src, &to, count, 1, bytes / dtype_size(dtype), static_cast<double>(count), false});
}

void Travel::take() const noexcept {
  if (call_.out == nullptr) return;
  if (!call_.reduces()) return call_.traits().whole() ? take_tensors() : take_parts();
  const FpEnvironment environment;
  call_.traits().whole() ? take_tensors() : take_parts();
}

void Travel::take_tensors() const noexcept {
  std::size_t from = call_.n == 1 ? 0 : call_.n * sizeof(Buffers);
  for (std::size_t t = 0; t < call_.n; ++t) {
    const std::size_t bytes = size_of(t);
    auto* const to = static_cast<std::byte*>(call_.out[t].data);
    if (bytes == 0) continue;
    if (!call_.reduces()) {
      std::memcpy(to, brought_by(call_.root) + from, bytes);
    } else if (!call_.traits().prefixes) {
      fold(t, static_cast<std::size_t>(size_), from, bytes);
    } else if (call_.kind == DIST_SCAN_INCLUSIVE || me_ != 0) {
      fold(t, static_cast<std::size_t>(me_) + (call_.kind == DIST_SCAN_INCLUSIVE ? 1 : 0), from, bytes);
    } else {
      fill_identity(call_.in[t].dtype, call_.op, to, elements_of(call_.in[t]));
    }
    from += place_of(bytes);
  }
}

void Travel::take_parts() const noexcept {
  auto* const out = static_cast<std::byte*>(call_.out[0].data);
  std::size_t before = 0;
  if (!call_.joins()) {
    for (int p = 0; p < me_; ++p) before += wanted(slot(p));
    const std::size_t bytes = wanted(slot(me_));
    if (bytes == 0) return;
    if (call_.reduces()) return fold(0, static_cast<std::size_t>(size_), before, bytes);
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
