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
  std::size_t matched = 0;    // number of cases
  std::size_t explained = 0;  // number of those that would be different without this entry

  std::string_view area() const noexcept { return std::string_view(cases).substr(0, cases.find('/')); }
};

class DifferenceList {
 public:
  // Throws Malformed, which names file and line.
  static DifferenceList read(const std::string& file);

  // Returns how a case counts. Removes what an entry explains from `judgement`, and counts the case for its
  // entries.
  Verdict explain(std::string_view area, const Case& one, Judgement& judgement);

  // Registers a case that this build cannot play, so that its rows do not count as stale.
  void pass_over(std::string_view area, const Case& one);

  // Returns what is wrong with the entries of an area after all of its cases have been explained or passed
  // over: entries that match no case, and entries that explain nothing because their cases are the same
  // without them.
  std::vector<std::string> stale(std::string_view area) const;

  // Whether the case matches a row that has not explained anything yet.
  bool in_question(std::string_view area, const Case& one) const;

 private:
  std::string file_;
  std::vector<Entry> entries_;
};

}  // namespace golden
