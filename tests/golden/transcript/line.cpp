// SPDX-License-Identifier: Apache-2.0
#include "line.hpp"

#include <charconv>

#include "tests/golden/harness/json.hpp"

namespace golden::transcript {
namespace {

constexpr std::string_view kFormat = "dist-transcripts\t1";
constexpr std::string_view kArrow = "->";
constexpr std::string_view kPlain =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:,-[]<>?!*'=;+";

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(by);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::size_t number_of(std::string_view text, std::size_t line) {
  std::size_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size()) {
    throw Malformed{"line " + std::to_string(line) + ": \"" + std::string(text) + "\" is no number"};
  }
  return number;
}

void append(std::string& text, const Fields& fields) {
  for (const Field& field : fields) text.append("\t").append(field.key).append("=").append(field.value);
}

// Reads the lines of one transcript.
class Reader {
 public:
  std::vector<std::unique_ptr<Case>> read(std::string_view text) {
    for (const std::string_view line : split(text, '\n')) {
      ++line_;
      if (ended_ && !line.empty()) fail("something after the end");
      if (!ended_) take(line);
    }
    if (!ended_) fail("the end is missing");
    return std::move(cases_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Malformed{"line " + std::to_string(line_) + ": " + what};
  }

  void take(std::string_view line) {
    const std::vector<std::string_view> words = split(line, '\t');
    if (line_ == 1) {
      if (line != kFormat) fail("not a transcript of this version");
    } else if (words[0] == "case" && words.size() == 3) {
      auto& one = cases_.emplace_back(std::make_unique<Case>());
      one->area = decode_text(words[1]);
      one->id = decode_text(words[2]);
      open_.assign(1, &one->root);
    } else if (words[0] == "end" && words.size() == 3) {
      ended_ = true;
      if (number_of(words[1], line_) != cases_.size() || number_of(words[2], line_) != lines_) {
        fail("not all of it is here");
      }
    } else {
      if (open_.empty() || words.size() < 3) fail("not a line");
      take_call(words);
    }
  }

  void take_call(const std::vector<std::string_view>& words) {
    const std::size_t depth = number_of(words[0], line_);
    if (depth + 1 > open_.size()) fail("too deep");
    open_.resize(depth + 1);
    Line* const call = open_.back()->add(std::string(words[1]));
    call->number = line_;
    open_.push_back(call);
    ++lines_;
    Fields* to = &call->given;
    for (std::size_t i = 2; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      if (words[i] == kArrow && to == &call->given) {
        to = &call->answered;
      } else if (equals == words[i].npos) {
        fail(std::string(words[i]).append(": this is no field"));
      } else {
        to->push_back({std::string(words[i].substr(0, equals)), std::string(words[i].substr(equals + 1))});
      }
    }
    if (to == &call->given) fail("no answers");
  }

  std::vector<std::unique_ptr<Case>> cases_;
  std::vector<Line*> open_;  // the latest line of each depth, beginning with the root
  std::size_t line_ = 0;
  std::size_t lines_ = 0;
  bool ended_ = false;
};

}  // namespace

const std::string* find(const Fields& fields, std::string_view key) noexcept {
  for (const Field& field : fields) {
    if (field.key == key) return &field.value;
  }
  return nullptr;
}

Line* Line::add(std::string of_name) {
  below.push_back(std::make_unique<Line>());
  below.back()->name = std::move(of_name);
  below.back()->above = this;
  return below.back().get();
}

std::string encode_text(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (kPlain.find(c) != kPlain.npos) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded.append({'%', kDigits[byte >> 4U], kDigits[byte & 15U]});
    }
  }
  return encoded;
}

std::string decode_text(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned byte = 0;
    const char* const first = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(first, first + 2, byte, 16).ptr != first + 2) {
      throw Malformed{"\"" + std::string(text) + "\" is no encoded text"};
    }
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

std::vector<std::string> items_of(std::string_view literal) {
  if (literal.size() < 2 || literal.front() != '(' || literal.back() != ')') {
    throw Malformed{"\"" + std::string(literal) + "\" is no array"};
  }
  literal = literal.substr(1, literal.size() - 2);
  std::vector<std::string> items;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < literal.size(); ++i) {
    if (i == 0 || (literal[i] == ' ' && depth == 0)) items.emplace_back();
    if (literal[i] == ' ' && depth == 0) continue;
    if (literal[i] == '(') ++depth;
    if (literal[i] == ')') --depth;
    items.back() += literal[i];
  }
  return items;
}

std::string to_text(const Line& line, std::size_t depth) {
  std::string text = std::to_string(depth).append("\t").append(line.name);
  append(text, line.given);
  text.append("\t").append(kArrow);
  append(text, line.answered);
  text += '\n';
  for (const auto& below : line.below) text += to_text(*below, depth + 1);
  return text;
}

std::string to_text(const Case& one) {
  std::string text = "case\t";
  text.append(encode_text(one.area)).append("\t").append(encode_text(one.id)).append("\n");
  for (const auto& line : one.root.below) text += to_text(*line, 0);
  return text;
}

std::string first_line() { return std::string(kFormat).append("\n"); }

std::string last_line(std::size_t cases, std::size_t lines) {
  return std::string("end\t")
      .append(std::to_string(cases))
      .append("\t")
      .append(std::to_string(lines))
      .append("\n");
}

std::size_t count(const Line& line) noexcept {
  std::size_t lines = line.above == nullptr ? 0 : 1;
  for (const auto& below : line.below) lines += count(*below);
  return lines;
}

std::vector<std::unique_ptr<Case>> parse(std::string_view text) { return Reader().read(text); }

}  // namespace golden::transcript
