// SPDX-License-Identifier: Apache-2.0
// Batcher: items, and the steps on instances that answer them.
//
// A step stands in the instances' queue as a request does (Step), for a certain instance, which has items, or for any, which
// those that wait may join. There is one of each instance's own there at a time, and one for any. When an instance takes it, the
// queue of items says who is in it; when it is over, the instance's next one stands in line, if there is anybody for it.
//
// The mutex is that of the queue of items. The instances' mutex may be taken under it, and nothing of the host's is called there.
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

namespace dist {

class Batcher final : public Counted {
 public:
  struct Options {
    explicit Options(Memory& memory) : buckets(&memory) {}
    BatchQueue::Options queue;
    std::pmr::vector<int64_t> buckets;  // ascending; none: one bucket of all lengths
    bool continuous = false;
    int max_results = 16;
    // The host's functions; NULL: none.
    dist_status (*step)(Replica& replica, class Batch& batch, const Options& self) = nullptr;
    void (*host_step)() = nullptr;
    void (*free)(void (*function)(), void* what, void* user_data) = nullptr;
    void (*free_state)() = nullptr;
    void (*free_result)() = nullptr;
    void* user_data = nullptr;
  };
  // What a host asks for beside a Submission.
  struct Place {
    int64_t length = 0;
    int64_t bytes = 0;
  };

  // Throws std::bad_alloc.
  Batcher(Memory& memory, Instances& instances, Options options);

  Status submit(const Submission& given, const Place& place, Item** out);
  void count(int64_t* out_waiting, int64_t* out_active) noexcept;
  const ItemNumbers& numbers() const noexcept { return numbers_; }
  // FAILED_PRECONDITION where it has items, or works of them are left.
  static Status destroy(Batcher* batcher) noexcept;

  // ---- For the instances ----
  // Ends those whose deadline is over and begins the steps that are due. When there is something to do next; 0: never.
  int64_t tend() noexcept;
  // Ends all items, those in a step when that is over.
  void end_all(const ErrorRecord& why) noexcept;
  // Of the same strategy: by its number, the least that no other one had when it was made.
  Batcher* next = nullptr;
  int number = 0;

  // An instance is left alone with a function that has not returned, and nothing of the host's is called. First, there are as
  // many steps as it takes without the one that is inside.
  Status provide_step() noexcept;
  // Then, until another thread serves there: all its items leave, and lie at the front of the chain by next_to_end;
  // `running` is what it runs.
  void leave_alone(int instance, Request& running, Item** chain) noexcept;
  // Then each ends. `stuck`: what is said of the function.
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
  class Step;
  friend class Step;

  ~Batcher() override;
  Status try_submit(const Submission& given, const Place& place, Item** out);
  Status acquire(Item** out);
  int bucket_of(int64_t length) const noexcept;
  bool is_sooner(int64_t now_ns) noexcept;
  int64_t next_event(int64_t now_ns) const noexcept;
  void arm(int instance) noexcept;
  void arm_waiting(int64_t now_ns) noexcept;
  void stand_in_line(int wants, int32_t priority) noexcept;
  bool form(Step& step, int instance) noexcept;
  void count_joined(const Step& step) noexcept;
  void count_step(const Step& step, uint64_t now) noexcept;
  void end_chain(Item* first, Status status, const ErrorRecord* why) noexcept;
  void end_unwanted(Item& item) noexcept;
  void add_step(Step& step) noexcept;
  void free_steps() noexcept;
  std::size_t num_steps_at_work() const noexcept;
  void tell(Item& item) noexcept;
  void back(Step& step) noexcept;
  void leave_line(const Step& step) noexcept;
  void put_away(Step& step) noexcept;
  void over(Step& step, Status status, const ErrorRecord* why) noexcept;
  dist_status over_as(const Item& item, int64_t now_ns) const noexcept;
  ErrorRecord why_over(const Item& item, dist_status as) const noexcept;
  void leave(Item& item, dist_status outcome, uint64_t now) noexcept;

  const Ref<Instances> instances_;
  const Options options_;
  std::mutex mutex_;
  BatchQueue queue_;
  Step* steps_ = nullptr;  // all
  std::size_t num_steps_ = 0;
  Promise* idle_ = nullptr;           // that stand in no line
  Step* any_ = nullptr;               // that stands in line for any instance
  std::pmr::vector<bool> armed_;      // by instance: its own step stands in line
  std::pmr::vector<Step*> stepping_;  // by instance: its latest step
  bool by_name_ = false;              // who has room is told one by one
  int64_t next_ns_ = 0;               // that the clock knows of; 0: none
  ErrorRecord closing_;               // of those who are told to end
  ItemNumbers numbers_;
  Promise* spare_ = nullptr;  // items that serve again
  std::size_t out_ = 0;       // items that somebody has a use of
  std::size_t steps_out_ = 0;
  std::size_t steps_left_ = 0;   // of these, alone
  Item* left_ = nullptr;         // with a function that was left alone, by next_left
  std::size_t going_ = 0;        // of these, that are about to be let go of
  bool short_of_steps_ = false;  // one was wanted, and none idle
};

// A step, as the host's function sees it.
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
  // Whether the function may yet say something; `call` is the host's, in messages.
  Status check_here(const char* call) const noexcept;
  // CANCELLED: it is left alone.
  static Status is_left(const char* call) noexcept;

 private:
  Batcher& batcher_;
  const std::span<BatchQueue::Entry* const> items_;
  const std::atomic<bool>& left_;
};

}  // namespace dist
