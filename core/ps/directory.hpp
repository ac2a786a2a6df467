// SPDX-License-Identifier: Apache-2.0
// Directory: the variables of a job, and the parameter server that has each part. The coordinator creates it
// and sends it to the workers.
//
// Invariant: it only grows, so a worker that knows the first n entries needs only the rest.
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

// A variable on parameter servers, whole or divided along its first dimension.
struct RemoteVariable {
  struct Part {
    int32_t ps;      // the server that has it
    int64_t number;  // its number on that server
    int64_t begin;   // first row
    int64_t rows;    // 1 for a scalar
  };

  explicit RemoteVariable(Memory& memory) : name(&memory), shape(&memory), parts(&memory) {}
  dist_tensor spec() const noexcept {
    return {nullptr, dtype, static_cast<int32_t>(shape.size()), shape.data(), nullptr};
  }
  // The size of all parts, and of one row.
  std::size_t bytes() const noexcept;
  std::size_t row_bytes() const noexcept;

  int64_t index = 0;  // in the directory
  std::pmr::string name;
  dist_dtype dtype{};
  std::pmr::vector<int64_t> shape;
  int32_t max_staleness = 0;  // maximum age of a cached read, in closures
  std::pmr::vector<Part> parts;
};

class Directory {
 public:
  explicit Directory(Memory& memory) : memory_(memory), entries_(&memory), by_name_(&memory) {}

  std::size_t size() const noexcept;
  // Entries do not move until clear(). NOT_FOUND if there is no such variable.
  Status find(std::string_view name, const RemoteVariable** out) const noexcept;
  const RemoteVariable& at(std::size_t index) const noexcept;
  // ALREADY_EXISTS if the name is taken.
  Status add(RemoteVariable variable);
  void clear() noexcept;

  // The entries from `first` on, as a message; NULL if there are none.
  Status write(std::size_t first, ValueRef* out) const;
  // Adds the new entries of a message. INVALID_ARGUMENT if the message is invalid, or if entries before it
  // are missing.
  Status read(const Value& message, int32_t num_ps);

 private:
  Memory& memory_;
  mutable std::mutex mutex_;
  std::pmr::deque<RemoteVariable> entries_;
  std::pmr::map<std::string_view, std::size_t> by_name_;
};

}  // namespace dist
