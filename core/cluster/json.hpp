// SPDX-License-Identifier: Apache-2.0
// JsonTree: a JSON text from outside as a tree of values, within limits (DIST_MAX_CLUSTER_TEXT_BYTES and
// _DEPTH, kMaxJsonValues). It takes what Python's json takes, NaN and Infinity among it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"

namespace dist {

// Beyond the number of tasks that a cluster may have, with room for what is not read.
inline constexpr std::size_t kMaxJsonValues = std::size_t{4} * DIST_MAX_CLUSTER_TASKS;

enum class JsonKind : uint8_t { kNull, kFalse, kTrue, kNumber, kText, kList, kObject };

class JsonTree {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Value {
    JsonKind kind;
    std::string_view text;   // of a text; of a number as it is written
    std::string_view key;    // in an object
    uint32_t first = kNone;  // of a list's or object's values
    uint32_t last = kNone;
    uint32_t next = kNone;  // in the same list or object
  };

  explicit JsonTree(std::pmr::memory_resource* memory) : text_(memory), values_(memory) {}
  JsonTree(const JsonTree&) = delete;
  JsonTree& operator=(const JsonTree&) = delete;

  // `what` begins messages. INVALID_ARGUMENT where it is not JSON, or beyond a limit.
  Status parse(const char* text, const char* what);

  const Value& root() const noexcept { return values_.front(); }
  const Value* first_of(const Value& parent) const noexcept { return at(parent.first); }
  const Value* next_of(const Value& value) const noexcept { return at(value.next); }
  // The last member of that name, which is the one that counts, or NULL.
  const Value* find(const Value& object, std::string_view key) const noexcept;

 private:
  class Handler;
  const Value* at(uint32_t index) const noexcept { return index == kNone ? nullptr : &values_[index]; }

  std::pmr::string text_;  // parsed in place: what values refer to
  std::pmr::vector<Value> values_;
};

// "a list", for messages.
const char* name_of(JsonKind kind) noexcept;

}  // namespace dist
