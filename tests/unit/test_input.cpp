// SPDX-License-Identifier: Apache-2.0
// core/input below the C ABI: which replica gets which rows, the order of shuffled passes, and that passes
// wait neither for a oneTBB worker nor for each other.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <mutex>
#include <numeric>
#include <vector>

#include "core/input/dataset.hpp"
#include "core/input/iterator.hpp"
#include "core/input/partial_batch.hpp"
#include "core/input/shuffle.hpp"
#include "tests/unit/plain_error.hpp"

extern "C" {
#include <cmocka.h>  // last: it makes a macro of `fail`
}
#undef fail  // dist::fail() is meant below

namespace dist {
namespace {

Part part(int64_t elements, int32_t replicas, int32_t replica) {
  return part_of(elements, replicas, replica);
}

void parts_are_consecutive_pieces(void**) {
  for (int64_t m = 0; m <= 70; ++m) {
    for (int32_t replicas = 1; replicas <= 17; ++replicas) {
      const int64_t piece = (m + replicas - 1) / replicas;
      for (int32_t r = 0; r < replicas; ++r) {
        const Part p = part(m, replicas, r);
        assert_int_equal(p.first, std::min(m, r * piece));
        assert_int_equal(p.first + p.count, std::min(m, (r + 1) * piece));
      }
    }
  }
}

void parts_of_the_documented_cases(void**) {
  assert_int_equal(part(8, 2, 1).first, 4);
  assert_int_equal(part(2, 2, 1).first,
                   1);  // 10 elements in batches of 8: the last 2 are divided by their own number
  assert_int_equal(part(4, 3, 0).count, 2);
  assert_int_equal(part(4, 3, 1).count, 2);
  assert_int_equal(part(4, 3, 2).count, 0);
  assert_int_equal(part(1, 256, 255).count, 0);
}

void parts_of_the_largest_batches_do_not_overflow(void**) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const int64_t m : {most, most - 1, most - 255}) {
    int64_t next = 0;
    for (int32_t r = 0; r < 256; ++r) {
      const Part p = part(m, 256, r);
      assert_int_equal(p.first, next);
      assert_true(p.count >= 0);
      next += p.count;
    }
    assert_int_equal(next, m);
  }
}

std::vector<int64_t> order(uint64_t seed, uint64_t pass, int64_t n, int64_t chunk) {
  Shuffle shuffle(*std::pmr::new_delete_resource(), seed, pass, n);
  std::vector<int64_t> all;
  for (int64_t left = n; left > 0; left -= chunk) {
    const auto some = shuffle.take(std::min(chunk, left));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// Computed by a second implementation of the rule in shuffle.hpp, in Python. These orders must never change.
void shuffle_known_answers(void**) {
  assert_true(order(42, 0, 10, 10) == (std::vector<int64_t>{2, 7, 8, 9, 1, 4, 3, 6, 0, 5}));
  assert_true(order(42, 1, 10, 10) == (std::vector<int64_t>{5, 3, 2, 0, 7, 9, 6, 8, 1, 4}));
  assert_true(order(0, 0, 10, 10) == (std::vector<int64_t>{3, 7, 1, 5, 2, 8, 9, 6, 0, 4}));
}

// Shuffle draws several numbers before it swaps; the result must equal a loop that alternates.
void shuffle_equals_a_loop_that_draws_and_swaps(void**) {
  for (const int64_t n : {31, 32, 33, 1000}) {
    std::vector<int64_t> expected(static_cast<std::size_t>(n));
    std::iota(expected.begin(), expected.end(), 0);
    CounterRandom random(9, 4);
    for (std::size_t i = 0; i < expected.size(); ++i)
      std::swap(expected[i], expected[i + random.below(expected.size() - i)]);
    assert_true(order(9, 4, n, 5) == expected);
    Shuffle shuffle(*std::pmr::new_delete_resource(), 9, 4, n);
    for (std::size_t i = 0; i < expected.size(); ++i)
      assert_int_equal(shuffle.at(static_cast<int64_t>(i)), expected[i]);
  }
}

void shuffle_is_a_permutation_whatever_the_batch_size(void**) {
  for (const int64_t n : {0, 1, 2, 3, 64, 1000, 4099}) {
    const auto whole = order(7, 3, n, std::max<int64_t>(n, 1));
    for (const int64_t chunk : {1, 7, 64}) assert_true(order(7, 3, n, chunk) == whole);
    auto sorted = whole;
    std::sort(sorted.begin(), sorted.end());
    std::vector<int64_t> identity(static_cast<std::size_t>(n));
    std::iota(identity.begin(), identity.end(), 0);
    assert_true(sorted == identity);
  }
}

void shuffle_differs_by_seed_pass_and_length(void**) {
  const auto base = order(1, 0, 100, 100);
  assert_true(order(1, 1, 100, 100) != base);
  assert_true(order(2, 0, 100, 100) != base);
  auto longer = order(1, 0, 101, 101);
  longer.resize(100);
  assert_true(longer != base);
}

// 60,000 passes over 3 elements produce each of the 6 orders about 10,000 times. The random numbers are
// fixed, so the result is too; the bound is five standard deviations.
void shuffle_is_not_biased(void**) {
  int counts[27] = {};
  for (uint64_t pass = 0; pass < 60'000; ++pass) {
    const auto p = order(5, pass, 3, 3);
    ++counts[p[0] * 9 + p[1] * 3 + p[2]];
  }
  for (const int at : {5, 7, 11, 15, 19, 21}) assert_in_range(counts[at], 10'000 - 457, 10'000 + 457);
}

void bounded_draws_reach_every_value(void**) {
  for (uint64_t bound = 1; bound <= 33; ++bound) {
    CounterRandom random(bound, 0);
    std::vector<bool> seen(bound);
    for (uint64_t i = 0; i < bound * 64; ++i) {
      const uint64_t drawn = random.below(bound);
      assert_true(drawn < bound);
      seen[drawn] = true;
    }
    assert_true(std::all_of(seen.begin(), seen.end(), [](bool b) { return b; }));
  }
}

// ---- Passes ----------------------------------------------------------------------------------------

class MemoryFixture {
 public:
  MemoryFixture() : memory_(Memory::create({})) { assert_non_null(memory_); }
  ~MemoryFixture() { memory_->release(); }
  Memory& operator*() const noexcept { return *memory_; }

 private:
  Memory* memory_;
};

// ---- Datasets made by a host callback

// The behaviour of the host callback. It is the user_data of host_makes().
struct Making {
  dist_dataset* handle = nullptr;
  dist_status code = DIST_OK;
  const char* reason = nullptr;
  int calls = 0;
};

dist_status host_makes(const InputContext& context, dist_dataset** out_dataset, void* user_data) {
  Making& making = *static_cast<Making*>(user_data);
  assert_int_equal(context.input_pipeline_id, 3);
  ++making.calls;
  *out_dataset = making.handle;
  return making.reason == nullptr ? making.code : fail(making.code, "%s", making.reason).code();
}

Status make_by(Making& making, Ref<Dataset>* out) {
  making.calls = 0;
  const Status status = DatasetMaker(host_makes, &making).make({4, 3, 8}, out);
  assert_int_equal(making.calls, 1);
  return status;
}

dist_dataset* handle_of(Counted* object) { return reinterpret_cast<dist_dataset*>(object); }

void a_hosts_function_makes_datasets(void**) {
  MemoryFixture memory;
  const int64_t rows = 4;
  float numbers[4] = {1, 2, 3, 4};
  const dist_tensor tensor{numbers, DIST_F32, 1, &rows, nullptr};
  DatasetOptions options;
  options.global_batch_size = 2;
  Ref<Dataset> dataset;
  assert_true(Dataset::create_from_tensors(*memory, 2, {&tensor, 1}, options, &dataset).ok());
  Dataset* found = nullptr;
  assert_true(Dataset::of(handle_of(dataset.get()), "f", &found).ok());
  assert_ptr_equal(found, dataset.get());

  // The callback passes its reference on, which is released if the callback fails.
  Ref<Dataset> out;
  Making making;
  making.handle = handle_of(Ref<Dataset>::share(dataset.get()).take());
  assert_true(make_by(making, &out).ok());
  assert_ptr_equal(out.get(), dataset.get());
  out = {};
  making.handle = handle_of(Ref<Dataset>::share(dataset.get()).take());
  making.code = DIST_NOT_FOUND;
  assert_int_equal(make_by(making, &out).code(), DIST_NOT_FOUND);
  assert_non_null(std::strstr(last_message(), "NOT_FOUND for input pipeline 3 without a reason"));
  making.handle = nullptr;
  making.reason = "no such table";
  assert_int_equal(make_by(making, &out).code(), DIST_NOT_FOUND);
  assert_string_equal(last_message(), "no such table");

  making = {};
  assert_int_equal(make_by(making, &out).code(), DIST_INVALID_ARGUMENT);
  assert_non_null(std::strstr(last_message(), "created no dataset"));
  ValueRef value;
  assert_true(Value::copy_tensor(*memory, tensor, &value).ok());
  making.handle = handle_of(value.get());
  assert_int_equal(make_by(making, &out).code(), DIST_INVALID_ARGUMENT);
  assert_non_null(std::strstr(last_message(), "not a dataset"));
  assert_null(out.get());
  assert_int_equal(Dataset::of(making.handle, "f", &found).code(), DIST_INVALID_ARGUMENT);
  assert_int_equal(Dataset::of(nullptr, "f", &found).code(), DIST_INVALID_ARGUMENT);
  assert_string_equal(last_message(), "f(): dataset is NULL");
}

void each_replicas_rows_have_aligned_memory_of_their_own(void**) {
  MemoryFixture memory;
  float rows[5][3];
  std::iota(&rows[0][0], &rows[0][0] + 15, 0.0f);
  const int64_t shape[] = {5, 3};
  const dist_tensor tensor{rows, DIST_F32, 2, shape, nullptr};
  Ref<Dataset> dataset;
  const DatasetOptions options{.global_batch_size = 5};
  assert_true(Dataset::create_from_tensors(*memory, 2, {&tensor, 1}, options, &dataset).ok());
  Ref<Iterator> iterator;
  assert_true(Iterator::create(*dataset, &iterator).ok());
  ValueRef batch;
  assert_true(iterator->next({}, "dist_iterator_next", Iterator::FilledUp::kEnds, &batch).ok());
  assert_int_equal(batch->items().size(), 2);
  const float* expected = &rows[0][0];
  for (const ValueRef& item : batch->items()) {
    const dist_tensor part_tensor = item->tensor();
    assert_int_equal(reinterpret_cast<uintptr_t>(part_tensor.data) % 64, 0);
    const auto n = static_cast<std::size_t>(part_tensor.shape[0] * part_tensor.shape[1]);
    assert_memory_equal(part_tensor.data, expected, n * sizeof(float));
    expected += n;
  }
  assert_ptr_equal(expected, &rows[0][0] + 15);
}

// Elements 0, 1, 2, ... None is made before the gate opens.
struct Gate {
  Memory* memory;
  std::mutex mutex;
  std::condition_variable opened;
  bool open = false;
  int calls = 0;
  bool released = false;
};

dist_status gated_element(dist_strategy*, int64_t index, dist_value** out, void* user_data) {
  Gate& gate = *static_cast<Gate*>(user_data);
  std::unique_lock lock(gate.mutex);
  ++gate.calls;
  gate.opened.notify_all();
  gate.opened.wait(lock, [&] { return gate.open; });
  ValueRef element;
  const Status status = Value::copy_tensor(*gate.memory, {&index, DIST_I64, 0, nullptr, nullptr}, &element);
  *out = reinterpret_cast<dist_value*>(element.take());
  return status.code();
}

void gate_release(void* user_data) { static_cast<Gate*>(user_data)->released = true; }

// Passes whose sources occupy all oneTBB workers do not prevent another pass from getting its batches or from
// ending.
void a_pass_waits_for_no_worker(void**) {
  MemoryFixture memory;
  constexpr int kBlocked = 8;
  Gate closed[kBlocked];
  Ref<Iterator> blocked[kBlocked];
  const DatasetOptions options{.global_batch_size = 2};
  for (int i = 0; i < kBlocked; ++i) {
    closed[i].memory = &*memory;
    Ref<Dataset> dataset;
    assert_true(Dataset::create_from_callback(*memory, 1, nullptr, gated_element, &closed[i], gate_release,
                                              options, &dataset)
                    .ok());
    assert_true(Iterator::create(*dataset, &blocked[i]).ok());
  }
  Gate gate;
  gate.memory = &*memory;
  gate.open = true;
  {
    Ref<Dataset> dataset;
    assert_true(Dataset::create_from_callback(*memory, 1, nullptr, gated_element, &gate, gate_release,
                                              options, &dataset)
                    .ok());
    Ref<Iterator> iterator;
    assert_true(Iterator::create(*dataset, &iterator).ok());
    for (int64_t i = 0; i < 100; ++i) {
      ValueRef batch;
      assert_true(iterator->next({}, "dist_iterator_next", Iterator::FilledUp::kEnds, &batch).ok());
      assert_int_equal(static_cast<const int64_t*>(batch->tensor().data)[1], 2 * i + 1);
    }
  }
  assert_true(gate.released);
  for (Gate& other : closed) {
    {
      const std::lock_guard lock(other.mutex);
      other.open = true;
    }
    other.opened.notify_all();
  }
  for (int i = 0; i < kBlocked; ++i) {
    blocked[i] = {};
    assert_true(closed[i].released);
  }
}

// Ending an iterator while its batch is being made waits for the callback, which is not called afterwards.
void ending_waits_for_the_batch_being_made(void**) {
  MemoryFixture memory;
  Gate gate;
  gate.memory = &*memory;
  Ref<Iterator> iterator;
  {
    Ref<Dataset> dataset;
    const DatasetOptions options{.global_batch_size = 1, .prefetch = 4};
    assert_true(Dataset::create_from_callback(*memory, 3, nullptr, gated_element, &gate, gate_release,
                                              options, &dataset)
                    .ok());
    assert_true(Iterator::create(*dataset, &iterator).ok());
  }
  {
    std::unique_lock lock(gate.mutex);
    gate.opened.wait(lock, [&] { return gate.calls == 1; });  // a worker is inside
    gate.open = true;
  }
  gate.opened.notify_all();
  iterator = {};
  assert_true(gate.released);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(parts_are_consecutive_pieces),
      cmocka_unit_test(parts_of_the_documented_cases),
      cmocka_unit_test(parts_of_the_largest_batches_do_not_overflow),
      cmocka_unit_test(shuffle_known_answers),
      cmocka_unit_test(shuffle_equals_a_loop_that_draws_and_swaps),
      cmocka_unit_test(shuffle_is_a_permutation_whatever_the_batch_size),
      cmocka_unit_test(shuffle_differs_by_seed_pass_and_length),
      cmocka_unit_test(shuffle_is_not_biased),
      cmocka_unit_test(bounded_draws_reach_every_value),
      cmocka_unit_test(each_replicas_rows_have_aligned_memory_of_their_own),
      cmocka_unit_test(a_pass_waits_for_no_worker),
      cmocka_unit_test(ending_waits_for_the_batch_being_made),
      cmocka_unit_test(a_hosts_function_makes_datasets),
  };
  return cmocka_run_group_tests_name("input", tests, nullptr, nullptr);
}
