// SPDX-License-Identifier: Apache-2.0
// A batcher: it collects items and processes them in steps. A step is one call of a host function on one
// instance.
//
// A step is queued in the dispatcher's queue like a request (Step). It is meant either for one instance, which
// has items, or for any instance, so that waiting items can join. At most one step per instance and one for
// any instance are queued at a time. When an instance takes a step, the item queue decides which items are in
// it. When it is over, the next step of that instance is queued if it has items.
//
// Lock order: `mutex_` protects the item queue, and the dispatcher's mutex may be taken under it. No host
// callback is called under either.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/serve/batch_queue.hpp"
#include "core/serve/instances.hpp"
#include "core/serve/item.hpp"
#include "core/serve/item_numbers.hpp"
#include "core/serve/request.hpp"
#include "core/serve/short_lock.hpp"
#include "core/serve/spares.hpp"

namespace dist {

class Batcher final : public Counted {
 public:
  struct Options {
    explicit Options(Memory& memory) : buckets(&memory) {}
    BatchQueue::Options queue;
    // Upper bounds in ascending order; empty: one bucket for all lengths.
    std::pmr::vector<int64_t> buckets;
    bool continuous = false;
    int max_results = 16;
    // The host's functions; may be NULL.
    dist_status (*step)(Replica& replica, class Batch& batch, const Options& self) = nullptr;
    void (*host_step)() = nullptr;
    void (*free)(void (*function)(), void* what, void* user_data) = nullptr;
    void (*free_state)() = nullptr;
    void (*free_result)() = nullptr;
    void* user_data = nullptr;
  };
  // The properties of an item besides those of its Submission.
  struct Place {
    int64_t length = 0;
    int64_t bytes = 0;
  };

  // Throws std::bad_alloc.
  Batcher(Memory& memory, Instances& instances, Options options);

  Status submit(const Submission& given, const Place& place, Item** out);
  void count(int64_t* out_waiting, int64_t* out_active) noexcept;
  const ItemNumbers& numbers() const noexcept { return numbers_; }
  // Fails with FAILED_PRECONDITION if it has items, or if handles of its items exist.
  static Status destroy(Batcher* batcher) noexcept;

  // ---- For the instances ----
  // Ends the items whose deadline has expired and starts the steps that are due. Returns the time of the next
  // event; 0: none.
  int64_t tend() noexcept;
  // Ends all items; those in a step end when the step is over.
  void end_all(const ErrorRecord& why) noexcept;
  // Link in the strategy's list of batchers. The number is the lowest one that was free when this batcher was
  // created.
  Batcher* next = nullptr;
  int number = 0;

  // The next three functions abandon an instance whose function is stuck; they call no host function. First:
  // makes sure that there are enough steps without the one that is stuck.
  Status provide_step() noexcept;
  // Second: removes all items of the instance and puts them at the front of the chain linked by next_to_end.
  // They stay removed until another thread serves the instance. `running` is the stuck request.
  void leave_alone(int instance, Request& running, Item** chain) noexcept;
  // Third, for each item before it ends: its report. `stuck` describes the function.
  ErrorRecord why_left(const Item& item, const ErrorRecord& stuck) noexcept;

  // ---- For items ----
  void let_go_of_left(Item& item) noexcept;
  void cancel(Item& item, const char* reason, bool in_signal) noexcept;
  void has_room_again(Item& item) noexcept;
  void recycle(Item& item) noexcept;
  void free_state(Item& item) noexcept;
  void free_result(void* result) noexcept;
  const Options& options() const noexcept { return options_; }
  Status check_wanted(const Item& item) noexcept;

 private:
  void free(void (*function)(), void* what) noexcept;
  class Step;
  friend class Step;

  ~Batcher() override;
  Status try_submit(const Submission& given, const Place& place, Item** out);
  Status acquire(Item** out);
  void end_unseen() noexcept;
  int bucket_of(int64_t length) const noexcept;
  bool is_sooner(const Item& item, int64_t now_ns) noexcept;
  int64_t next_event(int64_t now_ns) const noexcept;
  void arm(int instance) noexcept;
  void arm_waiting(int64_t now_ns) noexcept;
  void arm_for(int32_t priority, int64_t now_ns) noexcept;
  void stand_in_line(int wants, int32_t priority) noexcept;
  bool form(Step& step, int instance) noexcept;
  void count_joined(const Step& step) noexcept;
  void count_step(const Step& step, uint64_t now) noexcept;
  void end_chain(Item* first, Status status, const ErrorRecord* why, Endings& by) noexcept;
  void end_unwanted(Item& item, Endings& by) noexcept;
  void add_step(Step& step) noexcept;
  void free_steps() noexcept;
  std::size_t num_steps_at_work() const noexcept;
  void tell(Item& item) noexcept;
  void back(Step& step) noexcept;
  void leave_line(const Step& step) noexcept;
  void put_away(Step& step) noexcept;
  void over(Step& step, Status status, const ErrorRecord* why, Endings& by) noexcept;
  dist_status over_as(const Item& item, int64_t now_ns) const noexcept;
  ErrorRecord why_over(const Item& item, dist_status as) const noexcept;
  void count_end(Item& item, dist_status outcome, uint64_t now) noexcept;
  void leave(Item& item, dist_status outcome, uint64_t now) noexcept;

  const Ref<Instances> instances_;
  const Options options_;
  ShortLock mutex_;
  BatchQueue queue_;
  Step* steps_ = nullptr;  // all steps
  std::size_t num_steps_ = 0;
  Future* idle_ = nullptr;            // steps that are not queued
  Step* any_ = nullptr;               // the step queued for any instance
  std::pmr::vector<bool> armed_;      // by instance: its own step is queued
  std::pmr::vector<Step*> stepping_;  // by instance: its latest step
  // The last step for any instance had no room for a due item: queue steps for specific instances.
  bool by_name_ = false;
  int64_t next_ns_ = 0;  // the next event that the clock thread knows of; 0: none
  ErrorRecord closing_;  // the report for items that must end because of close
  ItemNumbers numbers_;
  Spares spares_;                    // items
  std::atomic<std::size_t> out_{0};  // items with references
  std::atomic<std::size_t> steps_out_{0};
  std::size_t steps_left_ = 0;   // of these, the abandoned ones
  Item* left_ = nullptr;         // abandoned items, linked by next_left
  std::size_t going_ = 0;        // of these, the ones about to be released
  bool short_of_steps_ = false;  // a step was needed while none was idle
};

// A step as the host function sees it.
class Batch {
 public:
  Batch(Batcher& batcher, std::span<BatchQueue::Entry* const> items, const std::atomic<bool>& left) noexcept
      : batcher_(batcher), items_(items), left_(left) {}
  std::size_t size() const noexcept { return items_.size(); }
  int64_t bucket() const noexcept;
  Item* at(std::size_t i) const noexcept {
    return i < items_.size() ? static_cast<Item*>(items_[i]) : nullptr;
  }
  Batcher& batcher() const noexcept { return batcher_; }
  // Whether the function may still use the batch. `call` is the host's function, for messages.
  Status check_here(const char* call) const noexcept;
  // The error CANCELLED for a step that was abandoned.
  static Status is_left(const char* call) noexcept;

 private:
  Batcher& batcher_;
  const std::span<BatchQueue::Entry* const> items_;
  const std::atomic<bool>& left_;
};

}  // namespace dist
