// SPDX-License-Identifier: Apache-2.0
// LinePrefixer: makes whole lines with a prefix out of a stream's pieces. Any byte but a newline is passed on as it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dist::launch {

class LinePrefixer {
 public:
  // Of a line without its end; a longer one is cut there and goes on in a line of its own, with the prefix again.
  static constexpr std::size_t kMaxLineBytes = 65536;

  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // Appends the lines that `bytes` completes to `out`. The rest is kept, never more than kMaxLineBytes.
  void feed(std::string_view bytes, std::string* out);
  // The stream has ended: a last line without an end gets one.
  void finish(std::string* out);

 private:
  void end_line(std::string* out);

  const std::string prefix_;
  std::string line_;  // begun, not ended
};

}  // namespace dist::launch
