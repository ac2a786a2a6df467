// SPDX-License-Identifier: Apache-2.0
#include "core/base/executor.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <stdexcept>
#include <utility>

#include "core/base/host_call.hpp"
#include "core/base/os/park.hpp"
#include "core/base/os/thread.hpp"

namespace dist {
namespace {

// One loop. Its caller and each accepted task hold a reference. A task that starts after the loop has ended
// detects that here.
class Loop final : public Counted {
 public:
  Loop(Memory& memory, int64_t begin, uint64_t n, uint64_t parts, Executor::Part part,
       const void* context) noexcept
      : Counted(memory), begin_(begin), n_(n), parts_(parts), part_(part), context_(context) {}

  // Takes parts until none are left. Each of `parts` has n / parts iterations, or one more.
  void work() {
    for (;;) {
      // relaxed: only the number is shared; the parts' input was written before the loop.
      const uint64_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= parts_) return;
      part_(begin_of(i), begin_of(i + 1), context_);
    }
  }

  // Called by a helper.
  void help() {
    uint32_t inside = inside_.load(std::memory_order_relaxed);
    do {
      if ((inside & kOver) != 0) return;
      // acquire: pairs with the release of the loop's caller; the host's executor may not provide this order.
    } while (!inside_.compare_exchange_weak(inside, inside + kOne, std::memory_order_acquire,
                                            std::memory_order_relaxed));
    struct Leaving {
      ~Leaving() { loop.leave(); }
      Loop& loop;
    } const leaving{*this};
    try {
      work();
    } catch (abi::__forced_unwind&) {
      keep(std::make_exception_ptr(std::runtime_error("an executor thread ended inside a part of the loop")));
      throw;
    } catch (...) {
      keep(std::current_exception());
    }
  }

  // Called by the caller when no parts are left. Afterwards no helper can begin a part, and those inside one
  // have returned.
  void await_helpers() noexcept {
    uint32_t inside = inside_.fetch_or(kOver, std::memory_order_acq_rel) | kOver;
    for (int looks = 0; inside != kOver; inside = inside_.load(std::memory_order_acquire)) {
      if (++looks < kLooks) {
        yield_this_thread();
      } else {
        park(inside_, inside, -1);
      }
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static constexpr uint32_t kOver = 1;
  static constexpr uint32_t kOne = 2;
  static constexpr int kLooks = 100;

  int64_t begin_of(uint64_t i) const noexcept {
    return static_cast<int64_t>(static_cast<uint64_t>(begin_) + n_ / parts_ * i + std::min(i, n_ % parts_));
  }

  void leave() noexcept {
    // release: publishes the parts' results. The wake-up uses only the address.
    const uint32_t before = inside_.fetch_sub(kOne, std::memory_order_acq_rel);
    if ((before & kOver) != 0) unpark_all(inside_);
  }

  void keep(std::exception_ptr failure) noexcept {
    bool first = false;
    if (failed_.compare_exchange_strong(first, true, std::memory_order_relaxed))
      failure_ = std::move(failure);
    next_.store(parts_, std::memory_order_relaxed);
  }

  const int64_t begin_;
  const uint64_t n_;
  const uint64_t parts_;
  const Executor::Part part_;
  const void* const context_;
  std::atomic<uint64_t> next_{0};
  std::atomic<uint32_t> inside_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

void help(void* loop) {
  const Ref<Loop> mine = Ref<Loop>::adopt(static_cast<Loop*>(loop));
  mine->help();
}

// There are more parts than threads, so that a thread that finishes early can take work from a late one.
constexpr uint64_t kPartsEach = 8;

}  // namespace

void Executor::parallel_for(Memory& memory, int64_t begin, uint64_t n, uint64_t grain, Part part,
                            const void* context) const {
  const auto helpers = static_cast<uint64_t>(num_threads);
  const uint64_t parts = std::min(n / grain, kPartsEach * (helpers + 1));
  const Ref<Loop> loop = make_counted<Loop>(memory, begin, n, parts, part, context);
  struct Awaiting {
    ~Awaiting() { loop.await_helpers(); }
    Loop& loop;
  };
  {
    const Awaiting awaiting{*loop};
    for (uint64_t i = 0; i < std::min(helpers, parts - 1); ++i) {
      loop->retain();
      int32_t taken = -1;
      if (survived([&] { taken = execute(help, loop.get(), user_data); }) && taken == 0) continue;
      loop->release();
      break;
    }
    loop->work();
  }
  loop->rethrow();
}

}  // namespace dist
