// SPDX-License-Identifier: Apache-2.0
// The limits of the machine, measured in the same rounds: no collective is faster than the transfer of a
// cache line or moves more bytes than a loop without synchronization.
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <new>
#include <thread>

#include "tests/bench/sides.hpp"

namespace bench {
namespace {

// Returns the CPUs seen, or any two if both replicas were on one CPU at the end.
CpuPair apart(const CpuPair& seen) {
  if (seen.first != seen.second) return seen;
  const std::vector<int> usable = usable_cpus();
  return {usable[0], usable[1]};
}

// Two threads pass a number back and forth, each in a separate cache line. A round trip is two hops.
class CacheLineHop final : public Side {
 public:
  explicit CacheLineHop(const CpuPair& between) : between_(between) {}
  std::string name() const override { return "cache-line hop"; }

  void block(const Plan& plan, Samples& samples) override {
    const CpuPair cpus = apart(between_);
    ping_.store(0);
    pong_.store(0);
    std::jthread far([&] {
      pin_this_thread(cpus.second);
      for (uint32_t i = 1; i <= last(plan); ++i) {
        while (ping_.load(std::memory_order_acquire) != i) {
        }
        pong_.store(i, std::memory_order_release);
      }
    });
    std::jthread near([&] {
      pin_this_thread(cpus.first);
      for (uint32_t i = 1; i <= last(plan);) {
        const uint32_t batch_end = i + kRoundTrips;
        const bool warm = i > 1;
        const double begin = now_us();
        for (; i < batch_end; ++i) {
          ping_.store(i, std::memory_order_release);
          while (pong_.load(std::memory_order_acquire) != i) {
          }
        }
        if (warm) samples.push_back((now_us() - begin) / kRoundTrips / 2);
      }
    });
  }

 private:
  static constexpr uint32_t kRoundTrips = 1000;  // per sample
  static uint32_t last(const Plan& plan) { return (static_cast<uint32_t>(plan.batches) + 1) * kRoundTrips; }

  const CpuPair& between_;
  alignas(128) std::atomic<uint32_t> ping_{0};
  alignas(128) std::atomic<uint32_t> pong_{0};
};

void rmw2(float* a, float* b, size_t n) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) {
    const float mean = (a[i] + b[i]) * 0.5f;  // stays in range after any number of passes
    a[i] = mean;
    b[i] = mean;
  }
}

#if defined(__x86_64__) && defined(__GLIBC__)
[[gnu::target_clones("default", "avx2", "avx512f")]]
#endif
void sum_both(float* a, float* b, size_t n) {
#pragma omp simd
  for (size_t i = 0; i < n; ++i) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

class LoopsAlone final : public Side {
 public:
  LoopsAlone(Data& data, const CpuPair& on) : data_(data), on_(on) {}
  std::string name() const override { return "the loops alone"; }

  void block(const Plan& plan, Samples& samples) override {
    data_.expect(plan.iterations);
    const CpuPair cpus = apart(on_);
    std::barrier<> barrier(2);
    Stopwatch watch(2, plan);
    const auto half = [&](int which, int cpu) {
      pin_this_thread(cpu);
      const size_t middle = data_.count() / 2, first = which == 0 ? 0 : middle;
      const size_t n = which == 0 ? middle : data_.count() - middle;
      auto* const a = static_cast<float*>(data_.in(0)) + first;
      auto* const b = static_cast<float*>(data_.in(1)) + first;
      const auto meet = [&] {
        barrier.arrive_and_wait();
        return true;
      };
      replica_block(plan, watch, &data_, which, meet, [&] {
        sum_both(a, b, n);
        return true;
      });
    };
    {
      const std::jthread other([&] { half(1, cpus.second); });
      const std::jthread one([&] { half(0, cpus.first); });
    }
    watch.collect(samples);
  }

 private:
  Data& data_;
  const CpuPair& on_;
};

class MemoryRmw2 final : public Side {
 public:
  explicit MemoryRmw2(int threads) : threads_(static_cast<size_t>(threads)) {
    constexpr size_t array_bytes = kRmw2Bytes / 4;
    count_ = array_bytes / sizeof(float) / threads_;
    for (size_t i = 0; i < 2 * threads_; ++i) {
      auto* array = static_cast<float*>(std::malloc(count_ * sizeof(float)));
      if (array == nullptr) throw std::bad_alloc();
      arrays_.emplace_back(array);
    }
  }
  std::string name() const override { return "memory, rmw2"; }

  void block(const Plan& plan, Samples& samples) override {
    std::barrier<> meet(static_cast<std::ptrdiff_t>(threads_));
    Stopwatch watch(static_cast<int>(threads_), Plan{Pace::kHot, 1, plan.batches});
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < threads_; ++t) {
      threads.emplace_back([&, t] {
        float *a = arrays_[2 * t].get(), *b = arrays_[2 * t + 1].get();
        if (!filled_) {
          for (size_t i = 0; i < count_; ++i) {
            a[i] = 1.0f + static_cast<float>(i % 1021);
            b[i] = 2.0f + static_cast<float>(i % 509);
          }
        }
        for (int batch = 0; batch <= plan.batches; ++batch) {
          meet.arrive_and_wait();
          const double begin = now_us();
          rmw2(a, b, count_);
          watch.record(static_cast<int>(t), begin, now_us());
        }
      });
    }
    threads.clear();
    filled_ = true;
    watch.collect(samples);
  }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  size_t threads_;
  size_t count_;  // floats per array and thread
  bool filled_ = false;
  std::vector<std::unique_ptr<float, Free>> arrays_;
};

class WallTime final : public Side {
 public:
  explicit WallTime(double us) : us_(us) {}
  std::string name() const override { return "wall time"; }
  void block(const Plan&, Samples& samples) override { samples.push_back(us_); }

 private:
  double us_;
};

}  // namespace

std::unique_ptr<Side> wall_time(double us) { return std::make_unique<WallTime>(us); }
std::unique_ptr<Side> cache_line_hop(const CpuPair& between) {
  return std::make_unique<CacheLineHop>(between);
}
std::unique_ptr<Side> loops_alone(Data& data, const CpuPair& on) {
  return std::make_unique<LoopsAlone>(data, on);
}
std::unique_ptr<Side> memory_rmw2(int threads) { return std::make_unique<MemoryRmw2>(threads); }

}  // namespace bench
