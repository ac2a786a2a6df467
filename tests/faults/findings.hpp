// SPDX-License-Identifier: Apache-2.0
// Checks the results that a member received.
#pragma once

#include <string>
#include <utility>

#include "tests/faults/play.hpp"

namespace faults {

// Collects deviations from the expected results.
class Findings {
 public:
  explicit Findings(std::string who, const Report& report) : who_(std::move(who)), report_(report) {}

  template <class T>
  void equal(const char* what, const T& got, const T& expected) {
    if (got == expected) return;
    add(std::string(what) + " is " + shown(got) + ", not " + shown(expected));
  }
  void has(const char* what, const std::string& text, const std::string& words) {
    if (text.find(words) == std::string::npos) add(std::string(what) + " lacks '" + words + "'");
  }
  void lacks(const char* what, const std::string& text, const std::string& words) {
    if (text.find(words) != std::string::npos) add(std::string(what) + " has '" + words + "'");
  }
  void some(const char* what, const std::string& text) {
    if (text.empty()) add(std::string(what) + " is empty");
  }
  std::string text() const {
    return text_.empty() ? "" : who_ + ": " + text_ + "; it says: " + report_.message;
  }

 private:
  static std::string shown(const std::string& text) { return "'" + text + "'"; }
  static std::string shown(int64_t number) { return std::to_string(number); }
  void add(const std::string& finding) { text_ += (text_.empty() ? "" : ", ") + finding; }

  const std::string who_;
  const Report& report_;
  std::string text_;
};

}  // namespace faults
