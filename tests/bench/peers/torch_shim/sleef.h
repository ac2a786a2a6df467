// SPDX-License-Identifier: Apache-2.0
// Replaces the parts of SLEEF that vLLM's headers use. The all_reduce calls none of them.
#pragma once
#include <immintrin.h>

__m256 Sleef_expf8_u10(__m256);
__m256 Sleef_erff8_u10(__m256);
__m256 Sleef_tanhf8_u10(__m256);
#ifdef __AVX512F__
__m512 Sleef_expf16_u10(__m512);
__m512 Sleef_erff16_u10(__m512);
__m512 Sleef_tanhf16_u10(__m512);
#endif
