// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/drift_across.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

#include "core/cross_replica/fold.hpp"
#include "core/value/elements.hpp"

namespace dist {
namespace {

constexpr int64_t kRanges = 256;

// Divides [first, last) into at most kRanges ranges of `each` elements; the last one may be shorter.
struct Ranges {
  Ranges(int64_t first_element, int64_t last_element) noexcept
      : first(first_element),
        last(last_element),
        each(std::max<int64_t>((last_element - first_element + kRanges - 1) / kRanges, 1)),
        count((last_element - first_element + each - 1) / each) {}

  int64_t begin(int64_t range) const noexcept { return first + range * each; }
  int64_t end(int64_t range) const noexcept { return std::min(last, begin(range) + each); }

  int64_t first;
  int64_t last;
  int64_t each;
  int64_t count;
};

// Computes digests of the first copy.
Status digest(Arena& arena, const VariableCopies& copies, const Ranges& ranges, uint64_t* out) {
  const int64_t range_bytes = ranges.each * copies.element_bytes();
  const int64_t grain = std::max<int64_t>(int64_t{FoldPlan::kSerialBytes} / range_bytes, 1);
  return arena.parallel_for(0, ranges.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      out[r] =
          digest_elements(copies.dtype(), copies.at(0, ranges.begin(r)), ranges.end(r) - ranges.begin(r));
    }
  });
}

// Represents a digest by two words. Their maximum over all workers shows whether all digests are equal.
void state(uint64_t digest, int64_t (&words)[2]) noexcept {
  words[0] = static_cast<int64_t>(digest);
  words[1] = static_cast<int64_t>(~digest);
}
bool all_same(const int64_t (&words)[2]) noexcept { return words[0] == ~words[1]; }

// Identifies the object of the comparison. The digest covers all of it, the text as much as fits.
struct Subject {
  explicit Subject(const Variable& variable) noexcept {
    const dist_tensor copy = variable.first_copy();
    char shape[160];
    describe(copy, shape, sizeof shape);
    std::snprintf(text, sizeof text, "drift of %s %s %s", variable.name(), shape, variable.class_name());
    uint64_t parts[3 + DIST_MAX_NDIM] = {of_text(variable.name()), of_text(variable.class_name()),
                                         static_cast<uint64_t>(copy.dtype)};
    for (int32_t d = 0; d < copy.ndim; ++d) parts[3 + d] = static_cast<uint64_t>(copy.shape[d]);
    digest = of_words(parts, 3 + copy.ndim);
  }
  static uint64_t of_words(const uint64_t* words, int64_t count) noexcept {
    return digest_elements(DIST_U64, reinterpret_cast<const std::byte*>(words), count);
  }
  static uint64_t of_text(const char* text) noexcept {
    return digest_elements(DIST_U8, reinterpret_cast<const std::byte*>(text),
                           static_cast<int64_t>(std::strlen(text)));
  }

  char text[256];  // a tag, which is truncated
  uint64_t digest;
};

// Finds the first element of [0, last) in which the first copies of the workers differ; `last` if there is
// none.
Status search(const CrossReplica& context, const VariableCopies& copies, const Subject& subject, int64_t last,
              int64_t* out) {
  *out = last;
  int64_t first = 0;
  while (first < last) {
    const Ranges ranges(first, last);
    uint64_t digests[kRanges];
    int64_t words[kRanges][2];
    DIST_TRY(digest(*context.arena, copies, ranges, digests));
    for (int64_t r = 0; r < ranges.count; ++r) state(digests[r], words[r]);
    DIST_TRY(context.workers->largest({words[0], static_cast<std::size_t>(ranges.count) * 2}, subject.text,
                                      subject.digest));
    int64_t differs = 0;
    while (differs < ranges.count && all_same(words[differs])) ++differs;
    // The copies do not differ before the known position, so that position is the result.
    if (differs == ranges.count) return kOk;
    first = ranges.begin(differs);
    last = ranges.end(differs);
    if (ranges.each > 1) continue;
    *out = first;
    return kOk;
  }
  return kOk;
}

}  // namespace

Status first_difference_across(const CrossReplica& context, const Variable& variable, int64_t first_here,
                               int64_t* out) {
  const VariableCopies copies(variable);
  const Subject subject(variable);
  const Ranges all(0, copies.elements());
  uint64_t digests[kRanges];
  DIST_TRY(digest(*context.arena, copies, all, digests));
  // Negated, so that the maximum is the earliest difference.
  int64_t words[3] = {-first_here};
  int64_t whole[2];
  state(Subject::of_words(digests, all.count), whole);
  std::copy_n(whole, 2, words + 1);
  DIST_TRY(context.workers->largest(words, subject.text, subject.digest));
  std::copy_n(words + 1, 2, whole);
  // The result cannot be after this worker's own first difference, and not before the first element.
  const int64_t known = -std::min<int64_t>(words[0], 0);
  *out = known;
  if (known == copies.elements() && all_same(whole)) return kOk;
  return search(context, copies, subject, known, out);
}

Status agree_on_none(const CrossReplica& context, const Variable& variable) {
  const Subject subject(variable);
  int64_t nothing = 0;
  return context.workers->largest({&nothing, 1}, subject.text, subject.digest);
}

}  // namespace dist
