// SPDX-License-Identifier: Apache-2.0
// The work of every side of dist_bench_decode: tokens, each with several all_reduces of bf16[4096]. A member
// writes its whole tensor before each one and reads it afterwards, like the layers of a split model. Each
// side is a separate program:
//
//     decode_SIDE MEMBERS REDUCES SECONDS MATRICES
//
// REDUCES is the number of all_reduces per token. If MATRICES is not 0, each all_reduce is preceded by a
// product with one of that many matrices (product.hpp). The program fails, or prints
//
//     @tokens COUNT SECONDS CPU_SECONDS REDUCE_SECONDS
//
// REDUCE_SECONDS is the time that member 0's all_reduces took, each counted from the arrival of the last
// member.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "tests/bench/decode/product.hpp"

namespace bench::decode {

constexpr int kMostMembers = 64;
constexpr size_t kLine = 64;

struct alignas(kLine) Tensor {
  uint16_t elements[kElements];
};

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline uint16_t bf16_of(float value) {  // exact, because the values are small integers
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);
}

struct Plan {
  int members, reduces;
  double seconds;
  int matrices;
};

// Data that members share besides their all_reduces, also if they are processes.
struct Page {
  std::atomic<long> last{-1};  // the token after which all end
  std::atomic<int> wrong{0};   // number of members that read a wrong sum or failed
  long tokens = 0;
  double seconds = 0, reduce_seconds = 0;
  // The time at which each member began an all_reduce. Consecutive all_reduces alternate between two rows.
  struct alignas(kLine) Arrival {
    std::atomic<double> at_s{0};
  };
  Arrival arrivals[2][kMostMembers];
};

// If there are enough CPUs, pins each member to one. Two members that spin on one CPU would stay there.
inline void keep_to_a_cpu(int member, int members) {
  cpu_set_t usable, own;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0 || CPU_COUNT(&usable) < members) return;
  CPU_ZERO(&own);
  for (int cpu = 0, left = member; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable) || left-- > 0) continue;
    CPU_SET(cpu, &own);
    break;
  }
  sched_setaffinity(0, sizeof own, &own);  // of the calling thread
}

// Plays one member's part on a thread or process that is not pinned. reduce(Tensor&) sums all members'
// tensors into each of them, and returns false on failure.
template <class Reduce>
void play(int member, const Plan& plan, Page& page, Reduce reduce) {
  const int members = plan.members;
  keep_to_a_cpu(member, members);
  const auto tensor = std::make_unique<Tensor>();
  Product product(members, plan.matrices);
  double begin = 0, reduce_seconds = 0;
  for (long token = 0;; ++token) {  // the first one is a warm-up
    if (token == 1) {
      begin = now_s();
      reduce_seconds = 0;
    }
    for (int i = 0; i < plan.reduces; ++i) {
      // Members that read this have made the sum after it was written, and not yet that of the next token.
      if (member == 0 && i + 1 == plan.reduces && token > 0 && now_s() - begin >= plan.seconds)
        page.last = token;
      const int step = i % 7;
      const uint16_t mine = bf16_of(static_cast<float>(member + 1 + step));
      const int total = members * (members + 1) / 2 + members * step;
      const uint16_t sum = bf16_of(static_cast<float>(total));
      product.multiply(i);
      for (uint16_t& element : tensor->elements) element = mine;
      auto& arrivals = page.arrivals[(token * plan.reduces + i) % 2];
      arrivals[member].at_s.store(now_s(), std::memory_order_relaxed);
      if (!reduce(*tensor)) {
        page.wrong.fetch_add(1);
        return;
      }
      if (member == 0) {
        double end = now_s(), last = 0;
        for (int id = 0; id < members; ++id)
          last = std::max(last, arrivals[id].at_s.load(std::memory_order_relaxed));
        reduce_seconds += end - last;
      }
      unsigned differ = 0;
      for (const uint16_t element : tensor->elements) differ += element != sum;
      if (differ != 0) page.wrong.fetch_add(1);
    }
    if (page.last.load() != token) continue;
    if (member == 0) {
      page.seconds = now_s() - begin;
      page.reduce_seconds = reduce_seconds;
      page.tokens = token;
    }
    return;
  }
}

inline double cpu_of(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// The main() of a side: run(plan, page) returns when all members have ended.
template <class Run>
int side_main(int argc, char** argv, Run run) {
  Plan plan{0, 0, 0, 0};
  if (argc == 5) plan = {std::atoi(argv[1]), std::atoi(argv[2]), std::atof(argv[3]), std::atoi(argv[4])};
  if (plan.members < 1 || plan.members > kMostMembers || plan.reduces < 1 || plan.seconds <= 0)
    return std::fputs("usage: decode_SIDE MEMBERS REDUCES SECONDS MATRICES\n", stderr), 2;
  void* const memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return std::perror("mmap"), 2;
  Page& page = *new (memory) Page;
  const double began = now_s();
  if (!run(plan, page)) return 2;
  if (page.wrong.load() != 0) return std::fputs("wrong result\n", stderr), 2;
  const double share = page.seconds / (now_s() - began);  // the part of the CPU time after the warm-up
  std::printf("@tokens %ld %.6f %.6f %.9f\n", page.tokens, page.seconds,
              share * (cpu_of(RUSAGE_SELF) + cpu_of(RUSAGE_CHILDREN)), page.reduce_seconds);
  return 0;
}

}  // namespace bench::decode
