// SPDX-License-Identifier: Apache-2.0
// Sources: where a dataset's elements come from, and passes, which make batches of them one after another.
#pragma once

#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/input/division.hpp"
#include "core/value/value.hpp"

namespace dist {

// Position: how far a pass has come, after some of its batches.
struct Position {
  int64_t pass = 0;
  int64_t elements = 0;  // of this worker's part of the source, used up
  int64_t examples = 0;  // of the element after them, where elements are cut into several batches
  int64_t batches = 0;   // made of them: batches, or where they are cut to sizes, pieces
};

// OK for a position from outside whose numbers a pass can reach, so that it can continue from there.
Status check_position(const Position& position) noexcept;

// How a pass makes batches.
struct Recipe {
  Division division;
  bool shuffle = false;
  uint64_t seed = 0;
};

// One pass over a source. Used from one thread at a time.
class Pass : public Counted {
 public:
  // Comes first, with the pass's number.
  void start(uint64_t number) noexcept { number_ = number; }
  // Moves a pass that has not begun to the position of another one.
  virtual Status seek(const Position& position) = 0;
  // OUT_OF_RANGE where there is none. Not called again after a failure.
  virtual Status next_batch(ValueRef* out) = 0;
  // Where the next batch begins; the pass's number is the caller's to add.
  virtual Position position() const noexcept = 0;

 protected:
  using Counted::Counted;
  uint64_t number() const noexcept { return number_; }

 private:
  uint64_t number_ = 0;
};

// What next_batch() gives in the end.
inline Status pass_is_over() noexcept {
  return fail(DIST_OUT_OF_RANGE, "end of the dataset. Call dist_iterator_create() for another pass.");
}

class Source : public Counted {
 public:
  virtual SourceFacts facts() const noexcept { return {}; }
  // INVALID_ARGUMENT where its elements cannot be divided so.
  virtual Status make_pass(const Recipe& recipe, Ref<Pass>* out) = 0;
  // The same source with numbers for examples: each example is three I64 (file, element, example of the
  // element), which differ between examples and are the same in every pass. An example is an element, or
  // where elements are `batches`, one of its rows. There are at most `limit` elements (0: all).
  virtual Status numbered(bool batches, int64_t limit, Ref<Source>* out) = 0;
  // An element that shows the structure, dtypes and shapes of all. *fixed: all have its shapes.
  virtual Status model(ValueRef* out, bool* fixed) = 0;
  // "13 rows of 2 tensors in memory".
  virtual void describe(char* text, std::size_t size) const noexcept = 0;

 protected:
  using Counted::Counted;
};

}  // namespace dist
