// SPDX-License-Identifier: Apache-2.0
// Reader: reads the elements of a host's source one after another: those of one callback, or those of files,
// which are read one by one or in turn.
#pragma once

#include <memory_resource>
#include <vector>

#include "core/input/division.hpp"
#include "core/input/element_source.hpp"

namespace dist {

class Reader {
 public:
  Reader(Memory& memory, Ref<HostSource> host, const Turn& files, int32_t interleave);

  // The next element. OUT_OF_RANGE at the end, and it is not called again then.
  Status next(ValueRef* out);
  // Skips elements, before the first next(). Those of one callback are not asked for, those of files are
  // read.
  Status skip(int64_t elements);

  // The file of the last element, and the element's number in it.
  std::size_t file() const noexcept { return last_file_; }
  int64_t index() const noexcept { return last_index_; }
  // Elements so far.
  int64_t count() const noexcept { return count_; }

 private:
  struct Open {
    bool open = false;
    std::size_t file = 0;
    int64_t index = 0;
  };

  Status next_of_files(ValueRef* out);

  const Ref<HostSource> host_;
  const Turn files_;
  std::pmr::vector<Open> cycle_;
  std::size_t at_ = 0;     // in cycle_
  std::size_t next_file_;  // to open
  std::size_t last_file_ = 0;
  int64_t last_index_ = 0;
  int64_t count_ = 0;
};

}  // namespace dist
