// SPDX-License-Identifier: Apache-2.0
// LinePrefixer: splits a stream into lines and adds a prefix to each. All other bytes are passed on
// unchanged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dist::launch {

class LinePrefixer {
 public:
  // Maximum length of a line without its newline. A longer one is split into several lines, each with the
  // prefix.
  static constexpr std::size_t kMaxLineBytes = 65536;

  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // Appends the lines completed by `bytes` to `out`, and keeps the rest, which is at most kMaxLineBytes.
  void feed(std::string_view bytes, std::string* out);
  // The stream has ended: adds a newline to an incomplete last line.
  void finish(std::string* out);

 private:
  void end_line(std::string* out);

  const std::string prefix_;
  std::string line_;  // the incomplete line
};

}  // namespace dist::launch
