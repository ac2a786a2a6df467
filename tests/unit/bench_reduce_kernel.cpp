// SPDX-License-Identifier: Apache-2.0
// `test_reduce_kernel --bench`: the speed of the main kernels in GB/s on every target, at the sizes of the
// caches and of memory, next to a loop that the compiler vectorizes. Bytes are counted as in STREAM: each
// read and each write once, without read-for-ownership.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/kernel/reduce.hpp"
#include "core/kernel/targets.hpp"
#include "core/kernel/tree.hpp"

namespace dist {

int bench_reduce_kernels();

namespace {

using Clock = std::chrono::steady_clock;

struct Row {
  const char* what;
  dist_dtype dtype;
  dist_reduce_op op;
  std::size_t num_src;
  std::size_t num_dst;
  bool in_place;
  bool stream;
  bool tree = false;
};

constexpr Row kRows[] = {
    {"f32 SUM 2 in place", DIST_F32, DIST_REDUCE_SUM, 2, 2, true, false},
    {"f32 SUM 2 to 1", DIST_F32, DIST_REDUCE_SUM, 2, 1, false, false},
    {"f32 SUM 2 to 1, stream", DIST_F32, DIST_REDUCE_SUM, 2, 1, false, true},
    {"f32 SUM 8 in place", DIST_F32, DIST_REDUCE_SUM, 8, 8, true, false},
    {"f32 SUM 5 in place", DIST_F32, DIST_REDUCE_SUM, 5, 5, true, false},
    {"f32 MEAN 2 in place", DIST_F32, DIST_REDUCE_MEAN, 2, 2, true, false},
    {"f16 SUM 2 in place", DIST_F16, DIST_REDUCE_SUM, 2, 2, true, false},
    {"bf16 SUM 2 in place", DIST_BF16, DIST_REDUCE_SUM, 2, 2, true, false},
    {"bf16 SUM 8 in place", DIST_BF16, DIST_REDUCE_SUM, 8, 8, true, false},
    {"f64 SUM 2 in place", DIST_F64, DIST_REDUCE_SUM, 2, 2, true, false},
    {"f32 MAX 2 in place", DIST_F32, DIST_REDUCE_MAX, 2, 2, true, false},
    {"i32 SUM 2 in place", DIST_I32, DIST_REDUCE_SUM, 2, 2, true, false},
    {"u8 PROD 2 in place", DIST_U8, DIST_REDUCE_PROD, 2, 2, true, false},
    {"f32 SUM 8 to 1", DIST_F32, DIST_REDUCE_SUM, 8, 1, false, false},
    {"f32 SUM 8 to 1, tree", DIST_F32, DIST_REDUCE_SUM, 8, 1, false, false, true},
    {"f32 SUM 64 to 1", DIST_F32, DIST_REDUCE_SUM, 64, 1, false, false},
    {"f32 SUM 64 to 1, tree", DIST_F32, DIST_REDUCE_SUM, 64, 1, false, false, true},
    {"bf16 SUM 64 to 1", DIST_BF16, DIST_REDUCE_SUM, 64, 1, false, false},
    {"bf16 SUM 64 to 1, tree", DIST_BF16, DIST_REDUCE_SUM, 64, 1, false, false, true},
};

// Total size of all buffers.
constexpr std::size_t kFootprints[] = {std::size_t{32} << 10, std::size_t{512} << 10, std::size_t{8} << 20,
                                       std::size_t{256} << 20};

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, Free>;

// The loop that a programmer would write without tuning: f32 SUM of two arrays, in place.
[[gnu::noinline]] void plain_loop(float* a, float* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

// Returns the best of several passes, which is the least disturbed by other programs on the machine.
template <class Pass>
double best_gigabytes(double bytes, Pass pass) {
  const auto repeats = static_cast<int>(std::clamp(64e6 / bytes, 1.0, 1e5));
  double best = 0;
  for (int round = 0; round < 12; ++round) {
    const auto begin = Clock::now();
    for (int i = 0; i < repeats; ++i) pass();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, bytes * repeats / seconds / 1e9);
  }
  return best;
}

double measure(const char* target, const Row& row, std::size_t footprint) {
  const std::size_t buffers = row.in_place ? row.num_src : row.num_src + row.num_dst;
  const std::size_t bytes = footprint / buffers / 64 * 64;
  std::vector<Memory> memory;
  std::vector<std::byte*> at;
  for (std::size_t i = 0; i < buffers; ++i) {
    // Offset the buffers within the page. At equal offsets, the loop would measure the cache's associativity.
    memory.emplace_back(static_cast<std::byte*>(
        std::aligned_alloc(4096, (bytes + 4096 + 576 * buffers) / 4096 * 4096 + 4096)));
    at.push_back(memory.back().get() + 576 * i);
    std::fill_n(at.back(), bytes, std::byte{0});
  }
  const std::vector<const std::byte*> src(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(row.num_src));
  const std::vector<std::byte*> dst(
      row.in_place ? at.begin() : at.end() - static_cast<std::ptrdiff_t>(row.num_dst),
      row.in_place ? at.begin() + static_cast<std::ptrdiff_t>(row.num_dst) : at.end());
  const double moved = static_cast<double>(bytes) * static_cast<double>(row.num_src + row.num_dst);
  if (target == nullptr) {
    auto* a = reinterpret_cast<float*>(at[0]);
    auto* b = reinterpret_cast<float*>(at[1]);
    return best_gigabytes(moved, [=] { plain_loop(a, b, bytes / sizeof(float)); });
  }
  const ReduceKernel kernel =
      row.tree ? tree_kernel_of(target, row.dtype, row.op) : reduce_kernel_of(target, row.dtype, row.op);
  const ReduceArguments args{src.data(),
                             dst.data(),
                             row.num_src,
                             row.num_dst,
                             bytes / dtype_size(row.dtype),
                             static_cast<double>(row.num_src),
                             row.stream};
  return best_gigabytes(moved, [&] { kernel(args); });
}

void print_row(const char* target, const Row& row) {
  std::printf("%-8s %-24s", target == nullptr ? "(loop)" : target, row.what);
  for (const std::size_t footprint : kFootprints) std::printf(" %8.1f", measure(target, row, footprint));
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int bench_reduce_kernels() {
  std::printf("%-8s %-24s %8s %8s %8s %8s\n", "GB/s", "all buffers:", "32 KiB", "512 KiB", "8 MiB",
              "256 MiB");
  for (const Row& row : kRows) {
    if (&row == kRows) print_row(nullptr, row);
    for (const char* const* target = kernel_targets(); *target != nullptr; ++target) print_row(*target, row);
  }
  return 0;
}

}  // namespace dist
