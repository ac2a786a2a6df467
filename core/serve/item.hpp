// SPDX-License-Identifier: Apache-2.0
// An item: a request that a batcher processes together with others, and its partial results.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <vector>

#include "core/comm/word.hpp"
#include "core/serve/batch_queue.hpp"
#include "core/serve/future.hpp"

namespace dist {

class Batcher;

class Item final : public Future, public BatchQueue::Entry {
 public:
  Item(Memory& memory, Instances& home, Batcher& batcher) noexcept
      : Future(memory, home), batcher_(batcher), earlier_(*this), results_(&memory) {}
  ~Item() override;

  Status test(bool* out_ended) noexcept override;
  void cancel() noexcept override;
  void close() noexcept override;
  Status take(int64_t timeout_ns, void** out) noexcept override;
  RequestHandle& arrival(bool last) noexcept override;

  // ---- For the batcher ----
  void begin(const Submission& given, int64_t now_ns, int uses, BudgetParty* insider) noexcept {
    begin_future(given, uses, insider);
    priority = given.priority;
    deadline_ns = given.timeout_ns > 0 ? deadline_after(now_ns, given.timeout_ns) : 0;
    state = nullptr;
    joined = false;
    cut_off_.store(false, std::memory_order_relaxed);
    outcome = DIST_OK;
    ends = false;
    arrives_.store(given.completions != nullptr, std::memory_order_relaxed);
    has_handle_.store(uses > 1, std::memory_order_relaxed);
  }
  // Fetches it into the caches of a thread that uses it next.
  void prefetch() const noexcept {
    for (std::size_t at = 0; at < sizeof(Item); at += 64)
      __builtin_prefetch(reinterpret_cast<const std::byte*>(this) + at, 1);
  }
  // The result of adding a partial result. kFull: it was the last one that fits; the item is excluded from
  // steps until the host takes some. kLeft: the step was abandoned, and the caller keeps the result.
  enum class Emitted : uint8_t { kKept, kFull, kLeft };
  Emitted emit(void* result) noexcept;
  bool is_full() noexcept;
  // Passes a reference to the callee. The item must not be in a step any more.
  void end(Status status, const ErrorRecord* why, Endings& by) noexcept override;
  // Abandons the item together with its instance, whose function is stuck. The item accepts no more results
  // and stays allocated until that function has returned and come_back() is called for its state.
  void cut_off() noexcept;
  void end_left(const ErrorRecord& stuck) noexcept;
  void come_back() noexcept;
  Item* next_left = nullptr;  // link in the batcher's list

  void* state = nullptr;          // the host's
  uint64_t came_at = 0;           // timestamp
  bool joined = false;            // has been in a step
  dist_status outcome = DIST_OK;  // how it ended, unless a step decided it
  Item* next_to_end = nullptr;    // a separate link, because `next` may be in use by completions
  // How the step that it is in wants it to end.
  bool ends = false;
  dist_status ends_with = DIST_OK;
  ErrorRecord* why = nullptr;  // if there was memory for it
  void end_with(dist_status status) noexcept;

 private:
  // The handle of every arrival before the last one. It never reports the end, so that the host sees the end
  // once, even if a thread still holds an earlier arrival when another thread takes the last one.
  class Earlier final : public RequestHandle {
   public:
    explicit Earlier(Item& item) noexcept : RequestHandle(item.memory()), item_(item) {}
    ~Earlier() override = default;

    Status test(bool* out_ended) noexcept override {
      *out_ended = false;
      return kOk;
    }
    Status wait(int64_t timeout_ns) noexcept override { return item_.wait(timeout_ns); }
    Status wait_any(RequestHandle* const* works, std::size_t n, int64_t timeout_ns,
                    std::size_t* out_index) noexcept override {
      return item_.wait_any(works, n, timeout_ns, out_index);
    }
    void cancel() noexcept override { item_.cancel(); }
    void close() noexcept override { item_.Future::close(); }
    Future& future() noexcept override { return item_; }
    Status take(int64_t timeout_ns, void** out) noexcept override { return item_.take(timeout_ns, out); }
    void* user_data() const noexcept override { return item_.user_data(); }

   private:
    Item& item_;
  };

  void cancelled(const char* reason) noexcept override;
  void recycle() noexcept override;
  void finish(Status status, const ErrorRecord* why, Endings& by) noexcept;
  void* take_first(bool* out_was_full) noexcept;
  void free_results() noexcept;
  // Whether there is anybody to take results.
  bool has_taker() const noexcept {
    return arrives_.load(std::memory_order_acquire) || has_handle_.load(std::memory_order_acquire);
  }

  Batcher& batcher_;
  Earlier earlier_;
  std::atomic<bool> arrives_{false};     // delivers to completions
  std::atomic<bool> has_handle_{false};  // the host has its handle, from dist_batcher_submit()
  std::mutex mutex_;                     // protects the members below
  std::pmr::vector<void*> results_;      // ring buffer, allocated on first use
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::atomic<bool> cut_off_{false};  // changes under the mutex
  Word news_;                         // counts results and the end
};

}  // namespace dist
