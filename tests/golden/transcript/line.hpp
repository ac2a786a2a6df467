// SPDX-License-Identifier: Apache-2.0
// A transcript in memory and as text (TRANSCRIPTS.md): each call has the lines of its callbacks below it,
// which have the lines of their calls, and so on.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace golden::transcript {

struct Field {
  std::string key;
  std::string value;  // a literal
};
using Fields = std::vector<Field>;

// Returns the field's literal, or nullptr if there is none.
const std::string* find(const Fields& fields, std::string_view key) noexcept;

struct Line {
  std::string name;
  Fields given;
  Fields answered;
  Line* above = nullptr;
  std::vector<std::unique_ptr<Line>> below;
  std::size_t number = 0;  // in the file

  Line* add(std::string of_name);
};

struct Case {
  std::string area;
  std::string id;
  Line root;  // its lines of depth 0 are below this one
};

// ---- Text

// Allowed bytes stay as they are; others become %XX.
std::string encode_text(std::string_view text);
std::string decode_text(std::string_view text);

// Returns the literals in "(a b c)", and the words of one level of a tree: "(dict t:k (list x1))" has three.
std::vector<std::string> items_of(std::string_view literal);

std::string to_text(const Line& line, std::size_t depth);
std::string to_text(const Case& one);
std::string first_line();
std::string last_line(std::size_t cases, std::size_t lines);
// Returns the number of lines with a depth, beginning at `line`.
std::size_t count(const Line& line) noexcept;

// Reads a whole transcript. Throws Malformed, which names the line.
std::vector<std::unique_ptr<Case>> parse(std::string_view text);

}  // namespace golden::transcript
