// SPDX-License-Identifier: Apache-2.0
// core/collective/partition: parts and blocks cover every element exactly once, and cut at units only.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/collective/partition.hpp"

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

// A list's elements, each counted, over all parts.
void a_list_is_covered_once(void**) {
  const std::vector<std::size_t> elements = {0, 1, 15, 16, 17, 0, 1000, 3};
  const std::vector<std::size_t> sizes = {4, 8, 4, 4, 1, 2, 2, 8};
  std::size_t units = 0;
  for (std::size_t t = 0; t < elements.size(); ++t) units += units_of(elements[t] * sizes[t]);
  for (std::size_t parts = 1; parts <= 8; ++parts) {
    for (std::size_t most = 1; most <= 5; ++most) {
      std::vector<std::vector<int>> seen;
      for (const std::size_t n : elements) seen.emplace_back(n, 0);
      for (std::size_t rank = 0; rank < parts; ++rank) {
        for_pieces(
            elements.size(), part_of(units, parts, rank), most, [&](std::size_t t) { return elements[t]; },
            [&](std::size_t t) { return sizes[t]; },
            [&](std::size_t t, std::size_t first, std::size_t count) {
              assert_true(count > 0 && count * sizes[t] <= most * kUnitBytes);
              assert_int_equal(first * sizes[t] % kUnitBytes, 0);
              for (std::size_t i = first; i < first + count; ++i) ++seen[t].at(i);
              return true;
            });
      }
      for (const auto& tensor : seen) {
        for (const int times : tensor) assert_int_equal(times, 1);
      }
    }
  }
}

// Elements that must stay whole, of a list of bytes.
void larger_elements_stay_whole(void**) {
  for (const std::size_t element :
       {std::size_t{1}, std::size_t{12}, std::size_t{24}, std::size_t{65}, std::size_t{4096}}) {
    const std::size_t unit = unit_bytes_for(element);
    const std::vector<std::size_t> bytes = {element * 7, 0, element, element * 1000};
    assert_true(unit % element == 0 && unit >= element);
    std::size_t units = 0;
    for (const std::size_t each : bytes) units += units_of(each, unit);
    for (std::size_t parts = 1; parts <= 5; ++parts) {
      std::vector<std::size_t> at(bytes.size(), 0);
      for (std::size_t rank = 0; rank < parts; ++rank) {
        for_pieces(
            bytes.size(), part_of(units, parts, rank), 3, [&](std::size_t t) { return bytes[t]; },
            [](std::size_t) { return std::size_t{1}; },
            [&](std::size_t t, std::size_t first, std::size_t count) {
              assert_int_equal(first, at[t]);
              assert_int_equal(count % element, 0);
              at[t] += count;
              return true;
            },
            unit);
      }
      assert_true(at == bytes);
    }
  }
}

void a_piece_may_be_the_last(void**) {
  int pieces = 0;
  for_pieces(
      3, Range{0, 300}, 1, [](std::size_t) { return std::size_t{1600}; },
      [](std::size_t) { return std::size_t{4}; },
      [&](std::size_t, std::size_t, std::size_t) { return ++pieces < 5; });
  assert_int_equal(pieces, 5);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(parts_follow_one_another),   cmocka_unit_test(blocks_follow_one_another),
      cmocka_unit_test(a_list_is_covered_once),     cmocka_unit_test(a_piece_may_be_the_last),
      cmocka_unit_test(larger_elements_stay_whole),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
