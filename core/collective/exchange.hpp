// SPDX-License-Identifier: Apache-2.0
// Exchange: the work of one collective on which all members agree, in pieces that any thread may do.
//
// Every collective is a list of tasks. A task takes one region of elements from one or several sources to one
// or several destinations, reducing them on the way or not. core/base/collective_traits.hpp says so for each:
//
//     collective        tasks of a tensor           sources                  destinations
//     all_reduce        one                         all inputs               all outputs, or the one that all share
//     reduce            one                         all inputs               the root's output
//     reduce_scatter    one for each r              all inputs' part r       output r
//     broadcast         one                         the root's input         all outputs
//     scatter           one for each r              the root's part r        output r
//     all_gather        one for each p              input p                  place p in all outputs
//     gather            one for each p              input p                  place p in the root's output
//     all_to_all        one for each p and r        input p's part r         place p in output r
//     permute           one for each r              the input of r's source  output r
//     scan              one                         all inputs               all outputs, each its own prefix
//
// Laid end to end, tasks are a space of units (core/collective/partition.hpp) that members share out. An
// element's fold knows nothing of that, so the bits do not depend on who does what.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"
#include "core/collective/call.hpp"
#include "core/collective/partition.hpp"
#include "core/collective/scratch.hpp"
#include "core/comm/offer.hpp"
#include "core/kernel/reduce.hpp"

namespace dist {

class Exchange {
 public:
  // Poison is looked at between blocks.
  static constexpr std::size_t kBlockUnits = (std::size_t{64} << 10) / kUnitBytes;

  // `offers[p]` is rank p's; both arguments are used as long as the exchange. Results larger than cache_bytes
  // are stored past the caches.
  Exchange(const Call& call, int size, const Offer* const* offers, std::size_t cache_bytes) noexcept;

  std::size_t units() const noexcept { return units_; }
  std::size_t bytes() const noexcept { return units_ * unit_bytes_; }
  std::size_t unit_bytes() const noexcept { return unit_bytes_; }
  // Units of one block.
  std::size_t block_units() const noexcept { return block_units_; }
  // Above this size the results, which are not in place, would drive all else out of the cache.
  static constexpr std::size_t stream_bytes(std::size_t members, std::size_t cache_bytes) noexcept {
    return cache_bytes / (2 * members);
  }

  // Whether the members' tensors do not fit together, as far as this concerns rank `member` of `group`; then
  // `out_why` gets the report, but for what all reports have: refusal(). NULL: just the question.
  bool refuses(const Rendezvous& group, int member, ErrorRecord* out_why) const noexcept;

  // Does a range of units, in pieces; ends early where go_on() says no.
  template <class GoOn>
  void run(Range range, GoOn&& go_on) const noexcept {
    std::size_t at = 0;
    for (std::size_t k = 0; k < tasks_ && at < range.end; ++k) {
      const std::size_t elements = task_elements(k);
      const std::size_t units = units_of(elements * element_bytes(k), unit_bytes_);
      if (at + units > range.begin && units != 0) {
        Range piece{range.begin > at ? range.begin - at : 0, range.end - at < units ? range.end - at : units};
        const std::size_t per_unit = unit_bytes_ / element_bytes(k);
        for (; piece.begin < piece.end; piece.begin += block_units_) {
          const std::size_t end =
              piece.end - piece.begin < block_units_ ? piece.end : piece.begin + block_units_;
          const std::size_t last = end * per_unit < elements ? end * per_unit : elements;
          run_piece(k, piece.begin * per_unit, last - piece.begin * per_unit);
          if (!go_on()) return;
        }
      }
      at += units;
    }
  }

  // The reduced elements of a part of tensor t, into a dense buffer. No tensor has gaps. It takes
  // fold_bytes() of the scratch, for as long as it works.
  void reduce(std::size_t t, std::size_t first, std::size_t count, std::byte* to,
              Scratch& scratch) const noexcept;
  std::size_t fold_bytes() const noexcept {
    return Scratch::bytes_of<const std::byte*>(sources_) +
           (weighted_ ? Scratch::bytes_of<double>(sources_) : 0);
  }

 private:
  struct Task;
  // From num_src dense sources to num_dst dense destinations.
  struct Fold {
    dist_dtype dtype;
    const std::byte* const* src;
    std::size_t num_src;
    const double* weights;  // one a source; NULL: none
    std::byte* const* dst;
    std::size_t num_dst;
    std::size_t count;  // of elements
  };
  struct Ranks {
    int begin;
    int end;
  };

  // Tasks of one tensor, beside or below each other: `part` is r or p, or p * size + r.
  std::size_t tensor_of(std::size_t k) const noexcept { return parts_ == 1 ? k : k / parts_; }
  int part_of_task(std::size_t k) const noexcept { return parts_ == 1 ? 0 : static_cast<int>(k % parts_); }

  dist_dtype dtype_of(std::size_t t) const noexcept;
  std::size_t element_bytes(std::size_t k) const noexcept;
  std::size_t task_elements(std::size_t k) const noexcept;
  int64_t split(int p, int r, std::size_t t) const noexcept;
  Ranks ranks(Ends ends, int member, int peer) const noexcept;
  Ranks sources(int part) const noexcept;
  Ranks destinations(int part) const noexcept;

  void run_piece(std::size_t k, std::size_t first, std::size_t count) const noexcept;
  void collect(Task& task) const noexcept;
  template <class Use>
  void for_sources(const Task& task, Use&& use) const noexcept;
  template <class Use>
  void for_destinations(const Task& task, Use&& use) const noexcept;
  enum class Side { kSource, kDestination };
  void narrow(Task& task, Side side) const noexcept;
  void shape_region(Task& task) const noexcept;
  std::byte* begin_of(const Task& task, const dist_tensor& tensor, int64_t offset) const noexcept;
  void run_strided(const Task& task, Scratch& scratch, std::size_t first, std::size_t count) const noexcept;
  void run_rows(const Task& task, std::size_t first, std::size_t count) const noexcept;
  void run_kernel(const Task& task, std::size_t count) const noexcept;
  void run_scan(const Task& task, std::size_t count) const noexcept;
  void fold(const Fold& f) const noexcept;
  void fold_by_user(const Fold& f) const noexcept;
  void fold_exactly(const Fold& f) const noexcept;
  const double* collect_weights(Scratch& scratch) const noexcept;
  std::size_t unwritten() const noexcept;

  bool sizes_differ(const Rendezvous& group, ErrorRecord* out_why) const noexcept;
  bool pairs_differ(const Rendezvous& group, ErrorRecord* out_why) const noexcept;
  bool misplaced(int member, std::size_t t) const noexcept;
  bool overlaps(const Rendezvous& group, int member, ErrorRecord* out_why) const noexcept;
  bool overlap_is_simple() const noexcept;
  bool overlaps_simply(int member) const noexcept;

  const Call& call_;
  const Offer* const* offers_;
  const int size_;
  std::size_t parts_ = 1;  // tasks of a tensor
  std::size_t tasks_ = 0;
  std::size_t units_ = 0;
  std::size_t unit_bytes_ = kUnitBytes;
  std::size_t block_units_ = kBlockUnits;
  std::size_t sources_ = 0;  // contributions of all members
  bool strided_ = false;
  bool weighted_ = false;
  bool stream_ = false;
};

}  // namespace dist
