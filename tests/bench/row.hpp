// SPDX-License-Identifier: Apache-2.0
// A row during its measurement: its sides, the tensors that they share, and the comparisons to make.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/rows.hpp"

namespace bench {

struct Runner::Row {
  struct Pairing {
    Unit unit;
    std::vector<size_t> sides;  // the fastest counts; for kOfLonger, the slowest
    MaybeTarget target;
    double scale;  // how much more work libdist's sample does than the other one's
    std::string group;
  };

  explicit Row(const RowSpec& wanted) : spec(wanted) {}

  Data& add_data(dist_dtype dtype, Layout layout) {
    return own(std::make_unique<Data>(dtype, spec.bytes, spec.replicas, layout));
  }
  template <class Kind>
  Kind& own(std::unique_ptr<Kind> checked) {
    Kind& kept = *checked;
    data.push_back(std::move(checked));
    return kept;
  }
  size_t add(std::unique_ptr<Side> side, std::string name = "") {
    names.push_back(name.empty() ? side->name() : std::move(name));
    sides.push_back(std::move(side));
    return sides.size() - 1;
  }
  void compare(Unit unit, std::vector<size_t> with, MaybeTarget target, double scale = 1,
               std::string group = "") {
    pairings.push_back({unit, std::move(with), target, scale, std::move(group)});
  }

  RowSpec spec;
  std::vector<std::unique_ptr<Strategy>> strategies;  // used only by this row
  std::vector<std::unique_ptr<Checked>> data;
  std::vector<std::unique_ptr<Side>> sides;  // the first is libdist; they use `data`
  std::vector<std::string> names;
  std::vector<Pairing> pairings;
  std::optional<size_t> hop;   // the side that measures a cache-line hop
  std::vector<size_t> limits;  // sides whose total time is a lower limit for all others
  std::string skipped;         // why there are no sides
};

}  // namespace bench
