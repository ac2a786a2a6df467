// SPDX-License-Identifier: Apache-2.0
// Batcher: the steps, from the queue to their end.
#include "core/serve/step.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

namespace dist {

void Batcher::Step::begin_step(int instance, int32_t of) noexcept {
  Submission given;
  given.body = {.call = call, .context = this};
  begin_future(given, 1, nullptr);
  wants = instance;
  unlimited = true;
  priority = of;
  deadline_ns = 0;
  is_taken = false;
  at = -1;
  left.store(false, std::memory_order_relaxed);
  count_ = 0;
}

dist_status Batcher::Step::call(Replica& replica, const Body& self) {
  auto& step = *static_cast<Step*>(self.context);
  Batcher& batcher = step.batcher_;
  if (!batcher.form(step, static_cast<int>(replica.local()))) return DIST_OK;
  Batch batch(batcher, step.items(), step.left);
  return batcher.options_.step(replica, batch, batcher.options_);
}

// Must be called under the mutex. An idle step is almost always available: an instance needs at most two, and
// one is queued for any instance. But steps that were removed from the queue may not have been put back yet.
void Batcher::stand_in_line(int wants, int32_t priority) noexcept {
  if (idle_ == nullptr) {
    short_of_steps_ = true;
    return;
  }
  auto& step = static_cast<Step&>(*idle_);
  idle_ = idle_->next;
  step.begin_step(wants, priority);
  steps_out_.fetch_add(1, std::memory_order_relaxed);
  retain();
  wants == kAnyInstance ? void(any_ = &step) : void(armed_[static_cast<std::size_t>(wants)] = true);
  instances_->dispatcher().enqueue_step(step);
}

void Batcher::leave_line(const Step& step) noexcept {
  step.wants == kAnyInstance ? void(any_ = nullptr)
                             : void(armed_[static_cast<std::size_t>(step.wants)] = false);
}

// Queues an instance's own next step if it has items for one. Must be called under the mutex.
void Batcher::arm(int instance) noexcept {
  if (armed_[static_cast<std::size_t>(instance)] || queue_.is_stepping(instance) || !queue_.has_own(instance))
    return;
  stand_in_line(instance, queue_.greatest_of(instance));
}

// Queues a step for waiting items: for any instance if one is empty and therefore has room, otherwise for an
// instance with room. Instances with a queued or running step of their own find the waiting items by
// themselves.
void Batcher::arm_for(int32_t priority, int64_t now_ns) noexcept {
  if (any_ != nullptr) return instances_->dispatcher().raise_step(*any_, priority);
  if (!by_name_ && queue_.has_empty_instance()) return stand_in_line(kAnyInstance, priority);
  for (int i = 0; i < queue_.num_instances(); ++i) {
    if (queue_.is_stepping(i) || armed_[static_cast<std::size_t>(i)] || !queue_.could_join(i, now_ns))
      continue;
    stand_in_line(i, std::max(priority, queue_.greatest_of(i)));
  }
}

// On the instance that took the step: selects its items. Returns false if there are none.
bool Batcher::form(Step& step, int instance) noexcept {
  Item* over = nullptr;
  bool any = false;
  {
    const std::lock_guard lock(mutex_);
    // Everything was told to end, and this step starts too late.
    if (step.left.load(std::memory_order_relaxed)) return false;
    const int64_t now_ns = instances_->host().now_ns();
    any = &step == any_;
    leave_line(step);
    step.is_taken = true;
    step.at = instance;
    step.begun_at = instances_->dispatcher().stamp();
    // Items that were cancelled or have expired.
    for (std::size_t i = 0; i < queue_.items(instance).size();) {
      auto& item = static_cast<Item&>(*queue_.items(instance)[i]);
      const dist_status as = over_as(item, now_ns);
      if (as == DIST_OK) {
        ++i;
        continue;
      }
      leave(item, as, step.begun_at);
      item.next_to_end = std::exchange(over, &item);
    }
    const std::size_t waited = queue_.num_waiting();
    step.set_count(queue_.form(instance, now_ns, step.room()));
    stepping_[static_cast<std::size_t>(instance)] = &step;
    count_joined(step);
    // This instance has no room for the waiting items. From now on, instances with room get steps of their
    // own, because this one could take the next step for any instance again.
    by_name_ = any && queue_.num_waiting() == waited && queue_.is_due(now_ns);
    arm_waiting(now_ns);
  }
  end_chain(over, kOk, nullptr, instances_->tally().elsewhere());
  return !step.items().empty();
}

// Counts the items that are in a step for the first time. Must be called under the mutex.
void Batcher::count_joined(const Step& step) noexcept {
  for (BatchQueue::Entry* const each : step.items()) {
    auto& item = static_cast<Item&>(*each);
    if (std::exchange(item.joined, true)) continue;
    numbers_.queued.add(step.begun_at > item.came_at ? step.begun_at - item.came_at : 0);
  }
}

// Ends items that have left the queue: each as its step decided, or as all, or as cancelled or expired.
void Batcher::end_chain(Item* first, Status status, const ErrorRecord* why, Endings& by) noexcept {
  while (first != nullptr) {
    Item& item = *std::exchange(first, first->next_to_end);
    if (item.ends) {
      item.end(Status(item.ends_with), item.ends_with == DIST_OK ? nullptr : item.why, by);
    } else if (item.outcome == status.code()) {
      item.end(status, why, by);
    } else {
      end_unwanted(item, by);
    }
  }
}

void Batcher::end_unwanted(Item& item, Endings& by) noexcept {
  ErrorRecord why;
  {
    const std::lock_guard lock(mutex_);
    why = why_over(item, item.outcome);
  }
  item.end(Status(why.code), &why, by);
}

// Must be called under the mutex.
void Batcher::count_step(const Step& step, uint64_t now) noexcept {
  numbers_.sizes.add(step.items().size());
  numbers_.computed.add(now > step.begun_at ? now - step.begun_at : 0);
}

// The step has ended, or will never begin.
void Batcher::over(Step& step, Status status, const ErrorRecord* why, Endings& by) noexcept {
  Item* ending = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const int64_t now_ns = instances_->host().now_ns();
    if (!step.is_taken) {
      leave_line(step);
    } else if (!step.items().empty()) {
      const uint64_t now = instances_->dispatcher().stamp();
      count_step(step, now);
      queue_.end_step(step.at, [&](BatchQueue::Entry& each) {
        auto& item = static_cast<Item&>(each);
        const dist_status as = item.ends     ? item.ends_with
                               : status.ok() ? over_as(item, now_ns)
                                             : status.code();
        if (options_.continuous && as == DIST_OK && !item.ends) {
          item.held = item.is_full();
          return true;
        }
        count_end(item, as, now);
        item.next_to_end = std::exchange(ending, &item);
        return false;
      });
      arm(step.at);
    }
    put_away(step);
    arm_waiting(now_ns);
  }
  if (status.ok() || why == nullptr) [[likely]] {
    end_chain(ending, status, nullptr, by);
  } else {
    // A copy, because the host's callbacks may record other failures on this thread.
    const ErrorRecord reason = *why;
    end_chain(ending, status, &reason, by);
  }
  // release: destroy() continues when all items of the step have ended.
  steps_out_.fetch_sub(1, std::memory_order_release);
  release();
}

// Must be called under the mutex.
void Batcher::put_away(Step& step) noexcept {
  step.next = std::exchange(idle_, &step);
  if (!std::exchange(short_of_steps_, false)) return;
  for (int i = 0; i < queue_.num_instances(); ++i) arm(i);
  arm_waiting(instances_->host().now_ns());
}

// ---- Steps that do not return ----

// Marks an item in a step that must end. Must be called under the mutex.
void Batcher::tell(Item& item) noexcept {
  queue_.tell(item);
  const int instance = item.instance();
  instances_->dispatcher().tell_step(instance, *stepping_[static_cast<std::size_t>(instance)]);
}

Status Batcher::provide_step() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (num_steps_ > num_steps_at_work() + steps_left_) return kOk;
  }
  try {
    Step* const one = make_counted<Step>(memory(), *instances_, *this).take();
    const std::lock_guard lock(mutex_);
    add_step(*one);
    return kOk;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

void Batcher::leave_alone(int instance, Request& running, Item** chain) noexcept {
  const std::lock_guard lock(mutex_);
  const int64_t now_ns = instances_->host().now_ns();
  const uint64_t now = instances_->dispatcher().stamp();
  const bool is_own = running.batcher() == this;
  const bool cancelled = is_own && running.cancel_asked.load(std::memory_order_relaxed);
  // From the back, so that no item moves; the first item becomes the first of the chain.
  while (!queue_.items(instance).empty()) {
    auto& item = static_cast<Item&>(*queue_.items(instance).back());
    const dist_status as = over_as(item, now_ns);
    leave(item, as != DIST_OK ? as : cancelled ? DIST_CANCELLED : DIST_UNAVAILABLE, now);
    item.cut_off();
    item.next_left = std::exchange(left_, &item);
    item.next_to_end = std::exchange(*chain, &item);
  }
  if (!is_own) return;
  auto& step = static_cast<Step&>(running);
  step.left.store(true, std::memory_order_relaxed);
  ++steps_left_;
  if (!step.is_taken) return leave_line(step);
  if (!step.items().empty()) count_step(step, now);
  queue_.end_step(instance);
}

ErrorRecord Batcher::why_left(const Item& item, const ErrorRecord& stuck) noexcept {
  ErrorRecord why = stuck;
  why.code = item.outcome;
  const std::lock_guard lock(mutex_);
  if (item.outcome == over_as(item, instances_->host().now_ns())) {
    std::snprintf(why.message, sizeof why.message, "%.500s; %.500s", why_over(item, item.outcome).message,
                  stuck.message);
  }
  return why;
}

void Batcher::let_go_of_left(Item& item) noexcept {
  const Ref<Batcher> kept = Ref<Batcher>::share(this);
  {
    const std::lock_guard lock(mutex_);
    Item** at = &left_;
    while (*at != &item) at = &(*at)->next_left;
    *at = item.next_left;
    ++going_;
  }
  item.let_go();
  const std::lock_guard lock(mutex_);
  --going_;
}

// Called on the abandoned thread. The strategy may have been destroyed.
void Batcher::back(Step& step) noexcept {
  {
    const std::lock_guard lock(mutex_);
    step.next = std::exchange(idle_, &step);
    steps_out_.fetch_sub(1, std::memory_order_relaxed);
    --steps_left_;
  }
  release();
}

}  // namespace dist
