// SPDX-License-Identifier: Apache-2.0
// Checkpoint: a safetensors file, or an index and the files that it names, open for reading.
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

// A tensor, and the file that it is in.
struct FoundTensor {
  const TensorFile* file = nullptr;
  const StoredTensor* tensor = nullptr;
  // Without data; its dtype is 0 where libdist has no such dtype.
  dist_tensor spec() const noexcept { return file->header().spec(*tensor); }
};

class Checkpoint final : public Counted {
 public:
  static Status open(Memory& memory, const char* path, Ref<Checkpoint>* out);

  // In the order of their data, or of the index.
  std::span<const FoundTensor> tensors() const noexcept { return tensors_; }
  std::span<const StoredText> texts() const noexcept;
  // NOT_FOUND with names that are there.
  Status find(const char* name, FoundTensor* out) const noexcept;
  // NULL where there is none.
  const char* text(const char* key) const noexcept;

  Status read(const FoundTensor& tensor, ValueRef* out) const;
  // The same without a copy: the value's data are the mapped file's, which it keeps. Where they are not aligned for their dtype it
  // is read. `verify`: its checksum is compared.
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
  std::pmr::vector<TensorFile> files_;  // one, or those of the index
  std::pmr::vector<FoundTensor> tensors_;
  mutable std::mutex mutex_;                         // of those below
  mutable std::pmr::vector<Ref<Mapping>> mappings_;  // of files_, once they are asked for
};

}  // namespace dist
