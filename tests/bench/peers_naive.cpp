// SPDX-License-Identifier: Apache-2.0
// The collectives that a careful user writes with C++20's own means. Their threads live for one block and are
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

// The same for a list: its tensors lie one after another in the shared buffer.
class NaiveList final : public Side {
 public:
  NaiveList(Naive form, DataList& list) : form_(form), list_(list), meet_(list.replicas()) {
    if (form == Naive::kSliced) shared_.resize(list.bytes() / sizeof(float));
  }
  std::string name() const override {
    return form_ == Naive::kRoot ? "std::barrier, root" : "std::barrier, sliced";
  }

  void block(const Plan& plan, Samples& samples) override {
    list_.expect(plan.iterations);
    Stopwatch watch(list_.replicas(), plan);
    on_replicas(list_.replicas(), [&](int r) {
      const auto meet = [&] {
        meet_.arrive_and_wait();
        return true;
      };
      replica_block(plan, watch, &list_, r, meet, [&] {
        meet();
        gather(r);
        meet();
        spread(r);
        return meet();
      });
    });
    watch.collect(samples);
  }

 private:
  float* at(size_t tensor, int r) { return static_cast<float*>(list_.at(tensor).in(r)); }

  void gather(int r) {
    if (form_ == Naive::kRoot && r != 0) return;
    const size_t parts = form_ == Naive::kRoot ? 1 : static_cast<size_t>(list_.replicas());
    const size_t part = static_cast<size_t>(r);
    float* shared = shared_.data();
    for (size_t t = 0; t < list_.size(); ++t) {
      const size_t n = list_.at(t).count(), begin = n * part / parts, count = n * (part + 1) / parts - begin;
      float* to = at(t, 0);
      if (form_ == Naive::kSliced) {
        to = shared;
        std::memcpy(to + begin, at(t, 0) + begin, count * sizeof(float));
        shared += n;
      }
      for (int p = 1; p < list_.replicas(); ++p) add(to + begin, at(t, p) + begin, count);
    }
  }

  void spread(int r) {
    if (form_ == Naive::kRoot && r == 0) return;
    const float* shared = shared_.data();
    for (size_t t = 0; t < list_.size(); ++t) {
      std::memcpy(at(t, r), form_ == Naive::kRoot ? at(t, 0) : shared, list_.at(t).bytes());
      if (form_ == Naive::kSliced) shared += list_.at(t).count();
    }
  }

  Naive form_;
  DataList& list_;
  std::barrier<> meet_;
  std::vector<float> shared_;
};

class NaiveHanding final : public Side {
 public:
  NaiveHanding(Handing handing, Exchanged& data) : handing_(handing), data_(data), meet_(data.replicas()) {}
  std::string name() const override { return "std::barrier and loops"; }

  void block(const Plan& plan, Samples& samples) override {
    Stopwatch watch(data_.replicas(), plan);
    on_replicas(data_.replicas(), [&](int r) {
      const auto meet = [&] {
        meet_.arrive_and_wait();
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

  // Replica r writes its own output.
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
  std::barrier<> meet_;
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
std::unique_ptr<Side> naive_list(Naive form, DataList& list) {
  return std::make_unique<NaiveList>(form, list);
}
std::unique_ptr<Side> naive_handing(Handing handing, Exchanged& data) {
  return std::make_unique<NaiveHanding>(handing, data);
}
std::unique_ptr<Side> naive_barrier(int replicas) { return std::make_unique<NaiveBarrier>(replicas); }

}  // namespace bench
