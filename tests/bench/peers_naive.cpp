// SPDX-License-Identifier: Apache-2.0
// The all-reduce that a careful user writes with C++20's own means. Its threads live for one block and are
// joined before libdist's turn; the caller is replica 0, as with libdist.
#include <algorithm>
#include <barrier>
#include <cstring>
#include <thread>

#include "tests/bench/sides.hpp"

namespace bench {
namespace {

// Runs main(replica) on `replicas` threads, the caller's among them.
template <class Main>
void on_replicas(int replicas, Main main) {
  std::vector<std::jthread> threads;
  for (int r = 1; r < replicas; ++r) threads.emplace_back([&main, r] { main(r); });
  main(0);
}

void add(float* __restrict to, const float* __restrict from, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] += from[i];
}

class NaiveAllReduce final : public Side {
 public:
  NaiveAllReduce(Naive form, Data& data)
      : form_(form),
        data_(data),
        meet_(data.replicas()),
        shared_(form == Naive::kSliced ? data.count() : 0) {}
  std::string name() const override {
    return form_ == Naive::kRoot ? "std::barrier, root" : "std::barrier, sliced";
  }

  void block(const Plan& plan, Samples& samples) override {
    data_.expect(plan.iterations);
    Stopwatch watch(data_.replicas(), plan);
    on_replicas(data_.replicas(), [&](int r) {
      replica_block(
          plan, watch, &data_, r, [&] { return meet(); },
          [&] {
            form_ == Naive::kRoot ? root(r) : sliced(r);
            return true;
          });
    });
    watch.collect(samples);
  }

 private:
  float* in(int r) { return static_cast<float*>(data_.in(r)); }
  float* out(int r) { return static_cast<float*>(data_.out(r)); }
  bool meet() {
    meet_.arrive_and_wait();
    return true;
  }

  void root(int r) {
    const size_t n = data_.count();
    meet();
    if (r == 0) {
      if (out(0) != in(0)) std::memcpy(out(0), in(0), data_.bytes());
      for (int p = 1; p < data_.replicas(); ++p) add(out(0), in(p), n);
    }
    meet();
    if (r != 0) std::memcpy(out(r), out(0), data_.bytes());
    meet();
  }

  void sliced(int r) {
    const size_t n = data_.count(), parts = static_cast<size_t>(data_.replicas()),
                 part = static_cast<size_t>(r);
    const size_t begin = n * part / parts, count = n * (part + 1) / parts - begin;
    meet();
    std::memcpy(&shared_[0] + begin, in(0) + begin, count * sizeof(float));
    for (int p = 1; p < data_.replicas(); ++p) add(&shared_[0] + begin, in(p) + begin, count);
    meet();
    std::memcpy(out(r), shared_.data(), data_.bytes());
  }

  Naive form_;
  Data& data_;
  std::barrier<> meet_;
  std::vector<float> shared_;
};

class NaiveBarrier final : public Side {
 public:
  explicit NaiveBarrier(int replicas) : replicas_(replicas), meet_(replicas) {}
  std::string name() const override { return "std::barrier"; }
  void block(const Plan& plan, Samples& samples) override {
    Stopwatch watch(replicas_, plan);
    const auto meet = [&] {
      meet_.arrive_and_wait();
      return true;
    };
    on_replicas(replicas_, [&](int r) { replica_block(plan, watch, nullptr, r, meet, meet); });
    watch.collect(samples);
  }

 private:
  int replicas_;
  std::barrier<> meet_;
};

}  // namespace

std::unique_ptr<Side> naive_all_reduce(Naive form, Data& data) {
  return std::make_unique<NaiveAllReduce>(form, data);
}
std::unique_ptr<Side> naive_barrier(int replicas) { return std::make_unique<NaiveBarrier>(replicas); }

}  // namespace bench
