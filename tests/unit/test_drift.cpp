// SPDX-License-Identifier: Apache-2.0
// The messages by which workers find where copies of a variable drift apart: their size, digests that
// distinguish what counts as different, and concurrent changes, which must not hang any worker.
#include <algorithm>
#include <array>
#include <barrier>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "core/cross_replica/across_workers.hpp"
#include "core/cross_replica/drift.hpp"
#include "core/value/elements.hpp"
#include "tests/unit/counting_memory.hpp"

// Last: its macro fail() would hide dist::fail().
#include <setjmp.h>
#include <stdarg.h>

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

constexpr int kWorkers = 3;
constexpr uint64_t kSeed = 20261123;

// Memory that the workers share. Each writes its words, and all take the maximum.
struct Table {
  std::barrier<> meets{kWorkers};
  std::array<std::vector<int64_t>, kWorkers> words;
  std::array<std::vector<std::byte>, kWorkers> elements;
};

// Workers of one process, each on its own thread, without a transport. Counts the bytes and calls of one
// worker.
class CountedWorkers final : public AcrossWorkers {
 public:
  CountedWorkers(Table& table, Memory& memory, int me) : table_(table), memory_(memory), me_(me) {}
  int num_workers() const noexcept override { return kWorkers; }
  int me() const noexcept override { return me_; }
  int worker_of(GlobalReplica replica) const noexcept override { return number(replica); }
  Status reduce(dist_reduce_op, dist_numerics, std::span<const dist_tensor>,
                std::span<dist_tensor>) override {
    return Status(DIST_INTERNAL);
  }
  Status broadcast(dist_tensor&, const char*, uint64_t) override { return Status(DIST_INTERNAL); }
  Status join(const dist_tensor& mine, int32_t, ValueRef* out) override {
    const std::size_t size = dtype_size(mine.dtype) * static_cast<std::size_t>(mine.shape[0]);
    const auto* const from = static_cast<const std::byte*>(mine.data);
    count(size);
    meet([&] { table_.elements[static_cast<std::size_t>(me_)].assign(from, from + size); });
    std::vector<std::byte> all;
    for (const auto& each : table_.elements) all.insert(all.end(), each.begin(), each.end());
    const int64_t length = mine.shape[0] * kWorkers;
    const Status made = Value::copy_tensor(memory_, {all.data(), mine.dtype, 1, &length, nullptr}, out);
    table_.meets.arrive_and_wait();
    return made;
  }
  Status largest(std::span<int64_t> words, const char*, uint64_t) override {
    count(words.size_bytes());
    meet([&] {
      auto& brought = table_.words[static_cast<std::size_t>(me_)];
      brought.assign(words.begin(), words.end());
      if (lie) lie(brought);
    });
    for (const auto& each : table_.words) {
      for (std::size_t i = 0; i < words.size(); ++i) words[i] = std::max(words[i], each[i]);
    }
    table_.meets.arrive_and_wait();
    if (after) after();
    return kOk;
  }

  std::size_t bytes = 0;
  int calls = 0;
  std::function<void()> after;                     // called after each largest()
  std::function<void(std::vector<int64_t>&)> lie;  // may change the words that this worker contributes

 private:
  void count(std::size_t more) noexcept {
    bytes += more;
    ++calls;
  }
  template <class Bring>
  void meet(Bring&& bring) {
    bring();
    table_.meets.arrive_and_wait();
  }

  Table& table_;
  Memory& memory_;
  const int me_;
};

// A variable of one replica on each worker.
class Fixture {
 public:
  Fixture(dist_dtype dtype, int64_t elements) : arena_(*memory_, 1) {
    std::vector<std::byte> zeros(static_cast<std::size_t>(elements) * dtype_size(dtype));
    for (int w = 0; w < kWorkers; ++w) {
      const ReplicaCount replicas(1, GlobalReplica{w}, kWorkers);
      VariableOptions options;
      options.name = "w";
      assert_true(Variable::create(*memory_,
                                   {DIST_STRATEGY_MIRRORED, make_counted<ReplicaNumbers>(*memory_, replicas)},
                                   options, {zeros.data(), dtype, 1, &elements, nullptr},
                                   &variables_[static_cast<std::size_t>(w)])
                      .ok());
      workers_.push_back(std::make_unique<CountedWorkers>(table_, *memory_, w));
    }
  }
  std::byte* copy(int worker) {
    return static_cast<std::byte*>(variables_[static_cast<std::size_t>(worker)]->first_copy().data);
  }
  CountedWorkers& worker(int w) { return *workers_[static_cast<std::size_t>(w)]; }

  // Compares the copies on all workers. All must get the same result.
  Drift check(dist_status wanted) {
    std::array<Drift, kWorkers> drifts;
    std::array<dist_status, kWorkers> statuses;
    std::vector<std::thread> threads;
    for (int w = 0; w < kWorkers; ++w) {
      worker(w).bytes = 0;
      worker(w).calls = 0;
      threads.emplace_back([&, w] {
        const auto at = static_cast<std::size_t>(w);
        CrossReplica context{&*memory_, ReplicaCount(1, GlobalReplica{w}, kWorkers), &arena_};
        context.workers = &worker(w);
        statuses[at] = check_drift(context, *variables_[at], &drifts[at]).code();
      });
    }
    for (std::thread& each : threads) each.join();
    for (int w = 0; w < kWorkers; ++w) {
      const Drift& drift = drifts[static_cast<std::size_t>(w)];
      assert_int_equal(statuses[static_cast<std::size_t>(w)], wanted);
      assert_int_equal(number(drift.replica), number(drifts[0].replica));
      assert_int_equal(number(drift.expected), number(drifts[0].expected));
      assert_int_equal(drift.element, drifts[0].element);
    }
    return drifts[0];
  }

 private:
  CountingMemory memory_;
  Arena arena_;
  Table table_;
  std::array<Ref<Variable>, kWorkers> variables_;
  std::vector<std::unique_ptr<CountedWorkers>> workers_;
};

// For 16 MiB of elements, each worker sends only some KiB.
void little_goes_from_worker_to_worker(void**) {
  constexpr int64_t kElements = int64_t{1} << 24;
  Fixture fixture(DIST_U8, kElements);
  assert_int_equal(number(fixture.check(DIST_OK).replica), -1);
  assert_int_equal(fixture.worker(0).calls, 1);
  assert_int_equal(fixture.worker(0).bytes, 24);
  for (const int64_t element : {int64_t{0}, int64_t{65535}, int64_t{9'999'999}, kElements - 1}) {
    fixture.copy(2)[element] = std::byte{1};
    const Drift drift = fixture.check(DIST_DATA_LOSS);
    fixture.copy(2)[element] = std::byte{0};
    assert_int_equal(drift.element, element);
    assert_int_equal(number(drift.replica), 2);
    assert_int_equal(number(drift.expected), 0);
    assert_int_equal(fixture.worker(1).calls, 1 + 3 + 1);
    assert_int_equal(fixture.worker(1).bytes, 24 + 3 * 4096 + 1);
  }
}

// The host writes while the workers compare. Whatever they find, all return the same result and none blocks.
void what_changes_meanwhile_hangs_nobody(void**) {
  for (int calls = 1; calls <= 4; ++calls) {
    Fixture fixture(DIST_F32, 100'000);
    fixture.copy(1)[4 * 70'000] = std::byte{1};
    int called = 0;
    fixture.worker(1).after = [&] {
      if (++called == calls) fixture.copy(1)[4 * 70'000] = std::byte{0};
    };
    const Drift drift = fixture.check(DIST_OK);
    assert_int_equal(number(drift.replica), -1);
    assert_int_equal(drift.element, -1);
  }
}

// Numbers from another process are not trusted. Whatever a worker sends, the others access only elements that
// exist.
void what_a_worker_makes_up_leads_nowhere(void**) {
  std::mt19937_64 random(kSeed);
  std::printf("# seed %llu\n", static_cast<unsigned long long>(kSeed));
  for (int turn = 0; turn < 200; ++turn) {
    Fixture fixture(DIST_F64, turn % 50 == 0 ? 0 : 1 + static_cast<int64_t>(random() % 3000));
    int called = 0;
    fixture.worker(2).lie = [&](std::vector<int64_t>& words) {
      if (called++ == 0 && turn % 2 == 0) words[0] = turn % 4 == 0 ? INT64_MAX : INT64_MIN;
      for (std::size_t i = called == 1 ? 1 : 0; i < words.size(); ++i) {
        if (random() % 3 == 0) words[i] = static_cast<int64_t>(random());
      }
    };
    assert_int_equal(number(fixture.check(DIST_OK).replica), -1);
  }
}

template <class T>
uint64_t digest_of(dist_dtype dtype, const std::vector<T>& elements) {
  return digest_elements(dtype, reinterpret_cast<const std::byte*>(elements.data()),
                         static_cast<int64_t>(elements.size() * sizeof(T) / dtype_size(dtype)));
}

void digests_tell_what_counts_as_different(void**) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::size_t size : {1, 2, 3, 1000, 1024, 1025, 5000}) {
    std::vector<float> a(size, 1.5f);
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      std::vector<float> b = a;
      assert_true(digest_of(DIST_F32, a) == digest_of(DIST_F32, b));
      b[at] = -1.5f;
      assert_false(digest_of(DIST_F32, a) == digest_of(DIST_F32, b));
      b[at] = infinity;
      std::vector<float> c = b;
      c[at] = -infinity;
      assert_false(digest_of(DIST_F32, c) == digest_of(DIST_F32, b));
      b[at] = nan;
      assert_false(digest_of(DIST_F32, c) == digest_of(DIST_F32, b));
      c[at] = -nan;
      assert_true(digest_of(DIST_F32, c) == digest_of(DIST_F32, b));
      assert_false(digest_of(DIST_I32, c) == digest_of(DIST_I32, b));
    }
  }
  assert_true(digest_of<uint8_t>(DIST_BOOL, {1, 0, 7}) == digest_of<uint8_t>(DIST_BOOL, {2, 0, 1}));
  assert_false(digest_of<uint8_t>(DIST_U8, {1, 0, 7}) == digest_of<uint8_t>(DIST_U8, {2, 0, 1}));
  // Trailing zeros count too. The digest need not contain the number of elements, because workers agree on it
  // first.
  assert_false(digest_of<uint8_t>(DIST_U8, {0, 1}) == digest_of<uint8_t>(DIST_U8, {1, 0}));
  // For a single element, different values have different digests.
  std::vector<uint64_t> digests;
  for (uint64_t i = 0; i < 1 << 16; ++i)
    digests.push_back(digest_of<uint16_t>(DIST_U16, {static_cast<uint16_t>(i)}));
  std::sort(digests.begin(), digests.end());
  assert_true(std::adjacent_find(digests.begin(), digests.end()) == digests.end());
}

}  // namespace
}  // namespace dist

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(dist::little_goes_from_worker_to_worker),
      cmocka_unit_test(dist::what_changes_meanwhile_hangs_nobody),
      cmocka_unit_test(dist::what_a_worker_makes_up_leads_nowhere),
      cmocka_unit_test(dist::digests_tell_what_counts_as_different),
  };
  return cmocka_run_group_tests_name("drift across workers", tests, nullptr, nullptr);
}
