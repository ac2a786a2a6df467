// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/workers/by_hand.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "tests/bench/harness.hpp"
#include "tests/bench/workers/page.hpp"
#include "tests/bench/workers/tensors.hpp"

namespace bench {
namespace {

void pause() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

}  // namespace

void ByHand::all_reduce(std::size_t elements) {
  constexpr std::size_t kMost = HandMemory::kPieceBytes / sizeof(float);
  for (std::size_t at = 0; at < elements; at += kMost) {
    const std::size_t count = std::min(kMost, elements - at);
    auto& stage = memory_.stages[++pieces_ % 2];
    const float* const in = tensors_.in.data() + at;
    float* const out = tensors_.out.data() + at;
    std::memcpy(stage[me_], in, count * sizeof(float));
    memory_.flags[me_].pieces.store(pieces_, std::memory_order_release);
    for (int w = 0; w < workers_; ++w) {
      for (int looks = 1; memory_.flags[w].pieces.load(std::memory_order_acquire) < pieces_; ++looks) {
        pause();
        if (looks % 1000 == 0) sched_yield();
      }
    }
    const float* const first = me_ == 0 ? in : stage[0];
    const float* const second = me_ == 1 ? in : stage[1];
    for (std::size_t i = 0; i < count; ++i) out[i] = first[i] + second[i];
    for (int w = 2; w < workers_; ++w) {
      const float* const next = me_ == w ? in : stage[w];
      for (std::size_t i = 0; i < count; ++i) out[i] += next[i];
    }
  }
}

double ByHand::take(Page& page, const Size& size, int operations) {
  const std::size_t elements = size.bytes / sizeof(float);
  tensors_.fill(elements);
  page.meet();
  all_reduce(elements);
  const double begin = now_us();
  for (int i = 0; i < operations; ++i) all_reduce(elements);
  const double us = (now_us() - begin) / operations;
  tensors_.check(tensors_.out, elements, 1);
  return us;
}

}  // namespace bench
