// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/targets.hpp"
#include "core/kernel/highway_names.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

namespace dist {
namespace {

struct Targets {
  Targets() noexcept : simd(hwy::SupportedTargets() & HWY_TARGETS & ~(HWY_SCALAR | HWY_EMU128)) {
    std::size_t n = 0;
    for (int64_t left = simd; left != 0; left &= left - 1) names[n++] = hwy::TargetName(left & -left);
    names[n] = kScalarTarget;
  }
  int64_t simd;  // one bit each, as Highway numbers them; the widest target has the lowest
  const char* names[HWY_MAX_DYNAMIC_TARGETS + 2] = {};
};

// The CPU is queried only once, because under a hypervisor each CPUID instruction traps.
const Targets& targets() noexcept {
  static const Targets found;
  return found;
}

int index_of([[maybe_unused]] int64_t target) noexcept {
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
  return 0;
#else
  return std::countr_zero(static_cast<uint64_t>(HWY_CHOSEN_TARGET_SHIFT(target)));
#endif
}

}  // namespace

const char* const* kernel_targets() noexcept { return targets().names; }

int table_index_of(const char* target) noexcept {
  for (int64_t left = targets().simd; left != 0; left &= left - 1) {
    const int64_t one = left & -left;
    if (std::strcmp(target, hwy::TargetName(one)) == 0) return index_of(one);
  }
  return -1;
}

}  // namespace dist
