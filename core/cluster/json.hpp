// SPDX-License-Identifier: Apache-2.0
// JsonTree: untrusted JSON text as a tree of values, within limits (DIST_MAX_CLUSTER_TEXT_BYTES,
// DIST_MAX_CLUSTER_DEPTH, kMaxJsonValues). It accepts what Python's json module accepts, including NaN
// and Infinity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"

namespace dist {

// More than the maximum number of tasks of a cluster, with room for values that are ignored.
inline constexpr std::size_t kMaxJsonValues = std::size_t{4} * DIST_MAX_CLUSTER_TASKS;

enum class JsonKind : uint8_t { kNull, kFalse, kTrue, kNumber, kText, kList, kObject };

class JsonTree {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Value {
    JsonKind kind;
    std::string_view text;   // of a text; of a number, as written
    std::string_view key;    // only in an object
    uint32_t first = kNone;  // first value of a list or object
    uint32_t last = kNone;
    uint32_t next = kNone;  // in the same list or object
  };

  explicit JsonTree(std::pmr::memory_resource* memory) : text_(memory), values_(memory) {}
  JsonTree(const JsonTree&) = delete;
  JsonTree& operator=(const JsonTree&) = delete;

  // Fails with INVALID_ARGUMENT if the text is not JSON or exceeds a limit. `what` is the beginning of
  // messages.
  Status parse(const char* text, const char* what);

  const Value& root() const noexcept { return values_.front(); }
  const Value* first_of(const Value& parent) const noexcept { return at(parent.first); }
  const Value* next_of(const Value& value) const noexcept { return at(value.next); }
  // Returns the last member with this name, or NULL. Earlier members with the same name have no effect.
  const Value* find(const Value& object, std::string_view key) const noexcept;

 private:
  class Handler;
  const Value* at(uint32_t index) const noexcept { return index == kNone ? nullptr : &values_[index]; }

  std::pmr::string text_;  // parsed in place; values refer to it
  std::pmr::vector<Value> values_;
};

// For example "a list", for messages.
const char* name_of(JsonKind kind) noexcept;

}  // namespace dist
