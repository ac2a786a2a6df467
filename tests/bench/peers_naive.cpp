// SPDX-License-Identifier: Apache-2.0
// The collectives that a programmer would write in standard C++20, each in two forms: with std::barrier, and
// with a spinning barrier. Their threads exist for one block and are joined before libdist's turn.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <thread>

#include "tests/bench/sides.hpp"
#include "tests/bench/sum_into_all.hpp"
#include "tests/bench/sum_narrow.hpp"

namespace bench {
namespace {

// Each replica writes only its own cache line. Waiting replicas read those of the others.
class SpinBarrier {
 public:
  explicit SpinBarrier(int replicas) : lines_(static_cast<size_t>(replicas)) {}
  void meet(int replica) {
    const uint32_t now = ++lines_[static_cast<size_t>(replica)].rounds;
    lines_[static_cast<size_t>(replica)].there.store(now, std::memory_order_release);
    for (Line& line : lines_) {
      for (int looks = 0; static_cast<int32_t>(line.there.load(std::memory_order_acquire) - now) < 0;
           ++looks) {
        if (looks >= kLooks) std::this_thread::yield();  // more replicas than CPUs
      }
    }
  }

 private:
  static constexpr int kLooks = 4000;
  struct alignas(128) Line {
    std::atomic<uint32_t> there{0};
    uint32_t rounds = 0;
  };
  std::vector<Line> lines_;
};

class StdBarrier {
 public:
  explicit StdBarrier(int replicas) : barrier_(replicas) {}
  void meet(int) { barrier_.arrive_and_wait(); }

 private:
  std::barrier<> barrier_;
};

template <class Barrier>
constexpr const char* kWord = std::is_same_v<Barrier, StdBarrier> ? "std::barrier" : "spin barrier";

// Runs main(replica) on `replicas` threads, each on a separate CPU if there are enough. The scheduler often
// puts new threads on the CPU of their creator, which would be measured.
template <class Main>
void on_replicas(int replicas, Main main) {
  const std::vector<int> cpus = usable_cpus();
  const bool pins = static_cast<size_t>(replicas) <= cpus.size();
  std::vector<std::jthread> threads;
  for (int r = 0; r < replicas; ++r) {
    threads.emplace_back([&main, &cpus, pins, r] {
      if (pins) pin_this_thread(cpus[static_cast<size_t>(r)]);
      main(r);
    });
  }
}

void add(float* __restrict to, const float* __restrict from, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] += from[i];
}

// Each replica sums its slice of all tensors into all tensors.
template <class Barrier, class Sum>
class NaiveAllReduce final : public Side {
 public:
  using Element = typename Sum::Element;
  explicit NaiveAllReduce(Data& data) : data_(data), barrier_(data.replicas()) {
    for (int r = 0; r < data.replicas(); ++r) {
      in_.push_back(static_cast<Element*>(data.in(r)));
      out_.push_back(static_cast<Element*>(data.out(r)));
    }
  }
  std::string name() const override { return std::string(kWord<Barrier>) + ", fused slices"; }

  void block(const Plan& plan, Samples& samples) override {
    data_.expect(plan.in_a_row());
    Stopwatch watch(data_.replicas(), plan);
    const size_t n = data_.count(), parts = static_cast<size_t>(data_.replicas());
    on_replicas(data_.replicas(), [&](int r) {
      const auto meet = [&] {
        barrier_.meet(r);
        return true;
      };
      const size_t part = static_cast<size_t>(r);
      replica_block(plan, watch, &data_, r, meet, [&] {
        meet();
        Sum::into_all(in_.data(), out_.data(), data_.replicas(), n * part / parts, n * (part + 1) / parts);
        return meet();
      });
    });
    watch.collect(samples);
  }

 private:
  Data& data_;
  Barrier barrier_;
  std::vector<Element*> in_, out_;
};

// Each replica copies its tensor into a slot, increments the number next to it, and sums the slots of all
// into its own output. A slot is reused two rounds later, so that no replica waits a second time.
template <class Sum>
class NaiveOnePhase final : public Side {
 public:
  using Element = typename Sum::Element;
  explicit NaiveOnePhase(Data& data) : data_(data), slots_(2 * static_cast<size_t>(data.replicas())) {
    for (Slot& slot : slots_) slot.values.reset(static_cast<Element*>(allocate(data.bytes()).release()));
  }
  std::string name() const override { return "one phase, two slots each"; }

  void block(const Plan& plan, Samples& samples) override {
    data_.expect(plan.in_a_row());
    Stopwatch watch(data_.replicas(), plan);
    SpinBarrier barrier(data_.replicas());
    for (Slot& slot : slots_) slot.round.store(0);
    on_replicas(data_.replicas(), [&](int r) {
      const auto meet = [&] {
        barrier.meet(r);
        return true;
      };
      uint32_t round = 0;
      replica_block(plan, watch, &data_, r, meet, [&] {
        exchange(static_cast<size_t>(r), ++round);
        return true;
      });
    });
    watch.collect(samples);
  }

 private:
  struct alignas(128) Slot {
    std::atomic<uint32_t> round{0};
    std::unique_ptr<Element, Free> values;
  };

  void exchange(size_t r, uint32_t round) {
    const auto replicas = static_cast<size_t>(data_.replicas());
    Slot* const now = &slots_[round % 2 * replicas];
    std::memcpy(now[r].values.get(), data_.in(static_cast<int>(r)), data_.bytes());
    now[r].round.store(round, std::memory_order_release);
    Element* in[kMostReplicas];
    for (size_t p = 0; p < replicas; ++p) {
      while (now[p].round.load(std::memory_order_acquire) != round) {
      }
      in[p] = now[p].values.get();
    }
    auto* const out = static_cast<Element*>(data_.out(static_cast<int>(r)));
    Sum::into_one(in, out, data_.replicas(), data_.count());
  }

  static constexpr size_t kMostReplicas = 16;
  Data& data_;
  std::vector<Slot> slots_;
};

// For more replicas than CPUs: the last one to arrive computes the sums and wakes the others.
class NaiveLastSums final : public Side {
 public:
  explicit NaiveLastSums(Data& data) : data_(data), barrier_(data.replicas()) {
    for (int r = 0; r < data.replicas(); ++r) {
      in_.push_back(static_cast<float*>(data.in(r)));
      out_.push_back(static_cast<float*>(data.out(r)));
    }
  }
  std::string name() const override { return "the last to arrive sums"; }

  void block(const Plan& plan, Samples& samples) override {
    data_.expect(plan.in_a_row());
    Stopwatch watch(data_.replicas(), plan);
    on_replicas(data_.replicas(), [&](int r) {
      const auto meet = [&] {
        barrier_.meet(r);
        return true;
      };
      replica_block(plan, watch, &data_, r, meet, [&] {
        const uint32_t round = round_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < data_.replicas()) {
          round_.wait(round, std::memory_order_acquire);
          return true;
        }
        arrived_.store(0, std::memory_order_relaxed);
        sum_into_all(in_.data(), out_.data(), data_.replicas(), 0, data_.count());
        round_.store(round + 1, std::memory_order_release);
        round_.notify_all();
        return true;
      });
    });
    watch.collect(samples);
  }

 private:
  Data& data_;
  StdBarrier barrier_;
  std::vector<float*> in_, out_;
  alignas(128) std::atomic<int> arrived_{0};
  alignas(128) std::atomic<uint32_t> round_{0};
};

// The same for a list in place, with a slice of each tensor between two rounds. If many tensors have equal
// lengths, each replica takes whole ones.
template <class Barrier>
class NaiveList final : public Side {
 public:
  explicit NaiveList(DataList& list) : list_(list), barrier_(list.replicas()) {
    for (size_t t = 0; t < list.size(); ++t) {
      for (int r = 0; r < list.replicas(); ++r) at_.push_back(static_cast<float*>(list.at(t).in(r)));
    }
  }
  std::string name() const override { return std::string(kWord<Barrier>) + ", fused slices"; }

  void block(const Plan& plan, Samples& samples) override {
    list_.expect(plan.in_a_row());
    Stopwatch watch(list_.replicas(), plan);
    on_replicas(list_.replicas(), [&](int r) {
      const auto meet = [&] {
        barrier_.meet(r);
        return true;
      };
      replica_block(plan, watch, &list_, r, meet, [&] {
        meet();
        sum_slices(static_cast<size_t>(r));
        return meet();
      });
    });
    watch.collect(samples);
  }

 private:
  void sum_slices(size_t part) {
    const auto parts = static_cast<size_t>(list_.replicas());
    const auto all = [&](size_t t) -> float* const* { return &at_[t * parts]; };
    if (list_.alike() && list_.size() % parts == 0) {
      const size_t share = list_.size() / parts;
      for (size_t t = part * share; t < (part + 1) * share; ++t)
        sum_into_all(all(t), all(t), list_.replicas(), 0, list_.at(t).count());
      return;
    }
    for (size_t t = 0; t < list_.size(); ++t) {
      const size_t n = list_.at(t).count();
      sum_into_all(all(t), all(t), list_.replicas(), n * part / parts, n * (part + 1) / parts);
    }
  }

  DataList& list_;
  Barrier barrier_;
  std::vector<float*> at_;
};

template <class Barrier>
class NaiveHanding final : public Side {
 public:
  NaiveHanding(Handing handing, Exchanged& data)
      : handing_(handing), data_(data), barrier_(data.replicas()) {}
  std::string name() const override { return std::string(kWord<Barrier>) + " and loops"; }

  void block(const Plan& plan, Samples& samples) override {
    Stopwatch watch(data_.replicas(), plan);
    on_replicas(data_.replicas(), [&](int r) {
      const auto meet = [&] {
        barrier_.meet(r);
        return true;
      };
      replica_block(plan, watch, &data_, r, meet, [&] {
        meet();
        take(r);
        return meet();
      });
    });
    watch.collect(samples);
  }

 private:
  void copy(float* to, const float* from, size_t count) { std::memcpy(to, from, count * sizeof(float)); }

  // Replica r writes only its own output.
  void take(int r) {
    const auto size = static_cast<size_t>(data_.replicas()), own = static_cast<size_t>(r);
    const size_t count = data_.out_count(r);
    float* const out = data_.out(r);
    switch (handing_) {
      case Handing::kAllGather:
        for (size_t p = 0; p < size; ++p)
          copy(out + p * (count / size), data_.in(static_cast<int>(p)), count / size);
        break;
      case Handing::kReduceScatter:
        copy(out, data_.in(0) + own * count, count);
        for (int p = 1; p < data_.replicas(); ++p) add(out, data_.in(p) + own * count, count);
        break;
      case Handing::kBroadcast: copy(out, data_.in(0), count); break;
      case Handing::kScatter: copy(out, data_.in(0) + own * count, count); break;
      case Handing::kScan:
        copy(out, data_.in(0), count);
        for (int p = 1; p <= r; ++p) add(out, data_.in(p), count);
        break;
      case Handing::kAllToAll: {
        const size_t part = count / size;
        for (size_t p = 0; p < size; ++p)
          copy(out + p * part, data_.in(static_cast<int>(p)) + own * part, part);
        break;
      }
    }
  }

  Handing handing_;
  Exchanged& data_;
  Barrier barrier_;
};

template <class Barrier>
class NaiveBarrier final : public Side {
 public:
  explicit NaiveBarrier(int replicas) : replicas_(replicas), barrier_(replicas) {}
  std::string name() const override { return kWord<Barrier>; }
  void block(const Plan& plan, Samples& samples) override {
    Stopwatch watch(replicas_, plan);
    on_replicas(replicas_, [&](int r) {
      const auto meet = [&] {
        barrier_.meet(r);
        return true;
      };
      replica_block(plan, watch, nullptr, r, meet, meet);
    });
    watch.collect(samples);
  }

 private:
  int replicas_;
  Barrier barrier_;
};

template <class Make>
std::unique_ptr<Side> with_sum(dist_dtype dtype, Make make) {
  if (dtype == DIST_BF16) return make.template operator()<SumNarrow<Bf16>>();
  if (dtype == DIST_F16) return make.template operator()<SumNarrow<F16>>();
  return make.template operator()<SumF32>();
}

template <template <class> class Kind, class... Arguments>
std::unique_ptr<Side> with(Naive barrier, Arguments&&... arguments) {
  if (barrier == Naive::kStd)
    return std::make_unique<Kind<StdBarrier>>(std::forward<Arguments>(arguments)...);
  return std::make_unique<Kind<SpinBarrier>>(std::forward<Arguments>(arguments)...);
}

}  // namespace

std::unique_ptr<Side> naive_all_reduce(Naive barrier, Data& data) {
  return with_sum(data.dtype(), [&]<class Sum>() -> std::unique_ptr<Side> {
    if (barrier == Naive::kStd) return std::make_unique<NaiveAllReduce<StdBarrier, Sum>>(data);
    return std::make_unique<NaiveAllReduce<SpinBarrier, Sum>>(data);
  });
}
std::unique_ptr<Side> naive_one_phase(Data& data) {
  return with_sum(data.dtype(), [&]<class Sum>() -> std::unique_ptr<Side> {
    return std::make_unique<NaiveOnePhase<Sum>>(data);
  });
}
std::unique_ptr<Side> naive_last_sums(Data& data) { return std::make_unique<NaiveLastSums>(data); }
std::unique_ptr<Side> naive_list(Naive barrier, DataList& list) { return with<NaiveList>(barrier, list); }
std::unique_ptr<Side> naive_handing(Naive barrier, Handing handing, Exchanged& data) {
  return with<NaiveHanding>(barrier, handing, data);
}
std::unique_ptr<Side> naive_barrier(Naive barrier, int replicas) {
  return with<NaiveBarrier>(barrier, replicas);
}

}  // namespace bench
