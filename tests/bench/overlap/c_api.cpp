// SPDX-License-Identifier: Apache-2.0
// Part for peers in Python, which call it with ctypes. A function returns 0, or -1 after a failure, which it
// has recorded.
#include <cstdio>
#include <exception>
#include <memory>

#include "tests/bench/overlap/part.hpp"

using bench::overlap::Part;
using bench::overlap::Turn;

namespace {

std::unique_ptr<Part> part;

template <class Call>
int guarded(Call&& call) noexcept {
  try {
    call();
    return 0;
  } catch (const std::exception& error) {
    if (part) part->side().fail(error.what());
    return -1;
  }
}

}  // namespace

#define BENCH_API extern "C" __attribute__((visibility("default")))

BENCH_API int overlap_join(int side, int me) {
  return guarded([&] { part = std::make_unique<Part>(side, me); });
}
BENCH_API void overlap_fail(const char* why) { part->side().fail(why); }
BENCH_API void overlap_name(const char* name) {
  std::snprintf(part->side().name.data(), part->side().name.size(), "%s", name);
}
BENCH_API int overlap_num_workers() { return part->workers(); }
BENCH_API int overlap_num_layers() { return static_cast<int>(part->layers().size()); }
BENCH_API int overlap_num_tensors(int layer) {
  return part->layers()[static_cast<std::size_t>(layer)].tensors;
}
BENCH_API long overlap_num_elements(int tensor) {
  return static_cast<long>(part->elements()[static_cast<std::size_t>(tensor)]);
}
BENCH_API void overlap_place(int tensor, float* at) { part->place(tensor, at); }
// The number of steps of the next turn, and whether the workers communicate in it.
BENCH_API int overlap_next_turn(int* out_steps, int* out_communicates) {
  return guarded([&] {
    const Turn turn = part->next_turn();
    *out_steps = turn.steps;
    *out_communicates = turn.communicates;
  });
}
BENCH_API int overlap_begin_step() {
  return guarded([] { part->begin_step(); });
}
BENCH_API void overlap_pass(int layer) { part->pass(layer); }
BENCH_API int overlap_check(int tensor, const float* mean) {
  return guarded([&] { part->check(tensor, mean); });
}
BENCH_API int overlap_end_step() {
  return guarded([] { part->end_step(); });
}
