// SPDX-License-Identifier: Apache-2.0
// core/collective/partition and task_list: parts and blocks cover every element exactly once and are split
// only between units.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/collective/partition.hpp"
#include "core/collective/task_list.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

void parts_follow_one_another(void**) {
  for (std::size_t units = 0; units <= 70; ++units) {
    for (std::size_t parts = 1; parts <= 9; ++parts) {
      std::size_t at = 0;
      for (std::size_t rank = 0; rank < parts; ++rank) {
        const Range part = part_of(units, parts, rank);
        assert_int_equal(part.begin, at);
        assert_in_range(part.end - part.begin, units / parts, units / parts + 1);
        at = part.end;
      }
      assert_int_equal(at, units);
    }
  }
}

void blocks_follow_one_another(void**) {
  for (std::size_t units = 0; units <= 70; ++units) {
    for (std::size_t block = 1; block <= 9; ++block) {
      const std::size_t blocks = (units + block - 1) / block;
      std::size_t at = 0;
      for (std::size_t i = 0; i < blocks; ++i) {
        const Range range = block_of(units, block, i);
        assert_int_equal(range.begin, at);
        assert_true(range.end > range.begin && range.end - range.begin <= block);
        at = range.end;
      }
      assert_int_equal(at, units);
      const Range past = block_of(units, block, blocks);
      assert_int_equal(past.begin, past.end);
    }
  }
}

// An all_reduce of vectors, whose tasks are the list of tensors.
struct List {
  struct Tensor {
    int64_t elements;
    dist_dtype dtype;
  };

  explicit List(const std::vector<Tensor>& wanted, std::size_t element_bytes = 0) {
    for (const Tensor& each : wanted) shapes.push_back(each.elements);
    for (std::size_t t = 0; t < wanted.size(); ++t)
      tensors.push_back({nullptr, wanted[t].dtype, 1, &shapes[t], nullptr});
    call.collective = Collective::kAllReduce;
    call.in = call.out = tensors.data();
    call.n = tensors.size();
    call.element_bytes = element_bytes;
  }
  TaskList tasks() const { return {call, 2, nullptr, {0, 2}}; }

  std::vector<int64_t> shapes;
  std::vector<dist_tensor> tensors;
  Call call;
};

// Counts each element of a list over all parts: with one cursor for all parts in order, with one for all in
// reverse order, and with one for each part.
void a_list_is_covered_once(void**) {
  const List list({{0, DIST_F32},
                   {1, DIST_F64},
                   {15, DIST_F32},
                   {16, DIST_F32},
                   {17, DIST_U8},
                   {0, DIST_F16},
                   {1000, DIST_F16},
                   {3, DIST_I64}});
  const TaskList tasks = list.tasks();
  for (std::size_t parts = 1; parts <= 8; ++parts) {
    for (std::size_t most = 1; most <= 5; ++most) {
      for (const int way : {0, 1, 2}) {
        std::vector<std::vector<int>> seen;
        for (const int64_t n : list.shapes) seen.emplace_back(static_cast<std::size_t>(n), 0);
        TaskList::Cursor shared;
        for (std::size_t i = 0; i < parts; ++i) {
          TaskList::Cursor own;
          const std::size_t rank = way == 1 ? parts - 1 - i : i;
          tasks.for_pieces(part_of(tasks.units(), parts, rank), way == 2 ? own : shared, most,
                           [&](const TaskList::Cursor& at, std::size_t first, std::size_t count) {
                             const std::size_t size = tasks.element_bytes(at.task);
                             assert_true(count > 0 && count * size <= most * kUnitBytes);
                             assert_int_equal(first * size % kUnitBytes, 0);
                             for (std::size_t e = first; e < first + count; ++e) ++seen[at.task].at(e);
                             return true;
                           });
        }
        for (const auto& tensor : seen) {
          for (const int times : tensor) assert_int_equal(times, 1);
        }
      }
    }
  }
}

// Elements of several bytes in a list of byte tensors must not be split.
void larger_elements_stay_whole(void**) {
  for (const std::size_t element :
       {std::size_t{1}, std::size_t{12}, std::size_t{24}, std::size_t{65}, std::size_t{4096}}) {
    const auto size = static_cast<int64_t>(element);
    const List list({{size * 7, DIST_U8}, {0, DIST_U8}, {size, DIST_U8}, {size * 1000, DIST_U8}}, element);
    const TaskList tasks = list.tasks();
    assert_true(tasks.unit_bytes() % element == 0 && tasks.unit_bytes() >= element);
    for (std::size_t parts = 1; parts <= 5; ++parts) {
      std::vector<std::size_t> at(list.shapes.size(), 0);
      TaskList::Cursor cursor;
      for (std::size_t rank = 0; rank < parts; ++rank) {
        tasks.for_pieces(part_of(tasks.units(), parts, rank), cursor, 3,
                         [&](const TaskList::Cursor& here, std::size_t first, std::size_t count) {
                           assert_int_equal(first, at[here.task]);
                           assert_int_equal(count % element, 0);
                           at[here.task] += count;
                           return true;
                         });
      }
      for (std::size_t t = 0; t < at.size(); ++t) assert_int_equal(at[t], list.shapes[t]);
    }
  }
}

void a_piece_may_be_the_last(void**) {
  const List list({{1600, DIST_F32}, {1600, DIST_F32}, {1600, DIST_F32}});
  int pieces = 0;
  TaskList::Cursor cursor;
  list.tasks().for_pieces({0, 300}, cursor, 1,
                          [&](const TaskList::Cursor&, std::size_t, std::size_t) { return ++pieces < 5; });
  assert_int_equal(pieces, 5);
}

// Consecutive ranges visit the list once: for the blocks of a long list, each tensor is visited a few times
// in total, not once per block.
void a_cursor_goes_on(void**) {
  constexpr std::size_t kTensors = 2000;
  const List list(std::vector<List::Tensor>(kTensors, {16, DIST_F32}));
  const TaskList tasks = list.tasks();
  TaskList::Cursor cursor;
  for (std::size_t unit = 0; unit < kTensors; ++unit) {
    std::size_t pieces = 0;
    tasks.for_pieces({unit, unit + 1}, cursor, 8, [&](const TaskList::Cursor& at, std::size_t, std::size_t) {
      assert_int_equal(at.task, unit);
      return ++pieces != 0;
    });
    assert_int_equal(pieces, 1);
    assert_int_equal(cursor.unit, unit + 1);  // after its end, in the next range
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(parts_follow_one_another), cmocka_unit_test(blocks_follow_one_another),
      cmocka_unit_test(a_list_is_covered_once),   cmocka_unit_test(a_piece_may_be_the_last),
      cmocka_unit_test(a_cursor_goes_on),         cmocka_unit_test(larger_elements_stay_whole),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
