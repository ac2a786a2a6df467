// SPDX-License-Identifier: Apache-2.0
// Checkpoint: a safetensors file, or an index with the files that it names, open for reading.
//
// Invariant: nothing changes after open(), except that mappings are created on demand. Any thread may read.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/checkpoint/header.hpp"
#include "core/checkpoint/index.hpp"
#include "core/checkpoint/tensor_file.hpp"
#include "core/value/value.hpp"

namespace dist {

// A tensor and its file.
struct FoundTensor {
  const TensorFile* file = nullptr;
  const StoredTensor* tensor = nullptr;
  // Dtype and shape without data. The dtype is 0 if libdist does not support it.
  dist_tensor spec() const noexcept { return file->header().spec(*tensor); }
};

class Checkpoint final : public Counted {
 public:
  static Status open(Memory& memory, const char* path, Ref<Checkpoint>* out);

  // In the order of their data, or of the index.
  std::span<const FoundTensor> tensors() const noexcept { return tensors_; }
  std::span<const StoredText> texts() const noexcept;
  // Fails with NOT_FOUND, and a message with some of the existing names.
  Status find(const char* name, FoundTensor* out) const noexcept;
  // Returns NULL if there is no such text.
  const char* text(const char* key) const noexcept;

  // If libdist does not support the tensor's dtype, the value contains the tensor's bytes as u8.
  Status read(const FoundTensor& tensor, ValueRef* out) const;
  // The same without a copy: the value refers to the mapped file and keeps it mapped. If the data are not
  // aligned for their dtype, they are read instead. `verify`: compare the checksum.
  Status map(const FoundTensor& tensor, bool verify, ValueRef* out) const;

 private:
  class Mapping;
  Status mapping_of(const TensorFile& file, Ref<Mapping>* out) const;
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);

  explicit Checkpoint(Memory& memory);
  ~Checkpoint() override;
  Status open_file(const char* path);
  Status open_shards(const char* given);
  Status find_tensors();

  bool has_index_ = false;
  Index index_;
  std::pmr::vector<TensorFile> files_;  // a single file, or the files of the index
  std::pmr::vector<FoundTensor> tensors_;
  mutable std::mutex mutex_;                         // protects the members below
  mutable std::pmr::vector<Ref<Mapping>> mappings_;  // one for each of files_, created on demand
};

}  // namespace dist
