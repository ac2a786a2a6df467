// SPDX-License-Identifier: Apache-2.0
// A row while it is being measured: its sides, the tensors they share, and what is to be compared with what.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/bench/rows.hpp"

namespace bench {

struct Runner::Row {
  struct Pairing {
    Unit unit;
    std::vector<size_t> sides;  // the fastest of them counts
    MaybeTarget target;
    double scale;  // how much more work libdist's sample does than theirs
    std::string group;
  };

  explicit Row(const RowSpec& wanted) : spec(wanted) {}

  Data& add_data(dist_dtype dtype, Layout layout) {
    data.push_back(std::make_unique<Data>(dtype, spec.bytes, spec.replicas, layout));
    return *data.back();
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
  std::vector<std::unique_ptr<Data>> data;
  std::vector<std::unique_ptr<Side>> sides;  // the first is libdist; they use the data
  std::vector<std::string> names;
  std::vector<Pairing> pairings;
};

}  // namespace bench
