// SPDX-License-Identifier: Apache-2.0
// Lets the host cancel runs, requests and collectives from any thread.
//
// A Cancel holds a list of links. Each cancellable operation inserts its link for as long as it can be
// cancelled; signal() calls cancelled() on every link in the list.
//
// Invariant: a signal is delivered, and a link is removed, under the same mutex. So a signal never reaches an
// operation whose link has been removed, and a link may be destroyed as soon as it has been removed.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/intrusive_list.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

class Cancel final : public Counted {
 public:
  // An operation that a signal ends. The link is a member of the operation, so inserting it allocates no
  // memory.
  class Link : private ListLink<Cancel> {
   public:
    Link() noexcept = default;
    virtual ~Link() = default;
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    // Called on the thread that signals, with the mutex held, so no link can be removed meanwhile. It must
    // not call the host or any function of this Cancel.
    virtual void cancelled(const char* reason) noexcept = 0;

   private:
    friend class Cancel;
    friend class IntrusiveList<Link, Cancel>;
  };

  explicit Cancel(Memory& memory) noexcept;

  // Ends all operations that are linked now. Operations that start later find the object signalled. Further
  // signals have no effect.
  void signal(const char* reason) noexcept;
  bool signalled() const noexcept { return signalled_.load(std::memory_order_acquire); }
  // Valid once signalled() is true.
  const char* reason() const noexcept { return reason_; }

  // Returns false, without adding the link, if the object is already signalled.
  bool add(Link& link) noexcept;
  // Waits for a signal that is being delivered. After this call, the link is not accessed any more.
  void remove(Link& link) noexcept;

  // True in a forked child, which must not lock the mutex: another thread may have held it during the fork.
  bool forked() const noexcept;

 private:
  const int64_t process_;
  std::mutex mutex_;  // protects the list; held during delivery, so that remove() waits for it
  IntrusiveList<Link, Cancel> links_;
  std::atomic<bool> signalled_{false};
  char reason_[kReasonBytes] = "";
};

// Keeps a link inserted for the duration of a scope. If the Cancel is NULL, no signal is possible.
class CancelScope {
 public:
  CancelScope(Cancel* cancel, Cancel::Link& link) noexcept
      : cancel_(Ref<Cancel>::share(cancel)), link_(link) {
    if (cancel_) late_ = !cancel_->add(link);
  }
  ~CancelScope() {
    if (cancel_ && !late_) cancel_->remove(link_);
  }
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

  // Whether the object was signalled before the scope began, in which case the link was not inserted.
  bool late() const noexcept { return late_; }

 private:
  const Ref<Cancel> cancel_;  // the host may release its own reference meanwhile
  Cancel::Link& link_;
  bool late_ = false;
};

}  // namespace dist
