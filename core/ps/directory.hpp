// SPDX-License-Identifier: Apache-2.0
// Directory: which variables the job has, and which parameter server holds which part of each. The coordinator makes it and
// sends it on; it only grows, so that whoever knows its first n entries needs the others alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory_resource>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/value/value.hpp"

namespace dist {

// A variable that parameter servers hold, whole or divided along its first dimension.
struct RemoteVariable {
  struct Part {
    int32_t ps;      // which server holds it
    int64_t number;  // its number there
    int64_t begin;   // its first row
    int64_t rows;    // 1 of a scalar
  };

  explicit RemoteVariable(Memory& memory) : name(&memory), shape(&memory), parts(&memory) {}
  dist_tensor spec() const noexcept {
    return {nullptr, dtype, static_cast<int32_t>(shape.size()), shape.data(), nullptr};
  }
  // Of all parts, and of a row.
  std::size_t bytes() const noexcept;
  std::size_t row_bytes() const noexcept;

  int64_t index = 0;  // in the directory
  std::pmr::string name;
  dist_dtype dtype = 0;
  std::pmr::vector<int64_t> shape;
  int32_t max_staleness = 0;  // a cached read is at most so many closures old
  std::pmr::vector<Part> parts;
};

class Directory {
 public:
  explicit Directory(Memory& memory) : memory_(memory), entries_(&memory), by_name_(&memory) {}

  std::size_t size() const noexcept;
  // Entries stay where they are until clear(). NOT_FOUND: there is none of this name.
  Status find(std::string_view name, const RemoteVariable** out) const noexcept;
  const RemoteVariable& at(std::size_t index) const noexcept;
  // ALREADY_EXISTS: there is one of this name.
  Status add(RemoteVariable variable);
  void clear() noexcept;

  // Entries from `first` on, as a message; NULL where there are none.
  Status write(std::size_t first, ValueRef* out) const;
  // Adds those that are new. INVALID_ARGUMENT where it is no such message, or entries before it are missing.
  Status read(const Value& message, int32_t num_ps);

 private:
  Memory& memory_;
  mutable std::mutex mutex_;
  std::pmr::deque<RemoteVariable> entries_;
  std::pmr::map<std::string_view, std::size_t> by_name_;
};

}  // namespace dist
