// SPDX-License-Identifier: Apache-2.0
// Lets the host cancel runs, requests and collectives from any thread.
//
// A Cancel holds a list of links. Each cancellable operation inserts its link for as long as it can be
// cancelled; signal() calls deliver() on every link of the list.
//
// Invariant: delivery and removal of a link take the same mutex. So a signal never reaches an operation whose
// link has been removed, and a link may be destroyed as soon as it has been removed.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"

namespace dist {

class Cancel final : public Counted {
 public:
  // What a signal ends. A link is a member of what is under way, so that adding one takes no memory.
  class Link {
   public:
    Link() noexcept = default;
    virtual ~Link() = default;
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    // Called on the thread that signals; nobody can remove the link meanwhile. It must not call the host, nor
    // anything of this Cancel.
    virtual void cancelled(const char* reason) noexcept = 0;

   private:
    friend class Cancel;
    Link* next_ = nullptr;
    Link* previous_ = nullptr;
    bool added_ = false;
  };

  explicit Cancel(Memory& memory) noexcept;

  // Ends what is linked now; what begins later finds the object signalled. A second signal changes nothing.
  void signal(const char* reason) noexcept;
  bool signalled() const noexcept { return signalled_.load(std::memory_order_acquire); }
  // Once it is signalled.
  const char* reason() const noexcept { return reason_; }

  // False: it is signalled already, and the link is not added.
  bool add(Link& link) noexcept;
  // Waits for a signal that is being delivered. Afterwards the link is not touched any more.
  void remove(Link& link) noexcept;

  // A forked child must not touch the mutex, which another thread may have held.
  bool forked() const noexcept;

 private:
  const int64_t process_;
  std::mutex mutex_;  // of the list; a signal is delivered under it, so that removing waits for that
  Link* first_ = nullptr;
  std::atomic<bool> signalled_{false};
  char reason_[kReasonBytes] = "";
};

// A link for as long as a scope lasts. The Cancel may be NULL: then nothing can signal.
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

  // Whether it was signalled before, so that nothing was linked.
  bool late() const noexcept { return late_; }

 private:
  const Ref<Cancel> cancel_;  // the host may let go of it meanwhile
  Cancel::Link& link_;
  bool late_ = false;
};

}  // namespace dist
