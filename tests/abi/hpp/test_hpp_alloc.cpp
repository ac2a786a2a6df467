// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp without memory: each C++ allocation fails in turn, on any thread. The result is std::bad_alloc or
// an error RESOURCE_EXHAUSTED, and neither C++ nor the library leaks memory.
#include "hpp_support.hpp"

#include <cstdlib>

namespace {
std::atomic<int64_t> until_failure{-1};  // allocations before the one that fails; < 0: none fails
std::atomic<int64_t> live{0};
std::atomic<int64_t> live_of_library{0};

void *take(std::size_t size) noexcept {
  if (until_failure.load() >= 0 && until_failure.fetch_sub(1) == 0) return nullptr;
  void *memory = std::malloc(size == 0 ? 1 : size);
  if (memory != nullptr) ++live;
  return memory;
}
}  // namespace

// Not inlined, because GCC would report the pair as mismatched.
[[gnu::noinline]] void *operator new(std::size_t size) {
  void *memory = take(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void *memory) noexcept {
  if (memory != nullptr) --live;
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void *memory, std::size_t) noexcept { operator delete(memory); }

namespace {

using dist::reduce_op;
using dist::replica;
using dist::tensor;
using dist::value;

dist_strategy_options counted_options() {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  static dist_host_options host;
  host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.num_replicas = 2;
  host.allocator.alloc = [](std::size_t size, std::size_t align, void *) {
    void *memory = nullptr;
    if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, size) != 0) return memory;
    ++live_of_library;
    return memory;
  };
  host.allocator.free = [](void *memory, std::size_t, std::size_t, void *) {
    if (memory != nullptr) --live_of_library;
    std::free(memory);
  };
  return options;
}

void values(const dist::strategy &strategy) {
  const value one = scalar(strategy, 1.0F);
  const value parts = value::per_replica(strategy, {one, one});
  const value dict = value::dict(strategy, {{"a", parts}, {"b", value::text(strategy, "words")}});
  auto data = std::make_unique<std::vector<float>>(std::vector<float>{1, 2});
  const tensor view(*data);
  const value wrapped = value::wrap(strategy, view, std::move(data));
  const value boxed =
      value::object(strategy, std::make_unique<std::string>("a text that is long enough for memory"));
  REQUIRE(strategy.batch_reduce_to(reduce_op::sum, {{parts, {}}, {parts, {}}}).size() == 2);
  REQUIRE(!dict.describe().empty() && !strategy.explain().empty());
}

void runs(const dist::strategy &strategy) {
  const std::vector<float> zeros(2);
  const dist::variable variable(strategy, zeros, "v", DIST_AGGREGATION_SUM);
  const auto step = [&](replica replica, const value &) {
    std::vector<float> gradient(2, 1);
    replica.all_reduce(reduce_op::sum, {tensor(gradient), tensor(gradient.data(), {2, 1})});
    const dist::work work = replica.begin().all_reduce(reduce_op::max, gradient);
    work.wait();
    replica.assign(variable, gradient);
    return replica.merge_call([](dist::strategy_ref owner, const value &) { return scalar(owner, 1); });
  };
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = 600'000'000'000;
  REQUIRE(static_cast<bool>(strategy.run_values(step)));
  REQUIRE(static_cast<bool>(strategy.run_values(step, {}, {}, options)));
  try {
    strategy.run([](replica replica) {
      if (replica.id() == 1) throw own_error("in words that need some memory of their own");
      replica.barrier();
    });
  } catch (const own_error &) {  // or an error with the same text, if the exception could not be kept
  } catch (const dist::error &failure) {
    if (failure.code() != DIST_UNKNOWN) throw;
  }
}

void input(const dist::strategy &strategy) {
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 2;
  options.prefetch = -1;
  const auto make = [&](const dist_input_context &) {
    return dist::dataset::from_callback(
        strategy, [&](int64_t index) { return index < 6 ? scalar(strategy, index) : value(); }, options);
  };
  dist_dataset_options outer = DIST_DATASET_OPTIONS_INIT;
  outer.prefetch = -1;
  const auto dataset = dist::dataset::from_function(strategy, make, outer);
  int batches = 0;
  for (const value &batch : dataset) batches += batch.size() == 2;
  REQUIRE(batches == 2);
}

void everything_fails_once(void (*program)(const dist::strategy &)) {
  for (int64_t k = 0;; ++k) {
    const int64_t before = live, before_of_library = live_of_library;
    bool done = false;
    {
      const dist::strategy strategy(counted_options());
      try {
        const struct failing {
          explicit failing(int64_t later) { until_failure = later; }
          ~failing() { until_failure = -1; }
        } one(k);
        program(strategy);
        done = until_failure >= 0;  // no allocation failed
      } catch (const std::bad_alloc &) {
      } catch (const dist::error &failure) {
        if (failure.code() != DIST_RESOURCE_EXHAUSTED && failure.code() != DIST_ABORTED) throw;
      }
      strategy.run([](replica replica) { replica.barrier(); });
    }
    if (live != before || live_of_library != before_of_library)
      throw std::logic_error("allocation " + std::to_string(k) + " failed, and left something behind");
    if (done) break;
    require(k < 10000, "there is an end of allocations");
  }
}

void of_values() { everything_fails_once(values); }
void of_runs() { everything_fails_once(runs); }
void of_input() { everything_fails_once(input); }

}  // namespace

int main() {
  const CMUnitTest tests[] = {HPP_TEST(of_values), HPP_TEST(of_runs), HPP_TEST(of_input)};
  return cmocka_run_group_tests_name("dist.hpp: no memory", tests, nullptr, nullptr);
}
