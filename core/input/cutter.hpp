// SPDX-License-Identifier: Apache-2.0
// Cutter: determines how many examples each batch of a pass takes, and which replica gets which of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/input/division.hpp"

namespace dist {

class Cutter {
 public:
  Cutter(Memory& memory, const Division& division)
      : division_(division), parts_(static_cast<std::size_t>(division.replicas), &memory) {}

  // The number of examples in the first element; needed if the elements are batches that are cut to sizes.
  void set_batch_examples(int64_t examples) noexcept { batch_examples_ = examples > 0 ? examples : 1; }
  bool needs_batch_examples() const noexcept {
    return division_.cut == Division::Cut::kSizes && !division_.sizes && division_.batch == 0 &&
           batch_examples_ == 0;
  }

  // The maximum number of examples in the next batch.
  int64_t wanted() const noexcept;
  // Cuts the next batch from `found` examples: as many as wanted, or all that are left. Returns false if
  // these are not enough for a batch. The pass then ends.
  bool cut(int64_t found) noexcept;
  std::span<const Part> parts() const noexcept { return parts_; }

  // Number of batches so far. If pieces are counted instead, the number of pieces.
  int64_t batches() const noexcept { return batches_; }
  void skip(int64_t batches) noexcept { batches_ += batches; }

 private:
  bool cut_to_sizes(int64_t found) noexcept;

  const Division& division_;
  std::pmr::vector<Part> parts_;
  int64_t batch_examples_ = 0;
  int64_t batches_ = 0;
  bool ended_ = false;  // a piece was not full, so the source is exhausted
};

}  // namespace dist
