// SPDX-License-Identifier: Apache-2.0
// Compares the recorded outcome of a case with libdist's.
#pragma once

#include <vector>

#include "compare.hpp"
#include "runner.hpp"

namespace golden {

struct Judgement {
  // One for each part of `expected` that differs. "outcome" means a different kind of outcome, and
  // "afterwards" a different state of the process after the case. A recorded hang or crash cannot be correct,
  // so whatever libdist does is a difference in "outcome".
  std::vector<Difference> differences;
  // Faults that no list excuses: libdist died, hung or became unusable, or the replay does not know what the
  // case asks for.
  std::vector<Difference> faults;
  bool malformed = false;  // the case is malformed, which is then the only fault

  bool same() const noexcept { return differences.empty() && faults.empty(); }
};

Judgement judge(const Case& one, const Answer& answer);

}  // namespace golden
