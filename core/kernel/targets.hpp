// SPDX-License-Identifier: Apache-2.0
// The SIMD targets that kernels are compiled for, and a lookup by name for tests. Kernels include this header
// before any Highway header.
#pragma once

// Only CPUs from before 2010 would use SSSE3. Arm's scalable vectors have no fixed size, so that they can be
// neither members nor elements of arrays: these CPUs use NEON.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

namespace dist {

// The name of plain C++ without SIMD.
inline constexpr char kScalarTarget[] = "SCALAR";

// Names of the SIMD targets that this build has and this CPU can run, widest first, then kScalarTarget; ended by NULL.
const char* const* kernel_targets() noexcept;

// Where a table of HWY_EXPORT has the kernels of one of these; -1: it is none of them, or kScalarTarget.
int table_index_of(const char* target) noexcept;

}  // namespace dist
