// SPDX-License-Identifier: Apache-2.0
#include "core/collective/one_tensor.hpp"

#include <algorithm>

#include "core/collective/algorithm.hpp"
#include "core/collective/collectives.hpp"
#include "core/collective/exchange.hpp"
#include "core/kernel/fp_environment.hpp"

namespace dist {

OneTensor::OneTensor(const Call& call) noexcept {
  const dist_dtype dtype = call.in[0].dtype;
  kernel = reduce_kernel(dtype, call.op);
  bytes = call.bytes;
  log_in_size = std::countr_zero(dtype_size(dtype));
  out_size = dtype_size(call.out_dtype(dtype));
  out_bytes = elements() * out_size;
}

bool reduces_in_parts(const Member& member, const OneTensor& one, bool in_place) noexcept {
  const auto members = static_cast<std::size_t>(member.group.size());
  return one.bytes <= kStaticBytes &&
         (in_place || one.bytes <= Exchange::stream_bytes(members, member.cache_bytes));
}

bool reduce_part(const Member& member, const OneTensor& one) noexcept {
  Group& group = member.group;
  const std::byte* src[kMostBySlots];
  std::byte* dst[kMostBySlots];
  const int size = group.size();
  std::byte* const own = group.slot(member.me, member.me).descriptor.out_data;
  bool shared = true;
  bool apart = true;
  for (int p = 0; p < size; ++p) {
    const CallDescriptor& descriptor = group.slot(member.me, p).descriptor;
    if (descriptor.strided) return false;
    src[p] = descriptor.in_data;
    dst[p] = descriptor.out_data;
    shared = shared && dst[p] == own;
    if (p == member.me) continue;
    apart = apart && !overlap(dst[p], one.out_bytes, own, one.out_bytes);
    // Each element is read before it is written.
    const bool in_place = src[p] == own && one.bytes == one.out_bytes;
    if (!in_place && overlap(src[p], one.bytes, own, one.out_bytes)) return false;
  }
  if (!apart && !shared) return false;

  const auto members = static_cast<std::size_t>(size);
  const std::size_t num_dst = shared ? 1 : members;
  const Range part = part_of(units_of(one.bytes), members, static_cast<std::size_t>(member.me));
  const std::size_t end = std::min(part.end * kUnitBytes >> one.log_in_size, one.elements());
  const std::size_t block = Exchange::kBlockUnits * kUnitBytes >> one.log_in_size;
  const FpEnvironment environment;
  std::size_t moved = 0;  // number of elements by which the pointers have been advanced
  for (std::size_t at = part.begin * kUnitBytes >> one.log_in_size; at < end; at += block) {
    for (std::size_t p = 0; p < members; ++p) src[p] += (at - moved) << one.log_in_size;
    for (std::size_t p = 0; p < num_dst; ++p) dst[p] += (at - moved) * one.out_size;
    moved = at;
    one.kernel({src, dst, members, num_dst, std::min(end - at, block), static_cast<double>(members), false});
    if (group.aborted()) break;
  }
  return true;
}

[[gnu::noinline, gnu::cold]] Status refuse_overlap(const Member& member, Collective collective,
                                                   int peer) noexcept {
  ErrorRecord why;
  overlap_report(member.group, member.me, peer, 0, traits_of(collective).alike(), &why);
  return member.group.refuse(
      member.me, refusal(member.group, collective, member.tag, member.group.sequence(member.me), why));
}

}  // namespace dist
