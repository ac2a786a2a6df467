// SPDX-License-Identifier: Apache-2.0
// Reader: reads the elements of a host source in order, either those of one callback or those of files. Files
// are read one after the other or interleaved.
#pragma once

#include <memory_resource>
#include <vector>

#include "core/input/division.hpp"
#include "core/input/element_source.hpp"

namespace dist {

class Reader {
 public:
  Reader(Memory& memory, Ref<HostSource> host, const Turn& files, int32_t interleave);

  // Reads the next element. Must not be called again after OUT_OF_RANGE.
  Status next(ValueRef* out);
  // Skips elements; must be called before the first next(). Elements of a single callback are skipped without
  // calling it; those of files are read.
  Status skip(int64_t elements);

  // The file of the latest element, and the index of the element in it.
  std::size_t file() const noexcept { return last_file_; }
  int64_t index() const noexcept { return last_index_; }
  // Number of elements read so far.
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
  std::size_t at_ = 0;     // index in cycle_
  std::size_t next_file_;  // the next file to open
  std::size_t last_file_ = 0;
  int64_t last_index_ = 0;
  int64_t count_ = 0;
};

}  // namespace dist
