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
  const std::size_t bytes = call.in != nullptr ? call.bytes : 0;
  if (can_travel() && bytes <= most_that_travels(size_)) bytes_ = static_cast<std::ptrdiff_t>(bytes);
}

bool Travel::can_travel() const noexcept {
  const CollectiveTraits& traits = call_.traits();
  // A list is checked and packed for longer than it takes to meet once more.
  if (call_.n != 1 || call_.strided || !call_.plain() || call_.splits != nullptr) return false;
  if (traits.pairs() || traits.fused) return false;
  if (call_.reduces() && (call_.op == DIST_REDUCE_USER || call_.numerics != DIST_NUMERICS_ORDERED))
    return false;
  if (traits.whole()) return true;
  // What is cut off or joined lies side by side.
  for (int32_t i = 0; i < call_.axis_of(0); ++i) {
    if (like().shape[i] != 1) return false;
  }
  return true;
}

void Travel::put() const noexcept {
  Slot& slot = group_.outgoing(me_);
  slot.travels = static_cast<int32_t>(bytes_);
  if (bytes_ < 0) return;
  std::size_t out = 0;
  if (call_.out != nullptr) out = elements_of(call_.out[0]) * dtype_size(like().dtype);
  slot.extra = reinterpret_cast<const void*>(out);
  if (bytes_ == 0) return;
  const auto bytes = static_cast<std::size_t>(bytes_);
  std::memcpy(group_.outgoing_bytes(me_, beside(bytes)), call_.in[0].data, bytes);
}

bool Travel::all_travel() const noexcept {
  if (bytes_ < 0) return false;
  for (int p = 0; p < size_; ++p) {
    if (slot(p).travels < 0) return false;
  }
  if (!call_.traits().whole() && !parts_fit()) return false;
  // An output that members share is a buffer of peers.
  if (shared()) return false;
  // Few find out together what overlaps; else whoever is concerned reports it.
  for (int p = 0; p < size_ && size_ <= kFew; ++p) {
    if (harmed_by(p) >= 0) return false;
  }
  return true;
}

bool Travel::shared() const noexcept {
  if (!call_.traits().alike() || call_.traits().destinations != Ends::kAll || size_ == 1) return false;
  const void* const first = slot(0).offer.out_data;
  for (int p = 1; p < size_; ++p) {
    if (slot(p).offer.out_data != first) return false;
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
int Travel::harmed_by(int rank) const noexcept {
  const dist_dtype in_dtype = like().dtype;
  const dist_dtype dtype = call_.out_dtype(in_dtype);
  const auto out_bytes = [&](const Slot& its) {
    return wanted(its) / dtype_size(in_dtype) * dtype_size(dtype);
  };
  const std::byte* const out = slot(rank).offer.out_data;
  const std::size_t bytes = out_bytes(slot(rank));
  if (out == nullptr || bytes == 0) return -1;
  for (int p = 0; p < size_; ++p) {
    if (p == rank) continue;
    const Slot& theirs = slot(p);
    const Offer& offer = theirs.offer;
    if (offer.out_data != nullptr && overlap(offer.out_data, out_bytes(theirs), out, bytes)) return p;
    const bool in_place =
        call_.traits().alike() && call_.traits().whole() && offer.in_data == out && dtype == in_dtype;
    if (offer.in_data != nullptr && !in_place && overlap(offer.in_data, given(theirs), out, bytes)) return p;
  }
  return -1;
}

int Travel::overlapping() const noexcept { return size_ <= kFew ? -1 : harmed_by(me_); }

// Folds `bytes` of what the first `count` members bring, from byte `from` on, into the output.
void Travel::fold(std::size_t count, std::size_t from, std::size_t bytes) const noexcept {
  auto* to = static_cast<std::byte*>(call_.out[0].data);
  const std::byte* src[DIST_MAX_REPLICAS];
  for (std::size_t p = 0; p < count; ++p) src[p] = brought_by(static_cast<int>(p)) + from;
  const dist_dtype dtype = call_.in[0].dtype;
  reduce_kernel(dtype,
                call_.op)({src, &to, count, 1, bytes / dtype_size(dtype), static_cast<double>(count), false});
}

void Travel::take() const noexcept {
  if (call_.out == nullptr) return;
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
