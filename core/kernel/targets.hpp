// SPDX-License-Identifier: Apache-2.0
// The SIMD targets that kernels are compiled for, and a lookup by name for tests. Kernels include this header
// before any Highway header.
#pragma once

// Only CPUs from before 2010 would use SSSE3. Arm's scalable vectors have no fixed size, so that they can be
// neither members nor elements of arrays: these CPUs use NEON.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

namespace dist {

// The name of the target in plain C++ without SIMD.
inline constexpr char kScalarTarget[] = "SCALAR";

// The names of the SIMD targets that this build has and this CPU supports, widest first, then kScalarTarget,
// then NULL.
const char* const* kernel_targets() noexcept;

// The index of a target in a table of HWY_EXPORT; -1 for kScalarTarget and unknown targets.
int table_index_of(const char* target) noexcept;

}  // namespace dist
