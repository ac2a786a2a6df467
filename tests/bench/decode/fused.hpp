// SPDX-License-Identifier: Apache-2.0
// A hand-written all_reduce on top of a barrier: between two barriers, each thread sums its slice of all
// tensors into all of them.
#pragma once

#include <cstring>
#include <thread>
#include <vector>

#include "tests/bench/decode/token.hpp"

namespace bench::decode {

inline float float_of(uint16_t element) {
  const uint32_t bits = static_cast<uint32_t>(element) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline uint16_t rounded(float value) {  // to nearest, ties to even; the data contain no NaN
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline void add_slice(const std::vector<Tensor*>& all, size_t first, size_t last) {
  constexpr size_t kBlock = 256;
  for (size_t begin = first; begin < last; begin += kBlock) {
    const size_t n = last - begin < kBlock ? last - begin : kBlock;
    float sums[kBlock];
    uint16_t out[kBlock];
    for (size_t i = 0; i < n; ++i) sums[i] = float_of(all[0]->elements[begin + i]);
    for (size_t member = 1; member < all.size(); ++member)
      for (size_t i = 0; i < n; ++i) sums[i] += float_of(all[member]->elements[begin + i]);
    for (size_t i = 0; i < n; ++i) out[i] = rounded(sums[i]);
    for (Tensor* const to : all) std::memcpy(to->elements + begin, out, n * sizeof out[0]);
  }
}

// Runs threads whose barrier is meet().
template <class Meet>
bool run_fused(const Plan& plan, Page& page, Meet meet) {
  std::vector<Tensor*> all(static_cast<size_t>(plan.members));
  const auto member = [&](int id) {
    const auto own = static_cast<size_t>(id), n = all.size();
    play(id, plan, page, [&](Tensor& tensor) {
      all[own] = &tensor;
      meet();
      add_slice(all, kElements * own / n, kElements * (own + 1) / n);
      meet();
      return true;
    });
  };
  std::vector<std::thread> threads;
  for (int id = 1; id < plan.members; ++id) threads.emplace_back(member, id);
  member(0);  // after creating the others, which would inherit its CPU
  for (std::thread& thread : threads) thread.join();
  return true;
}

}  // namespace bench::decode
