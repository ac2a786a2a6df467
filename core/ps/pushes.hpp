// SPDX-License-Identifier: Apache-2.0
// Pushes: what one closure, or the coordinator, changes in variables, as it goes to the parameter servers: one message to each
// that has a part of what changes.
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

  // Each is checked as far as the directory tells; values are held, and stay as they are, until the pushes are no more.
  // A DIST_ASSIGN_...
  Status assign(const RemoteVariable& variable, int32_t how, Value& value);
  // A DIST_SCATTER_..., of indexed slices.
  Status scatter(const RemoteVariable& variable, int32_t how, Value& slices);
  // Variables that lie alike. Of a divided one, tensors of the arguments that have its shape are divided as it is.
  Status update(const char* function, std::span<const RemoteVariable* const> variables, Value* arguments);

  bool empty(std::size_t ps) const noexcept { return to_[ps].values.empty(); }
  // Whether this server is to call a function of the host's, which may fail.
  bool has_functions(std::size_t ps) const noexcept { return to_[ps].has_functions; }
  // Bytes of all elements that go to servers.
  std::size_t bytes() const noexcept { return bytes_; }
  // The message to a server.
  Status write(std::size_t ps, int64_t epoch, int64_t id, int64_t mark, ValueRef* out) const;

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

// Rows of a tensor without gaps, which is held by what comes out.
Status rows_of(Value& tensor, int64_t begin, int64_t rows, ValueRef* out);

}  // namespace dist
