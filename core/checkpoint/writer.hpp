// SPDX-License-Identifier: Apache-2.0
// Writes a safetensors file. The caller first adds all tensors and texts, then creates the file and writes
// the data of each tensor, in any order and without a copy.
//
// Invariant: the old file remains until commit() has written the new one to the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/os/file.hpp"
#include "core/base/status.hpp"
#include "core/checkpoint/by_name.hpp"
#include "core/checkpoint/dtypes.hpp"
#include "core/checkpoint/new_texts.hpp"

namespace dist {

class CheckpointWriter {
 public:
  explicit CheckpointWriter(Memory& memory)
      : memory_(&memory), tensors_(&memory), texts_(memory), order_(&memory), header_(&memory) {}

  // Tensors are numbered 0, 1, ... in the order of these calls. The data of `spec` are ignored. `name` and
  // `spec` must stay valid until commit().
  Status add_tensor(const char* name, const dist_tensor& spec);
  NewTexts& texts() noexcept { return texts_; }

  Status create(const char* path);
  // Writes all data of a tensor, in row-major order. Must be called for every tensor.
  Status write(std::size_t tensor, const void* data);
  Status commit();

 private:
  struct Tensor {
    const char* name;
    const StoredDtype* dtype;
    dist_tensor spec;
    uint64_t bytes;
    uint64_t begin;      // offset in the data
    std::size_t digits;  // position of its checksum's digits in the header
    uint32_t checksum;
  };
  Status check_names();
  void place();
  Status put_texts();
  Status make_header();

  Memory* memory_;
  std::pmr::vector<Tensor> tensors_;
  NewTexts texts_;
  NameIndex order_;  // order of the data
  std::pmr::string header_;
  std::size_t header_digits_ = 0;
  NewFile file_;
};

}  // namespace dist
