// SPDX-License-Identifier: Apache-2.0
// Item: a request that is answered together with others, in steps of a batcher, and the partial results that it has.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <vector>

#include "core/comm/word.hpp"
#include "core/serve/batch_queue.hpp"
#include "core/serve/promise.hpp"

namespace dist {

class Batcher;

class Item final : public Promise, public BatchQueue::Entry {
 public:
  Item(Memory& memory, Instances& home, Batcher& batcher) noexcept
      : Promise(memory, home), batcher_(batcher), results_(&memory) {}
  ~Item() override;

  Status test(bool* out_ended) noexcept override;
  void cancel() noexcept override;
  void close() noexcept override;
  Status take(int64_t timeout_ns, void** out) noexcept override;

  // ---- For the batcher ----
  void begin(const Submission& given, int64_t now_ns, int uses) noexcept;
  // kFull: it has as many results as may lie there; it is to be in no step then. kLeft: its step has been left alone. Then
  // the result is the caller's.
  enum class Emitted : uint8_t { kKept, kFull, kLeft };
  Emitted emit(void* result) noexcept;
  bool is_full() noexcept;
  // The use that ends is the caller's. Nobody is in a step with it any more.
  void end(Status status, const ErrorRecord* why) noexcept override;
  // Its instance is left alone with a function that has not returned: nothing more comes of it, and this stays until that
  // function has returned and come_back() is called, by its state's last user.
  void cut_off() noexcept;
  void end_left(const ErrorRecord& stuck) noexcept;
  void come_back() noexcept;
  Item* next_left = nullptr;  // of its batcher's

  void* state = nullptr;          // of the host's
  uint64_t came_at = 0;           // a stamp of the recorders'
  bool joined = false;            // a step has had it
  dist_status outcome = DIST_OK;  // when it leaves the queue: its end, where no step says of it
  Item* next_to_end = nullptr;    // `next` may be that of completions
  // What the step that it is in says of its end.
  bool ends = false;
  dist_status ends_with = DIST_OK;
  ErrorRecord* why = nullptr;  // where there was memory for it
  void end_with(dist_status status) noexcept;

 private:
  void cancelled(const char* reason) noexcept override;
  void recycle() noexcept override;
  void finish(Status status, const ErrorRecord* why) noexcept;
  void* take_first(bool* out_was_full) noexcept;
  void free_results() noexcept;
  // Whether somebody may take results.
  bool has_taker() const noexcept {
    return arrives_.load(std::memory_order_acquire) || has_handle_.load(std::memory_order_acquire);
  }

  Batcher& batcher_;
  std::atomic<bool> arrives_{false};     // in completions
  std::atomic<bool> has_handle_{false};  // the host's, from dist_batcher_submit()
  std::mutex mutex_;                     // what follows
  std::pmr::vector<void*> results_;      // a ring, from when there is one
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::atomic<bool> cut_off_{false};  // changes under it
  Word news_;                         // how often there was a result, or the end
};

}  // namespace dist
