// SPDX-License-Identifier: Apache-2.0
// Cutter: how many examples the batches of a pass take, one after another, and which of them go to which
// replica.
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

  // Where elements are batches that are cut to sizes: how many examples the first element has.
  void set_batch_examples(int64_t examples) noexcept { batch_examples_ = examples > 0 ? examples : 1; }
  bool needs_batch_examples() const noexcept {
    return division_.cut == Division::Cut::kSizes && !division_.sizes && division_.batch == 0 &&
           batch_examples_ == 0;
  }

  // The most examples that the next batch takes.
  int64_t wanted() const noexcept;
  // Cuts the next batch out of `found` examples: as many as are wanted, or all that are left. False where
  // these make no batch, and the pass is over.
  bool cut(int64_t found) noexcept;
  std::span<const Part> parts() const noexcept { return parts_; }

  // Batches so far, or pieces where those are counted.
  int64_t batches() const noexcept { return batches_; }
  void skip(int64_t batches) noexcept { batches_ += batches; }

 private:
  bool cut_to_sizes(int64_t found) noexcept;

  const Division& division_;
  std::pmr::vector<Part> parts_;
  int64_t batch_examples_ = 0;
  int64_t batches_ = 0;
  bool ended_ = false;  // a piece was not full: the source has no more
};

}  // namespace dist
