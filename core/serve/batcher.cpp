// SPDX-License-Identifier: Apache-2.0
// Batcher: items from submission to completion. Their steps are in step.cpp.
#include "core/serve/batcher.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

#include "core/base/host_call.hpp"
#include "core/base/os/thread.hpp"
#include "core/base/text.hpp"
#include "core/serve/step.hpp"

namespace dist {

Batcher::Batcher(Memory& memory, Instances& instances, Options options)
    : Counted(memory),
      instances_(Ref<Instances>::share(&instances)),
      options_(std::move(options)),
      queue_(memory, instances.pool().num_replicas(), options_.queue),
      armed_(static_cast<std::size_t>(instances.pool().num_replicas()), false, &memory),
      stepping_(armed_.size(), nullptr, &memory) {
  try {
    while (num_steps_ < num_steps_at_work()) add_step(*make_counted<Step>(memory, instances, *this).take());
  } catch (const std::bad_alloc&) {
    free_steps();
    throw;
  }
}

Batcher::~Batcher() {
  const Future* behind = nullptr;
  while (Future* const one = spares_.take(&behind)) one->release();
  free_steps();
}

// Two per instance (one queued, one running), one for any instance, and one that was removed from the queue.
std::size_t Batcher::num_steps_at_work() const noexcept { return 2 * armed_.size() + 2; }

void Batcher::add_step(Step& step) noexcept {
  step.next_of_all = std::exchange(steps_, &step);
  step.next = std::exchange(idle_, &step);
  ++num_steps_;
}

void Batcher::free_steps() noexcept {
  while (steps_ != nullptr) std::exchange(steps_, steps_->next_of_all)->release();
}

Status Batcher::destroy(Batcher* batcher) noexcept {
  Instances& instances = *batcher->instances_;
  {
    const std::lock_guard lock(batcher->mutex_);
    const std::size_t items = batcher->queue_.num_waiting() + batcher->queue_.num_active();
    if (items != 0) {
      return failed_precondition(
          "`dist_batcher_destroy()`: %zu items have not completed. Wait for them, or call "
          "`dist_instances_close()`.",
          items);
    }
  }
  for (;;) {
    {
      // Steps without items that are still queued.
      const std::lock_guard lock(batcher->mutex_);
      for (Step* each = batcher->steps_; each != nullptr; each = each->next_of_all) {
        if (!instances.dispatcher().withdraw_step(*each)) continue;
        batcher->leave_line(*each);
        batcher->put_away(*each);
        batcher->steps_out_.fetch_sub(1, std::memory_order_relaxed);
        batcher->release();  // only the host's handle is left
      }
      if (batcher->steps_out_.load(std::memory_order_acquire) == batcher->steps_left_) {
        // An abandoned function releases what it uses when it returns.
        std::size_t left = 0;
        for (const Item* each = batcher->left_; each != nullptr; each = each->next_left)
          left += each->is_used_once() ? 1 : 0;
        if (batcher->out_.load(std::memory_order_acquire) == left) break;
        if (batcher->going_ == 0)
          return failed_precondition(
              "`dist_batcher_destroy()`: the batcher still has items; call `dist_request_destroy()` for them "
              "first");
      }
    }
    yield_this_thread();
  }
  instances.batchers().remove(*batcher);
  batcher->release();
  return kOk;
}

// The smallest bucket that is large enough; -1: none.
inline int Batcher::bucket_of(int64_t length) const noexcept {
  if (options_.buckets.empty()) return 0;
  const auto found = std::lower_bound(options_.buckets.begin(), options_.buckets.end(), length);
  return found == options_.buckets.end() ? -1 : static_cast<int>(found - options_.buckets.begin());
}

inline Status Batcher::acquire(Item** out) {
  const Future* behind = nullptr;
  *out = static_cast<Item*>(spares_.take(&behind));
  if (behind != nullptr) static_cast<const Item*>(behind)->prefetch();
  if (*out == nullptr) {
    try {
      *out = make_counted<Item>(memory(), *instances_, *this).take();
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    }
  }
  out_.fetch_add(1, std::memory_order_relaxed);
  retain();
  return kOk;
}

void Batcher::recycle(Item& item) noexcept {
  spares_.put_back(item, item);
  // release: destroy() may free this object once it reads the count and the last reference is gone.
  out_.fetch_sub(1, std::memory_order_release);
  release();
}

Status Batcher::submit(const Submission& given, const Place& place, Item** out) {
  const Status submitted = try_submit(given, place, out);
  if (!submitted.ok()) [[unlikely]] {
    numbers_.refused[static_cast<std::size_t>(refusal_of(submitted.code()))].fetch_add(
        1, std::memory_order_relaxed);
  }
  return submitted;
}

Status Batcher::try_submit(const Submission& given, const Place& place, Item** out) {
  if (given.cancel != nullptr && given.cancel->signalled())
    return fail(DIST_CANCELLED, "the item was cancelled before it started: %s", given.cancel->reason());
  const int bucket = bucket_of(place.length);
  if (bucket < 0) {
    return invalid_argument("`dist_item_options.length` is %lld, but the largest bucket is %lld",
                            static_cast<long long>(place.length),
                            static_cast<long long>(options_.buckets.back()));
  }
  if (options_.queue.max_bytes != 0 && place.bytes > options_.queue.max_bytes) {
    return invalid_argument(
        "`dist_item_options.bytes` is %lld, but the items of an instance can have at most %lld "
        "(`dist_batcher_options.max_bytes`)",
        static_cast<long long>(place.bytes), static_cast<long long>(options_.queue.max_bytes));
  }
  DIST_TRY(instances_->helpers().need(given, options_.queue.max_delay_ns > 0));
  DIST_TRY(instances_->accept("dist_batcher_submit"));
  Item* item = nullptr;
  if (const Status made = acquire(&item); !made.ok()) {
    end_unseen();
    return made;
  }
  const int64_t now_ns = instances_->host().now_ns();
  item->begin(given, now_ns, out == nullptr ? 1 : 2, instances_->pool().insider());
  item->bucket = bucket;
  item->bytes = place.bytes;
  item->came_at = instances_->dispatcher().stamp();
  const bool linked = item->link();
  bool sooner = false;
  Status refused = kOk;
  {
    const std::lock_guard lock(mutex_);
    if (!linked || item->cancel_asked.load(std::memory_order_relaxed)) {
      refused = fail(DIST_CANCELLED, "the item was cancelled before it started: %s", given.cancel->reason());
    } else if (!queue_.arrive(*item, now_ns)) {
      refused = fail(DIST_RESOURCE_EXHAUSTED,
                     "`dist_batcher_submit()`: %zu items are waiting, which is the limit. Raise "
                     "`dist_batcher_options.max_waiting` or retry later.",
                     queue_.num_waiting());
    } else {
      numbers_.accepted.add(1);
      arm_waiting(now_ns);
      sooner = is_sooner(*item, now_ns);
    }
  }
  if (!refused.ok()) {
    item->drop();
    end_unseen();
    return refused;
  }
  if (sooner) instances_->helpers().deadline_changed();
  if (out != nullptr) *out = item;
  return kOk;
}

// Counts the end of an item that was counted as accepted, but that nobody has seen.
void Batcher::end_unseen() noexcept {
  instances_->tally().elsewhere().one_completed();
  instances_->lifecycle().delivered(instances_->tally().elsewhere());
}

// Whether the clock thread must check earlier than planned, because of this item. Must be called under the mutex.
inline bool Batcher::is_sooner(const Item& item, int64_t now_ns) noexcept {
  const int64_t delay_ns = options_.queue.max_delay_ns;
  int64_t next_ns = item.deadline_ns;
  if (delay_ns > 0) {
    const int64_t due_ns = deadline_after(now_ns, delay_ns);
    if (next_ns == 0 || due_ns < next_ns) next_ns = due_ns;
  }
  if (next_ns == 0 || (next_ns_ != 0 && next_ns_ <= next_ns)) return false;
  next_ns_ = next_ns;
  return true;
}

int64_t Batcher::next_event(int64_t now_ns) const noexcept {
  const BatchQueue::Entry* const first = queue_.first_deadline();
  const int64_t due_ns = queue_.due_at(now_ns);
  const int64_t deadline_ns = first == nullptr ? 0 : first->deadline_ns;
  if (due_ns == 0 || deadline_ns == 0) return std::max(due_ns, deadline_ns);
  return std::min(due_ns, deadline_ns);
}

void Batcher::count(int64_t* out_waiting, int64_t* out_active) noexcept {
  const std::lock_guard lock(mutex_);
  *out_waiting = static_cast<int64_t>(queue_.num_waiting());
  *out_active = static_cast<int64_t>(queue_.num_active());
}

// ---- Completion ----

// Whether and how the item must end now; DIST_OK: it continues. Never changes back. Must be called under the
// mutex.
dist_status Batcher::over_as(const Item& item, int64_t now_ns) const noexcept {
  if (item.cancel_asked.load(std::memory_order_relaxed)) return DIST_CANCELLED;
  if (item.deadline_ns != 0 && now_ns >= item.deadline_ns) return DIST_DEADLINE_EXCEEDED;
  return item.told ? closing_.code : DIST_OK;
}

// The report for that. Must be called under the mutex.
ErrorRecord Batcher::why_over(const Item& item, dist_status as) const noexcept {
  ErrorRecord why;
  why.code = as;
  if (as == DIST_DEADLINE_EXCEEDED) {
    std::snprintf(why.message, sizeof why.message, "the item's deadline of %s expired %s",
                  DurationText(item.timeout_ns()).text,
                  item.joined ? "before its last step ended" : "before its first step");
  } else if (item.cancel_asked.load(std::memory_order_relaxed)) {
    const Cancel* const by = item.cancel_object();
    std::snprintf(why.message, sizeof why.message, "the item was cancelled: %.900s",
                  by != nullptr && by->signalled() ? by->reason() : "`dist_request_cancel()`"_m);
  } else {
    return closing_;
  }
  return why;
}

// Counts an item that ends. `now` is a timestamp. Must be called under the mutex.
void Batcher::count_end(Item& item, dist_status outcome, uint64_t now) noexcept {
  item.outcome = outcome;
  numbers_.ended[static_cast<std::size_t>(end_of(outcome))].add(1);
  if (item.joined) numbers_.waited.add(now > item.came_at ? now - item.came_at : 0);
}

// The same, and removes it from the queue.
void Batcher::leave(Item& item, dist_status outcome, uint64_t now) noexcept {
  count_end(item, outcome, now);
  queue_.leave(item);
}

void Batcher::cancel(Item& item, const char* reason, bool in_signal) noexcept {
  ErrorRecord why;
  why.code = DIST_CANCELLED;
  std::snprintf(why.message, sizeof why.message, "the item was cancelled: %.900s", reason);
  {
    const std::lock_guard lock(mutex_);
    if (item.ended()) return;
    item.cancel_asked.store(true, std::memory_order_relaxed);
    const bool waits = item.queued;
    // An item in a step ends with the step; one that has not arrived yet ends on arrival; one that is ending
    // has left already.
    if (item.in_step()) return tell(item);
    if (!waits && item.instance() < 0) return;
    leave(item, why.code, instances_->dispatcher().stamp());
    arm_waiting(instances_->host().now_ns());
  }
  in_signal ? item.end_in_signal(why) : item.end(Status(why.code), &why, instances_->tally().elsewhere());
}

int64_t Batcher::tend() noexcept {
  for (;;) {
    Item* over = nullptr;
    ErrorRecord why;
    {
      const std::lock_guard lock(mutex_);
      const int64_t now_ns = instances_->host().now_ns();
      BatchQueue::Entry* const first = queue_.first_deadline();
      if (first == nullptr || first->deadline_ns > now_ns) {
        arm_waiting(now_ns);
        next_ns_ = next_event(now_ns);
        return next_ns_;
      }
      over = static_cast<Item*>(first);
      if (over->in_step()) {
        tell(*over);
        continue;
      }
      why = why_over(*over, over_as(*over, now_ns));
      leave(*over, why.code, instances_->dispatcher().stamp());
    }
    over->end(Status(why.code), &why, instances_->tally().elsewhere());
  }
}

void Batcher::end_all(const ErrorRecord& why) noexcept {
  for (;;) {
    Item* one = nullptr;
    {
      const std::lock_guard lock(mutex_);
      closing_ = why;
      one = static_cast<Item*>(queue_.any_waiting());
      for (int i = 0; one == nullptr && i < queue_.num_instances(); ++i) {
        for (BatchQueue::Entry* const each : queue_.items(i)) {
          auto* const item = static_cast<Item*>(each);
          item->in_step() ? tell(*item) : void(one = item);
        }
      }
      if (one == nullptr) return;
      leave(*one, why.code, instances_->dispatcher().stamp());
    }
    one->end(Status(why.code), &why, instances_->tally().elsewhere());
  }
}

void Batcher::has_room_again(Item& item) noexcept {
  const std::lock_guard lock(mutex_);
  // A step may have included it since the caller checked.
  if (!item.held || item.is_full()) return;
  item.held = false;
  if (const int instance = item.instance(); instance >= 0) arm(instance);
}

void Batcher::free_state(Item& item) noexcept {
  void* const state = std::exchange(item.state, nullptr);
  if (state != nullptr) free(options_.free_state, state);
}

void Batcher::free_result(void* result) noexcept { free(options_.free_result, result); }

// This may be the thread of an instance, for which other callers of libdist wait.
void Batcher::free(void (*function)(), void* what) noexcept {
  if (function == nullptr) return;
  const HostCall inside("a `dist_batch_free_fn`"_m, HostCall::Refuses::kWaits);
  options_.free(function, what, options_.user_data);
}

Status Batch::check_here(const char* call) const noexcept {
  if (batcher_.memory().forked()) return in_forked_child();
  return left_.load(std::memory_order_relaxed) ? is_left(call) : kOk;
}

Status Batch::is_left(const char* call) noexcept {
  return fail(DIST_CANCELLED,
              "`%s()`: the items of this step have already completed, because its function did not return in "
              "time, and "
              "the replica has a new thread (`dist_instances_options.stuck_ns`). Return from the function.",
              call);
}

Status Batcher::check_wanted(const Item& item) noexcept {
  ErrorRecord why;
  {
    const std::lock_guard lock(mutex_);
    const dist_status as = over_as(item, instances_->host().now_ns());
    if (as == DIST_OK) return kOk;
    why = why_over(item, as);
  }
  return fail(why);
}

int64_t Batch::bucket() const noexcept {
  const auto& buckets = batcher_.options().buckets;
  return buckets.empty() ? 0 : buckets[static_cast<std::size_t>(items_.front()->bucket)];
}

}  // namespace dist
