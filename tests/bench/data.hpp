// SPDX-License-Identifier: Apache-2.0
// The tensors of one row, in ordinary malloc() memory that all sides share. They contain random nonzero
// values that are restored before every batch. Every result must equal a plain sum bit for bit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dist/types.h"

namespace bench {

// Where an operation writes its results.
enum class Layout {
  kInPlace,
  kOutOfPlace,
  kOneOutput,  // all replicas pass the same output
};
const char* layout_name(Layout layout);
const char* dtype_name(dist_dtype dtype);

// The inputs and outputs of an operation, and the expected results.
class Checked {
 public:
  virtual ~Checked() = default;
  // The maximum number of operations between two resets. The result is known for each number up to this.
  virtual int most_iterations() const = 0;
  // Computes what `check` compares with after this many operations. Called on one thread before a block.
  virtual void expect(int iterations) = 0;
  // Restores a replica's values and overwrites its output. Called on the replica's own thread, so that its
  // caches contain its data, like after a computation.
  virtual void reset(int replica) noexcept = 0;
  // Compares a replica's result with the expected one, and counts the differences.
  virtual void check(int replica, int iterations) noexcept = 0;
  size_t wrong() const { return wrong_.load(); }

 protected:
  void count_wrong(size_t more) noexcept {
    if (more != 0) wrong_.fetch_add(more);
  }

 private:
  std::atomic<size_t> wrong_{0};
};

struct Free {
  void operator()(void* memory) const;
};
using Buffer = std::unique_ptr<void, Free>;
// Buffers of different replicas share no cache line, as if each replica had allocated its own.
Buffer allocate(size_t bytes);

class Data final : public Checked {
 public:
  Data(dist_dtype dtype, size_t bytes, int replicas, Layout layout);

  dist_dtype dtype() const { return dtype_; }
  size_t bytes() const { return bytes_; }
  size_t count() const { return bytes_ / element_bytes_; }
  int replicas() const { return replicas_; }
  Layout layout() const { return layout_; }
  void* in(int replica) const { return in_[static_cast<size_t>(replica)].get(); }
  void* out(int replica) const;

  // In place, limited so that no sum leaves the type's range.
  int most_iterations() const override;
  void expect(int iterations) override;
  void reset(int replica) noexcept override;
  // Accepts rounding differences if there are more than two replicas, for sums in another order than that of
  // the replicas. With `always`, also for sums that round differently.
  void allow_rounding(bool always = false) { rounding_allowed_ = always || replicas_ > 2; }
  void check(int replica, int iterations) noexcept override;
  // Compares a result in other memory.
  void check_result(const void* result) noexcept;

  static size_t memory_bytes(size_t bytes, int replicas, Layout layout);

 private:
  using Bits = std::vector<unsigned char>;
  bool about_equal(const unsigned char* from, size_t bytes) const;

  dist_dtype dtype_;
  size_t bytes_;
  size_t element_bytes_;
  int replicas_;
  Layout layout_;
  std::vector<Buffer> in_, out_;
  std::vector<Bits> pattern_;  // a replica's values, which its tensor repeats
  Bits expected_;              // the expected values of the same period
  int expected_iterations_ = 0;
  bool rounding_allowed_ = false;
};

}  // namespace bench
