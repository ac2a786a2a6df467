// SPDX-License-Identifier: Apache-2.0
// The list of intentional differences, read from differences.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "judge.hpp"

namespace golden {

enum class Verdict { kSame, kOnPurpose, kDifferent, kInapplicable, kNotBuilt };

// A row of the table: | `area/id pattern` | parts | kind | reason |
struct Entry {
  std::string cases;               // a glob; begins with an area's name
  std::vector<std::string> parts;  // globs of keys of `expected`, "outcome", "afterwards"; "all" is "*"
  Verdict verdict;                 // kOnPurpose or kInapplicable
  int line;
  std::size_t matched = 0;    // cases
  std::size_t explained = 0;  // those of them that would be different without it

  std::string_view area() const noexcept { return std::string_view(cases).substr(0, cases.find('/')); }
};

class DifferenceList {
 public:
  // Throws Malformed, which names file and line.
  static DifferenceList read(const std::string& file);

  // What a case counts as; `judgement` keeps what no entry explains. Counts the entries' cases.
  Verdict explain(std::string_view area, const Case& one, Judgement& judgement);

  // A case that this build cannot play: nobody can say whether its rows explain something.
  void pass_over(std::string_view area, const Case& one);

  // What is wrong with the entries of an area, all cases of which have been explained or passed over: those that match none,
  // and those that explain nothing since what they speak of is the same without them.
  std::vector<std::string> stale(std::string_view area) const;

  // Whether a case is one of a row that has explained nothing so far.
  bool in_question(std::string_view area, const Case& one) const;

 private:
  std::string file_;
  std::vector<Entry> entries_;
};

}  // namespace golden
