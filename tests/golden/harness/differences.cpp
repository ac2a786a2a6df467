// SPDX-License-Identifier: Apache-2.0
#include "differences.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <fstream>

#include "catalogue.hpp"

namespace golden {
namespace {

bool matches(const std::string& glob, const std::string& text) {
  return fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

std::string trimmed(std::string_view text, std::string_view what = " \t\r`") {
  const std::size_t begin = text.find_first_not_of(what);
  if (begin == text.npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(what) - begin + 1));
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (std::size_t end = 0; end != text.npos;) {
    end = text.find(at);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end != text.npos) text.remove_prefix(end + 1);
  }
  return parts;
}

// Parses a row of the table of differences. All other lines of the file are ignored.
Entry entry_of(const std::vector<std::string>& cells, int line) {
  Entry entry{cells[1], split(cells[2], ','), Verdict::kOnPurpose, line};
  if (cells[3] == "inapplicable") {
    entry.verdict = Verdict::kInapplicable;
  } else if (cells[3] != "on purpose") {
    throw Malformed{"the kind is \"on purpose\" or \"inapplicable\", not \"" + cells[3] + "\""};
  }
  if (find_area(entry.area()) == nullptr) {
    throw Malformed{"\"" + cells[1] + "\" begins with no area that is replayed"};
  }
  for (std::string& part : entry.parts) {
    if (part.empty()) throw Malformed{"no part; \"all\" is every part"};
    if (part == "all") part = "*";
  }
  if (cells[4].empty()) throw Malformed{"no reason"};
  return entry;
}

}  // namespace

DifferenceList DifferenceList::read(const std::string& file) {
  DifferenceList list;
  list.file_ = file;
  std::ifstream stream(file);
  if (!stream) throw Malformed{file + ": cannot be read"};
  std::string text;
  for (int line = 1; std::getline(stream, text); ++line) {
    if (!text.starts_with("|") || text.starts_with("|-")) continue;
    const std::vector<std::string> cells = split(text, '|');
    if (cells.size() > 1 && cells[1] == "cases") continue;
    try {
      if (cells.size() != 6) throw Malformed{"a row has four cells: cases, parts, kind, reason"};
      list.entries_.push_back(entry_of(cells, line));
    } catch (const Malformed& error) {
      throw Malformed{file + ":" + std::to_string(line) + ": " + error.what};
    }
  }
  return list;
}

Verdict DifferenceList::explain(std::string_view area, const Case& one, Judgement& judgement) {
  const std::string name = std::string(area) + "/" + one.id;
  std::vector<Difference> left = judgement.differences;
  bool inapplicable = true;
  for (Entry& entry : entries_) {
    if (!matches(entry.cases, name)) continue;
    ++entry.matched;
    const std::size_t explained = std::erase_if(left, [&](const Difference& difference) {
      return std::any_of(entry.parts.begin(), entry.parts.end(),
                         [&](const std::string& part) { return matches(part, difference.part); });
    });
    if (explained == 0) continue;
    ++entry.explained;
    inapplicable = inapplicable && entry.verdict == Verdict::kInapplicable;
  }
  const bool same = judgement.differences.empty();
  judgement.differences = std::move(left);
  if (!judgement.same()) return Verdict::kDifferent;
  if (same) return Verdict::kSame;
  return inapplicable ? Verdict::kInapplicable : Verdict::kOnPurpose;
}

void DifferenceList::pass_over(std::string_view area, const Case& one) {
  const std::string name = std::string(area) + "/" + one.id;
  for (Entry& entry : entries_) {
    if (!matches(entry.cases, name)) continue;
    ++entry.matched;
    ++entry.explained;
  }
}

bool DifferenceList::in_question(std::string_view area, const Case& one) const {
  const std::string name = std::string(area) + "/" + one.id;
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.explained == 0 && matches(entry.cases, name); });
}

std::vector<std::string> DifferenceList::stale(std::string_view area) const {
  std::vector<std::string> faults;
  for (const Entry& entry : entries_) {
    if (entry.area() != area || entry.explained != 0) continue;
    faults.push_back(file_ + ":" + std::to_string(entry.line) + ": \"" + entry.cases +
                     (entry.matched == 0 ? "\" matches no case"
                                         : "\" explains nothing: its cases would be the same without it"));
  }
  return faults;
}

}  // namespace golden
