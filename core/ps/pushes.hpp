// SPDX-License-Identifier: Apache-2.0
// Pushes: the changes that one closure (or the coordinator) makes to variables, as one message to each
// parameter server that has an affected part.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/ps/directory.hpp"
#include "core/value/value.hpp"

namespace dist {

class Pushes {
 public:
  Pushes(Memory& memory, std::size_t num_ps);

  // Each function checks its arguments as far as the directory allows. Values are referenced, and must not
  // change while this object exists. `how` is a DIST_ASSIGN_... value.
  Status assign(const RemoteVariable& variable, int32_t how, Value& value);
  // `how` is a DIST_SCATTER_... value; `slices` are indexed slices.
  Status scatter(const RemoteVariable& variable, int32_t how, Value& slices);
  // The variables must have the same layout. If they are divided, arguments with the shape of the variable
  // are divided too.
  Status update(const char* function, std::span<const RemoteVariable* const> variables, Value* arguments);

  bool empty(std::size_t ps) const noexcept { return to_[ps].values.empty(); }
  // Whether this server must call a host function, which may fail.
  bool has_functions(std::size_t ps) const noexcept { return to_[ps].has_functions; }
  // The size of all elements to send.
  std::size_t bytes() const noexcept { return bytes_; }
  // The message for a server.
  Status write(std::size_t ps, int64_t epoch, int64_t id, int64_t watermark, ValueRef* out) const;

 private:
  struct ToServer {
    explicit ToServer(Memory& memory) : numbers(&memory), values(&memory) {}
    std::pmr::vector<int64_t> numbers;
    std::pmr::vector<ValueRef> values;
    bool has_functions = false;
  };

  void add(const RemoteVariable::Part& part, int32_t what, int32_t how, std::span<const int64_t> numbers,
           ValueRef value);

  Memory& memory_;
  std::pmr::vector<ToServer> to_;
  std::size_t bytes_ = 0;
};

// Rows of a contiguous tensor. The result keeps the tensor alive.
Status rows_of(Value& tensor, int64_t begin, int64_t rows, ValueRef* out);

}  // namespace dist
