// SPDX-License-Identifier: Apache-2.0
// Division: which worker reads which part of a source, and which replica gets which part of a batch. Pure
// arithmetic on the options and on whether the source has files.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/input/partial_batch.hpp"
#include "core/input/worker_layout.hpp"

namespace dist {

struct DatasetOptions {
  int32_t drop_remainder = 0;
  int64_t global_batch_size = 0;
  int32_t shuffle = 0;
  int32_t prefetch = 0;  // 0: one batch; < 0: none
  uint64_t seed = 0;
  dist_shard_policy shard_policy = DIST_SHARD_AUTO;
  int32_t num_workers = 0;  // 0: 1
  int32_t worker_index = 0;
  int32_t worker_batches = 0;
  int32_t shard_hint = 0;
  int32_t interleave = 0;
  int32_t static_shapes = 0;
  dist_input_mode replication_mode = DIST_INPUT_PER_WORKER;
  std::span<const int64_t> batch_sizes = {};
  int32_t as_one_process = 0;
  Ref<WorkerLayout> layout{};  // of num_workers workers; NULL: each has as many replicas as this one
};

// A copy of the batch sizes that the caller passed.
class Sizes final : public Counted {
 public:
  Sizes(Memory& memory, std::span<const int64_t> sizes)
      : Counted(memory), all(sizes.begin(), sizes.end(), &memory) {}
  std::pmr::vector<int64_t> all;
};

// An arithmetic progression of indices: first, first + step, ...
struct Turn {
  int64_t first = 0;
  int64_t step = 1;
  bool takes(int64_t index) const noexcept { return index % step == first; }
  // Returns how many of the indices 0 .. n-1 it contains.
  int64_t of(int64_t n) const noexcept { return n <= first ? 0 : (n - first - 1) / step + 1; }
};

struct Division {
  enum class Cut {
    kWhole,  // not split: elements are batches of any kind
    kEven,   // each batch into `pieces` pieces; replica r gets piece(r)
    kSizes   // the source's examples, regardless of their batches, into pieces of size(0), size(1), ...
  };

  int64_t replicas = 1;
  int64_t batch = 0;  // number of elements; 0: elements are batches
  bool drop_remainder = false;
  Cut cut = Cut::kEven;
  int64_t pieces = 1;
  int64_t first_piece = 0;
  int64_t piece_step = 1;
  // kEven: workers take pieces in turns; NULL: first_piece, first_piece + piece_step, ...
  Ref<WorkerLayout> layout;
  int64_t worker = 0;       // index in the layout
  int64_t step_pieces = 1;  // kSizes: pieces per step; this worker's start at first_piece
  int64_t size_offset = 0;  // kSizes without `sizes`: offset for piece_size(), of `pieces`
  int64_t size_turn = 1;    // the same: increment of the offset from step to step
  Ref<Sizes> sizes;
  // The parts of this worker.
  Turn files;
  Turn elements;
  Turn batches;

  int64_t piece(int64_t replica) const noexcept {
    return layout ? layout->place_in_turns(worker, replica) : first_piece + replica * piece_step;
  }
  // `batch_examples`: examples per batch, if elements are batches.
  int64_t size(int64_t index, int64_t batch_examples) const noexcept;
};

// The properties of a source on which the division depends.
struct SourceFacts {
  bool has_files = false;
  std::size_t num_files = 0;
};

// Fails as TensorFlow does: with INVALID_ARGUMENT for an index that is not a worker's (unless all workers
// read everything), with NOT_FOUND if the source has no files, and with FAILED_PRECONDITION for a hint that
// is not followed.
Status divide(const DatasetOptions& options, int64_t replicas, const Ref<Sizes>& sizes,
              const SourceFacts& source, Division* out) noexcept;

// Returns the sequence of one worker's piece sizes, num_workers * replicas numbers, after which it repeats.
Status batch_sizes_for_worker(int64_t batch, int64_t num_workers, int64_t replicas, int64_t worker,
                              std::span<int64_t> out) noexcept;

}  // namespace dist
