// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/serve/rows.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>

#include <dist/dist.h>

#include "tests/bench/serve/thread_pool.hpp"

namespace bench::serve {
namespace {

using Clock = std::chrono::steady_clock;

int64_t now_ns() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }

void check(dist_status status) {
  if (status != DIST_OK) throw std::runtime_error(dist_last_error());
}

// Keeps a CPU busy for this long, like a step of a model.
void compute(int64_t ns) {
  for (const int64_t end = now_ns() + ns; now_ns() < end;) {
  }
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Destroy {
  void operator()(dist_strategy* strategy) const { check(dist_strategy_destroy(strategy)); }
  void operator()(dist_batcher* batcher) const { check(dist_batcher_destroy(batcher)); }
  void operator()(dist_completions* completions) const { dist_completions_destroy(completions); }
};
using Strategy = std::unique_ptr<dist_strategy, Destroy>;
using Batcher = std::unique_ptr<dist_batcher, Destroy>;
using Completions = std::unique_ptr<dist_completions, Destroy>;

Strategy strategy_of(int replicas) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = replicas;
  options.threads = DIST_THREADS_LIBRARY;
  dist_strategy* strategy = nullptr;
  check(dist_strategy_create(&options, &strategy));
  return Strategy(strategy);
}

Completions completions_of() {
  dist_completions* completions = nullptr;
  check(dist_completions_create(nullptr, &completions));
  return Completions(completions);
}

void take_all(dist_completions* completions, int count) {
  for (int i = 0; i < count; ++i) {
    dist_request* work = nullptr;
    check(dist_completions_next(completions, -1, &work));
    check(dist_request_wait(work, DIST_NO_TIMEOUT));
    dist_request_destroy(work);
  }
}

dist_status note_time(dist_replica*, void* user_data) {
  static_cast<std::atomic<int64_t>*>(user_data)->store(now_ns(), std::memory_order_release);
  return DIST_OK;
}

constexpr int64_t kFiveMs = 5'000'000;

dist_status five_ms(dist_replica*, void*) {
  compute(kFiveMs);
  return DIST_OK;
}

}  // namespace

// From the submission to the first instruction of the function.
Row dispatch(const Settings& settings, bool after_a_pause) {
  Row row{after_a_pause ? "dispatch to an instance that sleeps" : "dispatch to an instance that spins",
          "us",
          {},
          {},
          after_a_pause ? 0 : 2.0,
          false};
  const Strategy strategy = strategy_of(1);
  ThreadPool pool(1);
  std::atomic<int64_t> began{0};
  const auto wait = [&] {
    while (began.load(std::memory_order_acquire) == 0) {
    }
  };
  const auto pause = [&](int64_t ns) {
    if (after_a_pause) return std::this_thread::sleep_for(std::chrono::milliseconds(1));
    compute(ns);
  };
  const int times = settings.quick ? 20 : after_a_pause ? 200 : 2000;
  for (int round = 0; round < settings.rounds; ++round) {
    std::vector<double> mine;
    std::vector<double> naive;
    for (int i = 0; i < times; ++i) {
      began = 0;
      int64_t start = now_ns();
      check(dist_submit(strategy.get(), note_time, &began, nullptr, nullptr));
      wait();
      mine.push_back(static_cast<double>(began - start) / 1e3);
      pause(5'000);
    }
    for (int i = 0; i < times; ++i) {
      began = 0;
      int64_t start = now_ns();
      pool.submit([](void* data) { (void)note_time(nullptr, data); }, &began);
      wait();
      naive.push_back(static_cast<double>(began - start) / 1e3);
      pause(5'000);
    }
    row.rounds.push_back(median(mine));
    row.naive.push_back(median(naive));
  }
  check(dist_instances_close(strategy.get(), -1));
  return row;
}

namespace {

dist_status count_one(dist_replica*, void* user_data) {
  static_cast<std::atomic<int64_t>*>(user_data)->fetch_add(1, std::memory_order_relaxed);
  return DIST_OK;
}

// Calls submit() `count` times on each of n threads and waits until all requests have been executed. At most
// `window` of them are in progress, about as many as a server with a bounded queue has. Returns the time.
template <class Submit>
double time_of(int n, int64_t count, int64_t window, std::atomic<int64_t>& done, Submit&& submit) {
  constexpr int64_t kBlock = 16;
  done = 0;
  std::atomic<int64_t> sent{0};
  const auto produce = [&] {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t block = std::min(kBlock, window);
      if (i % block == 0) {
        const int64_t least = sent.fetch_add(block) + block - window;
        while (done.load(std::memory_order_acquire) < least) {
        }
      }
      submit();
    }
  };
  const int64_t start = now_ns();
  std::vector<std::thread> others;
  for (int i = 1; i < n; ++i) others.emplace_back(produce);
  produce();
  for (std::thread& each : others) each.join();
  while (done.load(std::memory_order_acquire) < n * count) {
  }
  return static_cast<double>(now_ns() - start);
}

// Requests with a deadline and a priority, relative to the pool, in turns.
Row next_to_pool(const Settings& settings, const char* name, int producers, int64_t window) {
  Row row{name, "x", {}, {}, 1.0, true};
  const Strategy strategy = strategy_of(1);
  check(dist_instances_open(strategy.get(), nullptr));
  ThreadPool pool(1);
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.timeout_ns = 10'000'000'000;
  options.priority = 1;
  std::atomic<int64_t> done{0};
  const int64_t count = settings.quick ? 256 : 16'384;
  for (int round = 0; round < settings.rounds; ++round) {
    const double mine = time_of(producers, count, window, done, [&] {
      check(dist_submit(strategy.get(), count_one, &done, &options, nullptr));
    });
    const double pools = time_of(producers, count, window, done, [&] {
      pool.submit([](void* data) { (void)count_one(nullptr, data); }, &done);
    });
    row.rounds.push_back(pools / mine);
  }
  check(dist_instances_close(strategy.get(), -1));
  return row;
}

}  // namespace

Row throughput(const Settings& settings, int producers) {
  return next_to_pool(
      settings,
      producers == 1 ? "throughput of one producer, over a pool" : "throughput of two producers, over a pool",
      producers, 256);
}

Row back_to_back(const Settings& settings) {
  return next_to_pool(settings, "one request after another, over a pool", 1, 1);
}

Row four_requests(const Settings& settings) {
  Row row{"four requests of 5 ms on two replicas", "ms", {}, {}, 10.5, false};
  const Strategy strategy = strategy_of(2);
  const Completions completions = completions_of();
  dist_submit_options options = DIST_SUBMIT_OPTIONS_INIT;
  options.completions = completions.get();
  check(dist_instances_open(strategy.get(), nullptr));
  for (int round = 0; round < settings.rounds; ++round) {
    const int64_t start = now_ns();
    for (int i = 0; i < 4; ++i) check(dist_submit(strategy.get(), five_ms, nullptr, &options, nullptr));
    take_all(completions.get(), 4);
    row.rounds.push_back(static_cast<double>(now_ns() - start) / 1e6);
  }
  return row;
}

Row gang_of_four(const Settings& settings) {
  Row row{"the same as four runs of both", "ms", {}, {}, 0, false};
  const Strategy strategy = strategy_of(2);
  for (int round = 0; round < settings.rounds; ++round) {
    const int64_t start = now_ns();
    for (int i = 0; i < 4; ++i) check(dist_run(strategy.get(), five_ms, nullptr, nullptr));
    row.rounds.push_back(static_cast<double>(now_ns() - start) / 1e6);
  }
  return row;
}

// ---- Batches ----

namespace {

struct Engine {
  int64_t step_ns = 0;
  int64_t item_ns = 0;
};

dist_status engine_step(dist_replica*, dist_batch* batch, void* user_data) {
  const auto& engine = *static_cast<const Engine*>(user_data);
  if (engine.step_ns > 0)
    compute(engine.step_ns + engine.item_ns * static_cast<int64_t>(dist_batch_size(batch)));
  return DIST_OK;
}

Batcher batcher_of(const Strategy& strategy, Engine& engine, int max_items, int64_t max_waiting) {
  dist_batcher_options options = DIST_BATCHER_OPTIONS_INIT;
  options.max_items = max_items;
  options.max_waiting = max_waiting;
  dist_batcher* batcher = nullptr;
  check(dist_batcher_create(strategy.get(), engine_step, &engine, &options, &batcher));
  return Batcher(batcher);
}

constexpr int kItems = 16;

}  // namespace

// The overhead of an item in addition to the host's step: it is submitted, batched, completed and taken by
// one thread.
Row item_overhead(const Settings& settings) {
  Row row{"an item of a batch, beside its step", "us", {}, {}, 0.5, false};
  const Strategy strategy = strategy_of(1);
  const Completions completions = completions_of();
  Engine engine;
  const Batcher batcher = batcher_of(strategy, engine, kItems, 4096);
  dist_item_options options = DIST_ITEM_OPTIONS_INIT;
  options.completions = completions.get();
  const int count = settings.quick ? 256 : 20'000;
  for (int round = 0; round < settings.rounds; ++round) {
    const int64_t start = now_ns();
    for (int done = 0; done < count; done += 64) {
      for (int i = 0; i < 64; ++i) check(dist_batcher_submit(batcher.get(), nullptr, &options, nullptr));
      take_all(completions.get(), 64);
    }
    row.rounds.push_back(static_cast<double>(now_ns() - start) / 1e3 / count);
  }
  return row;
}

// Relative to full batches without a queue on the same number of threads: one, so that the host's thread has
// a CPU too.
Row batched_throughput(const Settings& settings) {
  Row row{"throughput, over full batches offline", "x", {}, {}, 0.95, true};
  const Strategy strategy = strategy_of(1);
  const Completions completions = completions_of();
  Engine engine{200'000, 20'000};
  const Batcher batcher = batcher_of(strategy, engine, kItems, 4096);
  dist_item_options options = DIST_ITEM_OPTIONS_INIT;
  options.completions = completions.get();
  const int steps = settings.quick ? 4 : 200;
  for (int round = 0; round < settings.rounds; ++round) {
    const int64_t start = now_ns();
    for (int i = 0; i < steps; ++i) compute(engine.step_ns + kItems * engine.item_ns);
    const int64_t offline = now_ns() - start;
    const int64_t begin = now_ns();
    const int count = steps * kItems;
    int sent = 0;
    for (; sent < std::min(count, 3 * kItems); ++sent)
      check(dist_batcher_submit(batcher.get(), nullptr, &options, nullptr));
    for (int done = 0; done < count; ++done) {
      take_all(completions.get(), 1);
      if (sent < count) check(dist_batcher_submit(batcher.get(), nullptr, &options, nullptr)), ++sent;
    }
    row.rounds.push_back(static_cast<double>(offline) / static_cast<double>(now_ns() - begin));
  }
  return row;
}

namespace {

struct Asked {
  int64_t intended_ns = 0;
};

// Returns the p99 of the accepted items, from their intended arrival, at `rate` per second. `out_refused`
// receives the share of rejected ones.
double p99_at(const Batcher& batcher, dist_completions* completions, double rate, int count,
              double* out_refused) {
  dist_item_options options = DIST_ITEM_OPTIONS_INIT;
  options.completions = completions;
  std::vector<Asked> all(static_cast<std::size_t>(count));
  std::vector<double> latencies;
  std::mt19937 random(7);
  std::exponential_distribution<double> gap(rate);
  double at = static_cast<double>(now_ns());
  int sent = 0;
  int accepted = 0;
  int ended = 0;
  while (sent < count || ended < accepted) {
    while (sent < count && static_cast<double>(now_ns()) >= at) {
      Asked& one = all[static_cast<std::size_t>(sent++)];
      one.intended_ns = static_cast<int64_t>(at);
      at += gap(random) * 1e9;
      const dist_status status = dist_batcher_submit(batcher.get(), &one, &options, nullptr);
      if (status == DIST_OK)
        ++accepted;
      else if (status != DIST_RESOURCE_EXHAUSTED)
        check(status);
    }
    dist_request* work = nullptr;
    check(dist_completions_next(completions, 0, &work));
    if (work == nullptr) continue;
    const auto& one = *static_cast<const Asked*>(dist_request_user_data(work));
    latencies.push_back(static_cast<double>(now_ns() - one.intended_ns));
    dist_request_destroy(work);
    ++ended;
  }
  *out_refused = 1 - static_cast<double>(accepted) / count;
  const auto place =
      latencies.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(latencies.size()) * 0.99);
  std::nth_element(latencies.begin(), place, latencies.end());
  return *place;
}

}  // namespace

Row overload(const Settings& settings) {
  Row row{"p99 at twice the capacity, over that at it", "x", {}, {}, 1.2, false};
  const Strategy strategy = strategy_of(1);
  const Completions completions = completions_of();
  Engine engine{200'000, 20'000};
  // The queue holds as many as the next step can take. Items that would wait longer are rejected.
  const Batcher batcher = batcher_of(strategy, engine, kItems, kItems);
  const double capacity = kItems * 1e9 / static_cast<double>(engine.step_ns + kItems * engine.item_ns);
  const int count = settings.quick ? 200 : 20'000;
  for (int round = 0; round < settings.rounds; ++round) {
    double refused = 0;
    double refused_at_twice = 0;
    const double once = p99_at(batcher, completions.get(), capacity, count, &refused);
    const double twice = p99_at(batcher, completions.get(), 2 * capacity, 2 * count, &refused_at_twice);
    row.rounds.push_back(twice / once);
    std::printf("#   capacity %.0f/s: p99 %.2f ms, %.0f %% refused; twice: p99 %.2f ms, %.0f %% refused\n",
                capacity, once / 1e6, refused * 100, twice / 1e6, refused_at_twice * 100);
  }
  return row;
}

}  // namespace bench::serve
