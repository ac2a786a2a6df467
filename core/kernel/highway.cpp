// SPDX-License-Identifier: Apache-2.0
// Supplies the functions that Highway's headers expect from its library, and detects the SIMD targets of this
// CPU.
#include "core/kernel/highway_names.hpp"
//
#include "core/kernel/cpu_features.hpp"
#include "hwy/targets.h"

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace dist {

#if HWY_ARCH_X86

namespace {

template <class... Bits>
constexpr uint32_t bits(Bits... numbers) noexcept {
  return (... | (uint32_t{1} << numbers));
}
constexpr bool has(uint32_t word, uint32_t wanted) noexcept { return (word & wanted) == wanted; }

// Numbers of bits: Intel's manual, volume 2A, CPUID.
constexpr uint32_t kSsse3 = bits(0, 9);                 // leaf 1, ecx: SSE3, SSSE3
constexpr uint32_t kSse4 = bits(19, 20, 1, 25);         // SSE4.1, SSE4.2, PCLMULQDQ, AES
constexpr uint32_t kAvx = bits(28, 12, 29);             // AVX, FMA, F16C
constexpr uint32_t kSavesRegisters = bits(27);          // OSXSAVE
constexpr uint32_t kAvx2 = bits(5, 3, 8);               // leaf 7, ebx: AVX2, BMI1, BMI2
constexpr uint32_t kAvx512 = bits(16, 17, 28, 30, 31);  // F, DQ, CD, BW, VL
constexpr uint32_t kAvx512Dl =
    bits(1, 6, 8, 9, 10, 11, 12, 14);  // ecx: VBMI, VBMI2, GFNI, VAES, VPCLMULQDQ, VNNI, BITALG, VPOPCNTDQ
constexpr uint32_t kLzcnt = bits(5);   // leaf 0x80000001, ecx
constexpr uint64_t kYmm = 0x06;        // XCR0: SSE and AVX state
constexpr uint64_t kZmm = 0xE6;        // and that of AVX-512

}  // namespace

CpuFeatures cpu_features() noexcept {
  CpuFeatures cpu;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  uint32_t most = 0;
  if (__get_cpuid(0, &most, &b, &c, &d) == 0) return cpu;
  cpu.amd = b == signature_AMD_ebx && c == signature_AMD_ecx && d == signature_AMD_edx;
  if (most >= 1 && __get_cpuid(1, &a, &b, &c, &d) != 0) cpu.leaf1_ecx = c;
  if (most >= 7 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    cpu.leaf7_ebx = b;
    cpu.leaf7_ecx = c;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) cpu.leaf7_1_eax = a;
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d) != 0) cpu.extended_ecx = c;
  if (has(cpu.leaf1_ecx, kSavesRegisters)) {
    uint32_t low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    cpu.xcr0 = uint64_t{high} << 32 | low;
  }
  return cpu;
}

int64_t simd_targets(const CpuFeatures& cpu) noexcept {
  int64_t targets = 0;
#if defined(HWY_SSE2)
  targets |= HWY_SSE2;
#endif
  if (!has(cpu.leaf1_ecx, kSsse3)) return targets;
  targets |= HWY_SSSE3;
  if (!has(cpu.leaf1_ecx, kSse4)) return targets;
  targets |= HWY_SSE4;
  if (!has(cpu.leaf1_ecx, kAvx) || !has(cpu.leaf7_ebx, kAvx2) || !has(cpu.extended_ecx, kLzcnt) ||
      (cpu.xcr0 & kYmm) != kYmm) {
    return targets;
  }
  targets |= HWY_AVX2;
  if (!has(cpu.leaf7_ebx, kAvx512) || (cpu.xcr0 & kZmm) != kZmm) return targets;
  targets |= HWY_AVX3;
  if (!has(cpu.leaf7_ecx, kAvx512Dl)) return targets;
  targets |= HWY_AVX3_DL;
#if defined(HWY_AVX3_ZEN4)
  if (cpu.amd && has(cpu.leaf7_1_eax, bits(5))) targets |= HWY_AVX3_ZEN4;  // AVX512_BF16
#endif
  return targets;
}

#else

CpuFeatures cpu_features() noexcept { return {}; }
int64_t simd_targets(const CpuFeatures&) noexcept { return HWY_ENABLED_BASELINE; }

#endif

}  // namespace dist

namespace hwy {

int64_t SupportedTargets() {
  static const int64_t found = dist::simd_targets(dist::cpu_features());
  return found;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

// Called by Highway's own checks, which exist only in debug builds.
HWY_NORETURN void Abort(const char*, int, const char*, ...) { __builtin_trap(); }

}  // namespace hwy
