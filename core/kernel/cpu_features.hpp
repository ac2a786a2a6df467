// SPDX-License-Identifier: Apache-2.0
// Which SIMD targets a CPU has, from what it says of itself. All of a target's features are asked for, as Highway does, and
// whether the system keeps their registers.
#pragma once

#include <cstdint>

namespace dist {

// What an x86 CPU answers to CPUID, and what the system saves of it. All 0: no such leaf.
struct CpuFeatures {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf7_ecx = 0;
  uint32_t leaf7_1_eax = 0;
  uint32_t extended_ecx = 0;  // leaf 0x80000001
  uint64_t xcr0 = 0;          // 0: the system saves no such registers
  bool amd = false;
};

// Of this machine; all 0 where it is no x86.
CpuFeatures cpu_features() noexcept;
// A bit each, as Highway numbers them.
int64_t simd_targets(const CpuFeatures& cpu) noexcept;

}  // namespace dist
