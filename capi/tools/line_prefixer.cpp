// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/line_prefixer.hpp"

#include <algorithm>

namespace dist::launch {

void LinePrefixer::feed(std::string_view bytes, std::string* out) {
  while (!bytes.empty()) {
    if (bytes.front() == '\n') {
      end_line(out);
      bytes.remove_prefix(1);
      continue;
    }
    // Only when more follows, so that a line of exactly this length is not followed by an empty one.
    if (line_.size() == kMaxLineBytes) end_line(out);
    const std::size_t part = std::min({bytes.find('\n'), bytes.size(), kMaxLineBytes - line_.size()});
    line_.append(bytes, 0, part);
    bytes.remove_prefix(part);
  }
}

void LinePrefixer::finish(std::string* out) {
  if (!line_.empty()) end_line(out);
}

void LinePrefixer::end_line(std::string* out) {
  out->append(prefix_).append(line_).push_back('\n');
  line_.clear();
}

}  // namespace dist::launch
