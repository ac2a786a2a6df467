// SPDX-License-Identifier: Apache-2.0
// CheckpointWriter: writes a safetensors file. First all tensors and texts are added, then their data are
// written, in any order and without a copy. The old file stays until the new one is on the disk.
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

  // Number 0, 1, ... in the order of the calls. `spec` counts but for its data; it and the name are used
  // until the end.
  Status add_tensor(const char* name, const dist_tensor& spec);
  NewTexts& texts() noexcept { return texts_; }

  Status create(const char* path);
  // All data of a tensor, row-major. Every tensor must be written.
  Status write(std::size_t tensor, const void* data);
  Status commit();

 private:
  struct Tensor {
    const char* name;
    const StoredDtype* dtype;
    dist_tensor spec;
    uint64_t bytes;
    uint64_t begin;      // in the data
    std::size_t digits;  // of its checksum: their place in the header
    uint32_t checksum;
  };
  Status check_names();
  void place();
  Status put_texts(NewJson& json);
  Status make_header();

  Memory* memory_;
  std::pmr::vector<Tensor> tensors_;
  NewTexts texts_;
  NameIndex order_;  // of the data
  std::pmr::string header_;
  std::size_t header_digits_ = 0;
  NewFile file_;
};

}  // namespace dist
