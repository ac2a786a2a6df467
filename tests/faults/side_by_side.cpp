// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/side_by_side.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace faults {
namespace {

constexpr size_t kPage = 120;
constexpr size_t kGap = 2;

using Lines = SideBySide::Lines;

Lines words_of(const std::string& text) {
  std::istringstream stream(text);
  Lines words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

size_t width_of(const Lines& lines) {
  size_t width = 1;
  for (const std::string& line : lines) width = std::max(width, line.size());
  return width;
}

const Lines& shown(const Lines& lines) {
  static const Lines nothing{"-"};
  return lines.empty() ? nothing : lines;
}

// As many columns as fit on the page.
class Page {
 public:
  Page(const SideBySide& table, std::vector<size_t> columns) : table_(table), columns_(std::move(columns)) {
    for (const SideBySide::Row& row : table.rows) name_width_ = std::max(name_width_, row.name.size());
  }
  static size_t width(const SideBySide& table, size_t column) {
    size_t width = width_of(words_of(table.columns[column]));
    for (const SideBySide::Row& row : table.rows) width = std::max(width, width_of(row.cells[column]));
    return width;
  }

  void print() const {
    std::vector<Lines> heads;
    for (const std::string& column : table_.columns) heads.push_back(words_of(column));
    print("", heads);
    for (const SideBySide::Row& row : table_.rows) print(row.name, row.cells);
  }

 private:
  void print(const std::string& name, const std::vector<Lines>& cells) const {
    size_t height = 1;
    for (const size_t c : columns_) height = std::max(height, cells[c].size());
    for (size_t at = 0; at < height; ++at) {
      std::string line = at == 0 ? name : "";
      line.resize(name_width_, ' ');
      for (const size_t c : columns_) {
        const Lines& lines = shown(cells[c]);
        std::string part = at < lines.size() ? lines[at] : "";
        part.resize(width(table_, c), ' ');
        line += std::string(kGap, ' ') + part;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      std::printf("%s\n", line.c_str());
    }
  }

  const SideBySide& table_;
  const std::vector<size_t> columns_;
  size_t name_width_ = 0;
};

}  // namespace

void print(const SideBySide& table) {
  size_t names = 0;
  for (const SideBySide::Row& row : table.rows) names = std::max(names, row.name.size());
  const size_t first = names + kGap + Page::width(table, 0);
  size_t next = 1;
  do {
    std::vector<size_t> columns{0};
    size_t width = first;
    for (; next < table.columns.size(); columns.push_back(next++)) {
      width += kGap + Page::width(table, next);
      if (width > kPage && columns.size() > 1) break;
    }
    std::printf("\n");
    Page(table, columns).print();
  } while (next < table.columns.size());
}

}  // namespace faults
