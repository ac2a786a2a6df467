// SPDX-License-Identifier: Apache-2.0
// A table whose cells have several lines. Where it is wider than a page it goes on below, its first column
// again.
#pragma once

#include <string>
#include <vector>

namespace faults {

struct SideBySide {
  using Lines = std::vector<std::string>;
  struct Row {
    std::string name;
    std::vector<Lines> cells;  // as many as columns; without a line: "-"
  };
  std::vector<std::string> columns;  // broken at blanks where that is narrower
  std::vector<Row> rows;
};

void print(const SideBySide& table);

}  // namespace faults
