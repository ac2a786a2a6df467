// SPDX-License-Identifier: Apache-2.0
// The OpenMP side: its threads, barrier and wait policy, as set by OMP_* in the environment.
#include <omp.h>

#include <algorithm>

#include "tests/bench/sides.hpp"
#include "tests/bench/sum_into_all.hpp"

namespace bench {
namespace {

class OpenMpAllReduce final : public Side {
 public:
  explicit OpenMpAllReduce(Data& data) : data_(data) {
    for (int r = 0; r < data.replicas(); ++r) {
      in_.push_back(static_cast<float*>(data.in(r)));
      out_.push_back(static_cast<float*>(data.out(r)));
    }
    threads_ = std::min(data.replicas(), static_cast<int>(usable_cpus().size()));
  }
  std::string name() const override { return "OpenMP, one caller"; }

  void block(const Plan& plan, Samples& samples) override {
    data_.expect(plan.iterations);
    for (int i = 0; i <= plan.batches; ++i) {
      reset();
      time_batch(plan, i > 0 ? &samples : nullptr);
      for (int r = 0; r < data_.replicas(); ++r) data_.check(r, plan.iterations);
    }
  }

 private:
  void reset() {
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int r = 0; r < data_.replicas(); ++r) data_.reset(r);
  }

  void all_reduce() {
    const size_t n = data_.count();
#pragma omp parallel num_threads(threads_)
    {
      const auto part = static_cast<size_t>(omp_get_thread_num()),
                 parts = static_cast<size_t>(omp_get_num_threads());
      sum_into_all(in_.data(), out_.data(), data_.replicas(), n * part / parts, n * (part + 1) / parts);
    }
  }

  void time_batch(const Plan& plan, Samples* samples) {
    const bool hot = plan.pace == Pace::kHot;
    const int repeat = hot ? plan.iterations : 1;
    for (int i = 0; i < (hot ? 1 : plan.iterations); ++i) {
      if (!hot) sleep_us(1000);
      const double begin = now_us();
      for (int k = 0; k < repeat; ++k) all_reduce();
      const double end = now_us();
      if (samples != nullptr) samples->push_back((end - begin) / repeat);
    }
  }

  Data& data_;
  std::vector<float*> in_, out_;
  int threads_;
};

class OpenMpBarrier final : public Side {
 public:
  explicit OpenMpBarrier(int threads) : threads_(threads) {}
  std::string name() const override { return "OpenMP, barrier"; }
  void block(const Plan& plan, Samples& samples) override {
    Stopwatch watch(threads_, plan);
    const auto meet = [] {
#pragma omp barrier
      return true;
    };
#pragma omp parallel num_threads(threads_)
    replica_block(plan, watch, nullptr, omp_get_thread_num(), meet, meet);
    watch.collect(samples);
  }

 private:
  int threads_;
};

class OpenMpEmptyRegion final : public Side {
 public:
  explicit OpenMpEmptyRegion(int threads) : threads_(threads) {}
  std::string name() const override { return "OpenMP, empty region"; }
  void block(const Plan& plan, Samples& samples) override {
    caller_block(plan, samples, [this] {
#pragma omp parallel num_threads(threads_)
      { asm volatile(""); }  // keeps the compiler from removing the region
    });
  }

 private:
  int threads_;
};

}  // namespace

std::unique_ptr<Side> openmp_all_reduce(Data& data) { return std::make_unique<OpenMpAllReduce>(data); }
std::unique_ptr<Side> openmp_barrier(int threads) { return std::make_unique<OpenMpBarrier>(threads); }
std::unique_ptr<Side> openmp_empty_region(int threads) {
  return std::make_unique<OpenMpEmptyRegion>(threads);
}

}  // namespace bench
