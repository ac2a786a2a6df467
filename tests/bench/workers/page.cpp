// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/workers/page.hpp"

#include <algorithm>
#include <cstdio>

namespace bench {

int operations_for(double us, int most) {
  return static_cast<int>(
      std::clamp(kMostTurnUs / us, std::min<double>(kFewest, most), static_cast<double>(most)));
}

void Page::begin() {
  inside_.expect(workers);
  outside_.expect(workers + 1);
}

void Page::fail(const std::string& what) {
  if (!failed.exchange(true)) std::snprintf(why.data(), why.size(), "%s", what.c_str());
  inside_.go_on();
  outside_.go_on();
}

}  // namespace bench
