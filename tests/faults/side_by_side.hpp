// SPDX-License-Identifier: Apache-2.0
// A table whose cells have several lines. If it is wider than the page, it is continued below with its first
// column repeated.
#pragma once

#include <string>
#include <vector>

namespace faults {

struct SideBySide {
  using Lines = std::vector<std::string>;
  struct Row {
    std::string name;
    std::vector<Lines> cells;  // one per column; an empty one is shown as "-"
  };
  std::vector<std::string> columns;  // broken at blanks if that makes the column narrower
  std::vector<Row> rows;
};

void print(const SideBySide& table);

}  // namespace faults
