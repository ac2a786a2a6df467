// SPDX-License-Identifier: Apache-2.0
// The output stream and the allocator that RapidJSON's writers need: the JSON is appended to a string, and
// the memory for the nesting stack comes from libdist's Memory.
#pragma once

#include <rapidjson/writer.h>

#include <string>

namespace dist {

// An output stream in RapidJSON's sense.
class JsonOut {
 public:
  using Ch = char;
  explicit JsonOut(std::pmr::string& text) noexcept : text_(text) {}
  // NOLINTBEGIN(readability-identifier-naming): RapidJSON's names
  void Put(char c) { text_.push_back(c); }
  void Flush() {}
  // NOLINTEND(readability-identifier-naming)

 private:
  std::pmr::string& text_;
};

// A writer keeps its nesting stack in memory of this allocator. Give it a buffer that is larger than needed.
using JsonPool = rapidjson::MemoryPoolAllocator<>;

}  // namespace dist
