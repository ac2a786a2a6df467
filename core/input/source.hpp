// SPDX-License-Identifier: Apache-2.0
// Source: the elements of a dataset. Pass: makes batches of them, one after the other.
#pragma once

#include <cstdint>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/input/division.hpp"
#include "core/value/value.hpp"

namespace dist {

// Position: how far a pass has progressed after some of its batches.
struct Position {
  int64_t pass = 0;
  int64_t elements = 0;  // consumed elements of this worker's part of the source
  int64_t examples = 0;  // consumed examples of the next element, if elements are cut into several batches
  int64_t batches = 0;   // delivered batches, or pieces if batches are cut to sizes
};

// Checks that a pass can reach this position and continue there. The position need not be valid.
Status check_position(const Position& position) noexcept;

// How a pass makes batches.
struct Recipe {
  Division division;
  bool shuffle = false;
  uint64_t seed = 0;
};

// One pass over a source. Must be used from one thread at a time.
class Pass : public Counted {
 public:
  // Must be called first, with the number of the pass.
  void start(uint64_t number) noexcept { number_ = number; }
  // Moves a pass that has not begun to a position of another pass.
  virtual Status seek(const Position& position) = 0;
  // Fails with OUT_OF_RANGE at the end. Must not be called again after a failure.
  virtual Status next_batch(ValueRef* out) = 0;
  // Whether the last batch is filled up: parts of it are empty, although all batches have the same shape.
  virtual bool filled_up() const noexcept { return false; }
  // The position at which the next batch begins. The caller sets the number of the pass in it.
  virtual Position position() const noexcept = 0;

 protected:
  using Counted::Counted;
  uint64_t number() const noexcept { return number_; }

 private:
  uint64_t number_ = 0;
};

// The result of next_batch() at the end.
inline Status pass_is_over() noexcept {
  return fail(DIST_OUT_OF_RANGE, "end of the dataset. Call `dist_iterator_create()` for another pass.");
}

class Source : public Counted {
 public:
  virtual SourceFacts facts() const noexcept { return {}; }
  // Fails with INVALID_ARGUMENT if the elements cannot be divided in this way.
  virtual Status make_pass(const Recipe& recipe, Ref<Pass>* out) = 0;
  // Returns the same source with numbers in place of examples. Each example becomes three I64 (file, element,
  // example within the element), which identify it and are the same in every pass. An example is an element.
  // If elements are `batches`, it is one row of an element. The source has at most `limit` elements (0: all).
  virtual Status numbered(bool batches, int64_t limit, Ref<Source>* out) = 0;
  // Returns an element with the structure, dtypes and shapes of all elements. *fixed: all elements have
  // exactly these shapes.
  virtual Status model(ValueRef* out, bool* fixed) = 0;
  // Writes for example "13 rows of 2 tensors in memory".
  virtual void describe(char* text, std::size_t size) const noexcept = 0;

 protected:
  using Counted::Counted;
};

}  // namespace dist
