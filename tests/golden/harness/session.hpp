// SPDX-License-Identifier: Apache-2.0
// Plays all cases of some directories and checks them against the list of differences.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cases.hpp"
#include "differences.hpp"

namespace golden {

// Globs that select cases; "" selects all.
struct Selection {
  std::string area;
  std::string id;
};

// The number of cases with each verdict.
struct Tally {
  std::array<std::size_t, 5> counts{};  // by Verdict
  std::size_t& of(Verdict verdict) noexcept { return counts[static_cast<std::size_t>(verdict)]; }
  std::size_t of(Verdict verdict) const noexcept { return counts[static_cast<std::size_t>(verdict)]; }
  std::size_t total() const noexcept;
};

using Judged = std::function<void(const Case& one, Verdict verdict, const Judgement& judgement)>;

class Session {
 public:
  // Reads the list, which may throw Malformed. `own` is the project's own copy of cases. Without `grpc`, the
  // cases that need it count as not built.
  Session(const std::string& list, std::string own, Selection selection, std::chrono::seconds longest,
          bool grpc);

  // Reads a directory's areas and keeps the selected cases; may throw Malformed.
  std::vector<Area> load(const std::string& directory) const;

  // Plays an area's cases. The list counts over all areas of this name that the session plays.
  Tally play(const Area& area, const Judged& judged);

  // Returns what is wrong with the list in the areas that were played, or nothing if only some cases were
  // selected (--id). The numbers of a case may agree by chance, so a row that explained nothing is also
  // checked with the project's own copy.
  std::vector<std::string> stale();

 private:
  void play_own(const std::string& area);

  DifferenceList list_;
  std::string own_;
  Selection selection_;
  std::chrono::seconds longest_;
  bool grpc_;
  std::set<std::string> played_;
};

}  // namespace golden
