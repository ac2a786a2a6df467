// SPDX-License-Identifier: Apache-2.0
#include "core/trace/stragglers.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace dist {
namespace {

// Orders by kind. Tags are bytes up to the terminator.
int compare_kind(const Straggler& a, const Straggler& b) noexcept {
  if (const int tags = std::strcmp(a.tag, b.tag); tags != 0) return tags;
  const auto rest = [](const Straggler& s) { return std::tie(s.collective, s.group); };
  return rest(a) < rest(b) ? -1 : rest(b) < rest(a) ? 1 : 0;
}

auto who(const Straggler& s) noexcept { return std::tie(s.worker, s.replica); }

}  // namespace

std::pmr::vector<Straggler> stragglers(const Snapshot& snapshot, Memory& memory) {
  std::pmr::vector<Straggler> rows(&memory);
  rows.reserve(snapshot.rounds().size());
  for (const Round& round : snapshot.rounds()) {
    if (!round.went_well() || (round.events.size() < 2 && !round.of_workers())) continue;
    const std::optional<Latest> latest = round.latest(snapshot.worker().me);
    if (!latest) continue;
    const Event& any = round.last();
    Straggler row{"", any.collective,  any.group,      latest->replica, latest->worker, 1,
                  1,  latest->late_ns, latest->late_ns};
    std::memcpy(row.tag, any.tag, sizeof row.tag);
    rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end(), [](const Straggler& a, const Straggler& b) {
    const int kinds = compare_kind(a, b);
    return kinds != 0 ? kinds < 0 : who(a) < who(b);
  });
  // Rows of the same kind and replica are merged; then all rows of a kind get its number of rounds.
  auto end = rows.begin();
  for (auto at = rows.begin(); at != rows.end();) {
    const auto kind = end;
    int64_t rounds = 0;
    const Straggler first = *at;
    for (; at != rows.end() && compare_kind(first, *at) == 0; ++at) {
      ++rounds;
      if (end != kind && who(end[-1]) == who(*at)) {
        ++end[-1].times_last;
        end[-1].late_ns += at->late_ns;
        end[-1].max_late_ns = std::max(end[-1].max_late_ns, at->max_late_ns);
      } else {
        *end++ = *at;
      }
    }
    std::for_each(kind, end, [&](Straggler& row) { row.rounds = rounds; });
  }
  rows.erase(end, rows.end());
  std::sort(rows.begin(), rows.end(), [](const Straggler& a, const Straggler& b) {
    if (a.times_last != b.times_last) return a.times_last > b.times_last;
    if (a.late_ns != b.late_ns) return a.late_ns > b.late_ns;
    const int kinds = compare_kind(a, b);
    return kinds != 0 ? kinds < 0 : who(a) < who(b);
  });
  return rows;
}

}  // namespace dist
