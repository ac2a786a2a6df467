// SPDX-License-Identifier: Apache-2.0
// Crossings: all asynchronous and planned collectives of a strategy that are in flight between workers. A
// thread that waits for anything calls advance(). When a message arrives, oneTBB's threads call it too, if
// there are any, so collectives also make progress while the replicas compute.
#pragma once

#include <atomic>
#include <mutex>

#include "core/base/arena.hpp"
#include "core/comm/group.hpp"
#include "core/comm/workers.hpp"

namespace dist {

class Crossings final : public BackgroundWork {
 public:
  // Something that goes on in steps. What it does is under the lock.
  class Item {
   public:
    explicit Item(Group& group) noexcept : group_(group) {}
    Item(const Item&) = delete;
    Item& operator=(const Item&) = delete;
    Group& group() const noexcept { return group_; }

    // As far as it can; false: there is nothing to do for now.
    virtual bool go_on() noexcept = 0;
    // The group is poisoned: afterwards nothing touches its members' tensors.
    virtual void stop() noexcept = 0;

   protected:
    virtual ~Item() = default;

   private:
    friend class Crossings;
    Group& group_;
    Item* next_ = nullptr;
    Item* before_ = nullptr;
    bool listed_ = false;
  };

  // `helpers`: where oneTBB's threads are; NULL: there are none.
  explicit Crossings(Arena* helpers) noexcept : helpers_(helpers) {}
  // Tasks that are late look for items.
  ~Crossings() {
    if (helpers_ != nullptr) helpers_->wait_for_tasks();
  }
  Crossings(const Crossings&) = delete;
  Crossings& operator=(const Crossings&) = delete;

  // Waits for nobody: what another thread is busy with is left to it.
  void advance() noexcept override;
  void wake() noexcept override;

  // Calls change(), which gives the item something to do, and goes on with it.
  template <class Change>
  void begin(Item& item, Change&& change) noexcept {
    const std::lock_guard lock(mutex_);
    change();
    // Before the look at what has come: what comes after it finds the item, and wakes.
    add(item);
    if (!item.go_on()) remove(item);
  }
  // Calls look() under the lock.
  template <class Look>
  void with_lock(Look&& look) noexcept {
    const std::lock_guard lock(mutex_);
    look();
  }
  // The group is poisoned, and its members' tensors are to be let go.
  void stop(const Group& group) noexcept;
  // The item is not used any more.
  void end(Item& item) noexcept {
    const std::lock_guard lock(mutex_);
    remove(item);
  }

 private:
  static void run_task(void* crossings, uint32_t) noexcept;
  void add(Item& item) noexcept;
  void remove(Item& item) noexcept;
  void go_on() noexcept;

  Arena* const helpers_;
  std::mutex mutex_;
  Item* first_ = nullptr;
  // seq_cst, with the fence in wake(): either who adds an item sees that a message has come, or who tells of the message
  // sees that there is an item. relaxed where somebody only asks whether there is any.
  std::atomic<int> listed_{0};
  std::atomic<bool> called_{false};  // a task is on its way
};

}  // namespace dist
