// SPDX-License-Identifier: Apache-2.0
// Determines which SIMD targets the CPU supports, from CPUID. Like Highway, it requires all features of a
// target, and that the operating system saves the registers.
#pragma once

#include <cstdint>

namespace dist {

// The CPUID leaves of an x86 CPU (0: no such leaf), and the registers that the system saves.
struct CpuFeatures {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf7_ecx = 0;
  uint32_t leaf7_1_eax = 0;
  uint32_t extended_ecx = 0;  // leaf 0x80000001
  uint64_t xcr0 = 0;          // 0: the system saves no such registers
  bool amd = false;
};

// The features of this machine; all 0 if it is not an x86.
CpuFeatures cpu_features() noexcept;
// A bitmask with Highway's numbers.
int64_t simd_targets(const CpuFeatures& cpu) noexcept;

}  // namespace dist
