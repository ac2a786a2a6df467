// SPDX-License-Identifier: Apache-2.0
// Crossings: all asynchronous and planned collectives of a strategy that are in flight between workers. Every
// thread that waits calls advance(), whatever it waits for. When a message arrives, oneTBB's threads call it
// too, if there are any, so collectives also make progress while the replicas compute.
#pragma once

#include <atomic>
#include <mutex>

#include "core/base/arena.hpp"
#include "core/base/intrusive_list.hpp"
#include "core/comm/group.hpp"
#include "core/comm/worker_communicator.hpp"

namespace dist {

class Crossings final : public BackgroundWork {
 public:
  // Something that advances in steps. Its functions are called under the lock.
  class Item : private ListLink<Crossings> {
   public:
    explicit Item(Group& group) noexcept : group_(group) {}
    Item(const Item&) = delete;
    Item& operator=(const Item&) = delete;
    Group& group() const noexcept { return group_; }

    // Advances as far as possible. Returns false if there is nothing to do for now.
    virtual bool go_on() noexcept = 0;
    // Called when the group is aborted. Afterwards nothing touches its members' tensors.
    virtual void stop() noexcept = 0;

   protected:
    virtual ~Item() = default;

   private:
    friend class Crossings;
    friend class IntrusiveList<Item, Crossings>;
    Group& group_;
  };

  // `helpers`: where oneTBB's threads run; NULL: there are none.
  explicit Crossings(Arena* helpers) noexcept : helpers_(helpers) {}
  // Waits for late tasks, which still look for items.
  ~Crossings() {
    if (helpers_ != nullptr) helpers_->wait_for_tasks();
  }
  Crossings(const Crossings&) = delete;
  Crossings& operator=(const Crossings&) = delete;

  // Does not wait for the lock: if another thread holds it, that thread does the work.
  void advance() noexcept override;
  void wake() noexcept override;

  // Calls change(), which gives the item something to do, and advances it.
  template <class Change>
  void begin(Item& item, Change&& change) noexcept {
    const std::lock_guard lock(mutex_);
    change();
    // Add the item before looking for messages: a message that arrives afterwards finds the item and wakes
    // its waiters.
    add(item);
    if (!item.go_on()) remove(item);
  }
  // Calls look() under the lock.
  template <class Look>
  void with_lock(Look&& look) noexcept {
    const std::lock_guard lock(mutex_);
    look();
  }
  // Called when the group is aborted. Afterwards nothing in these crossings touches its members' tensors.
  void stop(const Group& group) noexcept;
  // Removes an item that will not be used any more.
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
  IntrusiveList<Item, Crossings> items_;
  // seq_cst, with the fence in wake(): either a thread that adds an item sees that a message has arrived, or
  // the thread that announces the message sees the item. relaxed suffices to check whether there is an item
  // at all.
  std::atomic<int> listed_{0};
  std::atomic<bool> called_{false};  // a task has been submitted
};

}  // namespace dist
