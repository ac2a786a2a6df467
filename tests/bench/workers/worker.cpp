// SPDX-License-Identifier: Apache-2.0
// Creates libdist and the bare streams. Gloo has a separate file.
#include "tests/bench/workers/worker.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tests/bench/harness.hpp"
#include "tests/bench/workers/bare.hpp"
#include "tests/bench/workers/by_hand.hpp"
#include "tests/bench/workers/gloo.hpp"

namespace bench {
namespace {

void must(dist_status status) {
  if (status != DIST_OK) throw std::runtime_error(dist_last_error());
}

class Libdist final : public Turns {
 public:
  Libdist(dist_transport transport, Tensors& tensors) : tensors_(tensors) {
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
    options.worker = &worker;
    options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    options.num_replicas = 1;
    worker.transport = transport;
    must(dist_strategy_create(&options, &strategy_));
  }
  ~Libdist() override {
    if (strategy_ == nullptr) return;
    [[maybe_unused]] const dist_status status = dist_strategy_destroy(strategy_);
  }
  Libdist(const Libdist&) = delete;
  Libdist& operator=(const Libdist&) = delete;

  // Destroys the strategy and checks that this succeeds.
  void end() {
    dist_strategy* const mine = strategy_;
    strategy_ = nullptr;
    must(dist_strategy_destroy(mine));
  }

  double take(Page& page, const Size& size, int operations) override {
    elements_ = size.bytes / sizeof(float);
    operations_ = operations;
    tensors_.fill(elements_);
    page.meet();
    must(dist_run(strategy_, all_reduces, this, nullptr));
    tensors_.check(tensors_.out, elements_, 1);
    return us_;
  }

 private:
  static dist_status all_reduces(dist_replica* replica, void* user_data) {
    Libdist& mine = *static_cast<Libdist*>(user_data);
    const auto length = static_cast<int64_t>(mine.elements_);
    const dist_tensor in = {mine.tensors_.in.data(), DIST_F32, 1, &length, nullptr};
    dist_tensor out = {mine.tensors_.out.data(), DIST_F32, 1, &length, nullptr};
    // The first operation is not measured: it brings all workers to the same point.
    dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, nullptr, nullptr);
    const double begin = now_us();
    for (int i = 0; i < mine.operations_ && status == DIST_OK; ++i)
      status = dist_all_reduce(replica, DIST_REDUCE_SUM, &in, &out, 1, nullptr, nullptr);
    mine.us_ = (now_us() - begin) / mine.operations_;
    return status;
  }

  Tensors& tensors_;
  dist_strategy* strategy_ = nullptr;
  std::size_t elements_ = 0;
  int operations_ = 0;
  double us_ = 0;
};

class BareTurns final : public Turns {
 public:
  BareTurns(Bare& bare, InnerSide side) : bare_(bare), side_(side) {}
  double take(Page& page, const Size& size, int operations) override {
    const auto once = [&] {
      side_ == kRoundTrip ? bare_.round_trip(size.bytes) : bare_.exchange(size.bytes);
    };
    page.meet();
    once();
    const double begin = now_us();
    for (int i = 0; i < operations; ++i) once();
    return (now_us() - begin) / operations;
  }

 private:
  Bare& bare_;
  InnerSide side_;
};

// Chooses how many operations a turn of each side has at this size. `first` has the time of one operation in
// each side's first turn.
void plan(Page& page, const Size& size, const std::vector<double>& first) {
  double fastest = HUGE_VAL;  // of Gloo's algorithms
  for (std::size_t side = kFirstOfGloo; side < first.size(); ++side) fastest = std::min(fastest, first[side]);
  for (std::size_t side = 0; side < first.size(); ++side) {
    int operations = operations_for(first[side], page.most_operations(size));
    if (side >= kFirstOfGloo && first[side] > kTooSlow * fastest) operations = 0;
    if (side >= kFirstOfGloo && first[side] > kHopeless * fastest) operations = kNever;
    if (first[side] == HUGE_VAL) operations = kNever;
    page.operations[side].store(operations);
  }
}

void outsiders_turn(Page& page) {
  page.meet_outside();
  page.meet_outside();
}

void work(Page& page, int me) {
  Tensors tensors(me, page.workers, kSizes[static_cast<std::size_t>(page.sizes) - 1].bytes / sizeof(float));
  Libdist libdist(page.transport, tensors);
  Bare bare(me, page.workers, page.bare_address.data());
  BareTurns round_trip(bare, kRoundTrip), exchange(bare, kExchange);
  const std::vector<std::unique_ptr<Turns>> gloo = gloo_turns(page, me, tensors);
  ByHand by_hand(page.by_hand, me, page.workers, tensors);
  std::vector<Turns*> sides{&libdist, &round_trip, &exchange, &by_hand};
  for (const auto& algorithm : gloo) sides.push_back(algorithm.get());

  for (int s = 0; s < page.sizes; ++s) {
    const Size& size = kSizes[static_cast<std::size_t>(s)];
    std::vector<double> first;  // this turn is a warm-up and is not counted
    for (std::size_t side = 0; side < sides.size(); ++side) {
      const bool never = page.operations[side].load() == kNever;
      first.push_back(never ? HUGE_VAL
                            : sides[side]->take(page, size, std::min(kWarmUp, page.most_operations(size))));
    }
    if (me == 0) plan(page, size, first);
    page.meet();
    if (page.outsiders) outsiders_turn(page);
    for (int round = 0; round < page.rounds; ++round) {
      for (std::size_t side = 0; side < sides.size(); ++side) {
        const int operations = page.operations[side].load();
        if (operations <= 0) continue;
        const double us = sides[side]->take(page, size, operations);
        if (me == 0) page.us[s][round][side] = us;
      }
      if (page.outsiders) outsiders_turn(page);
    }
    page.meet();  // all have finished before the next size is planned
  }
  page.meet();
  libdist.end();
}

}  // namespace

int be_worker(int me) {
  void* const at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, kPageFd, 0);
  if (at == MAP_FAILED) return 2;
  Page& page = *static_cast<Page*>(at);
  try {
    work(page, me);
  } catch (const std::exception& error) {
    page.fail("worker " + std::to_string(me) + ": " + error.what());
    return 2;
  }
  return 0;
}

std::vector<SideTimes> inner_sides() {
  std::vector<SideTimes> sides{{"libdist", "", {}},
                               {"gRPC: round trip", "", {}},
                               {"gRPC: exchange", "", {}},
                               {"shared memory by hand", "", {}}};
  for (const std::string& algorithm : gloo_algorithms()) sides.push_back({gloo_name(), algorithm, {}});
  return sides;
}

}  // namespace bench
