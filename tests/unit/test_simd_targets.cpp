// SPDX-License-Identifier: Apache-2.0
// core/kernel/highway.cpp: the SIMD targets are those that Highway's own library finds on this CPU. Also
// simulated CPUs.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "core/kernel/cpu_features.hpp"
#include "core/kernel/targets.hpp"
#include "hwy/targets.h"

extern "C" {
#include <cmocka.h>
}
#undef fail

namespace dist {
namespace {

void this_cpu_has_what_highway_finds(void**) {
  const int64_t known = HWY_TARGETS & ~(HWY_SCALAR | HWY_EMU128);
  assert_int_equal(simd_targets(cpu_features()) & known, hwy::SupportedTargets() & known);
}

#if HWY_ARCH_X86

CpuFeatures everything() {
  CpuFeatures cpu;
  cpu.leaf1_ecx = cpu.leaf7_ebx = cpu.leaf7_ecx = cpu.leaf7_1_eax = cpu.extended_ecx = ~uint32_t{0};
  cpu.xcr0 = ~uint64_t{0};
  return cpu;
}

// Each row has a feature and the lowest target that needs it.
void a_target_needs_all_of_its_features(void**) {
  const int64_t all = simd_targets(everything());
  assert_true((all & HWY_AVX3_DL) != 0 && (all & HWY_AVX3) != 0 && (all & HWY_AVX2) != 0);
  struct Missing {
    uint32_t CpuFeatures::*word;
    int bit;
    int64_t lost;  // the lowest target that is unavailable without it
  };
  static constexpr Missing kMissing[] = {
      {&CpuFeatures::leaf1_ecx, 0, HWY_SSSE3},    {&CpuFeatures::leaf1_ecx, 9, HWY_SSSE3},
      {&CpuFeatures::leaf1_ecx, 19, HWY_SSE4},    {&CpuFeatures::leaf1_ecx, 20, HWY_SSE4},
      {&CpuFeatures::leaf1_ecx, 1, HWY_SSE4},     {&CpuFeatures::leaf1_ecx, 25, HWY_SSE4},
      {&CpuFeatures::leaf1_ecx, 28, HWY_AVX2},    {&CpuFeatures::leaf1_ecx, 12, HWY_AVX2},
      {&CpuFeatures::leaf1_ecx, 29, HWY_AVX2},    {&CpuFeatures::leaf7_ebx, 5, HWY_AVX2},
      {&CpuFeatures::leaf7_ebx, 3, HWY_AVX2},     {&CpuFeatures::leaf7_ebx, 8, HWY_AVX2},
      {&CpuFeatures::extended_ecx, 5, HWY_AVX2},  {&CpuFeatures::leaf7_ebx, 16, HWY_AVX3},
      {&CpuFeatures::leaf7_ebx, 17, HWY_AVX3},    {&CpuFeatures::leaf7_ebx, 28, HWY_AVX3},
      {&CpuFeatures::leaf7_ebx, 30, HWY_AVX3},    {&CpuFeatures::leaf7_ebx, 31, HWY_AVX3},
      {&CpuFeatures::leaf7_ecx, 1, HWY_AVX3_DL},  {&CpuFeatures::leaf7_ecx, 6, HWY_AVX3_DL},
      {&CpuFeatures::leaf7_ecx, 8, HWY_AVX3_DL},  {&CpuFeatures::leaf7_ecx, 9, HWY_AVX3_DL},
      {&CpuFeatures::leaf7_ecx, 10, HWY_AVX3_DL}, {&CpuFeatures::leaf7_ecx, 11, HWY_AVX3_DL},
      {&CpuFeatures::leaf7_ecx, 12, HWY_AVX3_DL}, {&CpuFeatures::leaf7_ecx, 14, HWY_AVX3_DL},
  };
  for (const Missing& each : kMissing) {
    CpuFeatures cpu = everything();
    cpu.*each.word &= ~(uint32_t{1} << each.bit);
    // Better targets have lower bits. The lost target and all better ones are unavailable; the others remain.
    const int64_t gone = each.lost | (each.lost - 1);
    assert_int_equal(simd_targets(cpu), all & ~gone);
  }
}

void registers_that_the_system_does_not_save_are_not_used(void**) {
  CpuFeatures cpu = everything();
  const int64_t all = simd_targets(cpu);
  cpu.xcr0 = 0x07;  // the system does not save AVX-512 registers
  assert_int_equal(simd_targets(cpu) & (HWY_AVX3_DL | HWY_AVX3 | HWY_AVX2), HWY_AVX2);
  for (const uint64_t saved : {0x03, 0x05, 0x00}) {
    cpu.xcr0 = saved;
    assert_int_equal(simd_targets(cpu), all & ~(HWY_AVX2 | (HWY_AVX2 - 1)));
  }
  cpu.xcr0 = 0x67;  // it saves them incompletely
  assert_int_equal(simd_targets(cpu) & (HWY_AVX3_DL | HWY_AVX3 | HWY_AVX2), HWY_AVX2);
  assert_int_equal(simd_targets(CpuFeatures()) & (HWY_SSSE3 | HWY_SSE4 | HWY_AVX2 | HWY_AVX3), 0);
}

#endif

}  // namespace
}  // namespace dist

int main() {
  const CMUnitTest tests[] = {
    cmocka_unit_test(dist::this_cpu_has_what_highway_finds),
#if HWY_ARCH_X86
    cmocka_unit_test(dist::a_target_needs_all_of_its_features),
    cmocka_unit_test(dist::registers_that_the_system_does_not_save_are_not_used),
#endif
  };
  return cmocka_run_group_tests_name("simd_targets", tests, nullptr, nullptr);
}
