// SPDX-License-Identifier: Apache-2.0
// A pool of threads that a programmer would write for an empty dist_run(). Its threads wait like libdist's:
// they look 64 times, then yield, and sleep on a futex after 60 us. With more threads than CPUs, they yield
// after each look.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <thread>

#include "tests/bench/sides.hpp"

namespace bench {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void pause_this_thread() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A number that one thread publishes and others wait for.
class alignas(128) Signal {
 public:
  void publish(uint32_t number) {
    number_.store(number);
    if (sleepers_.load() != 0) call(FUTEX_WAKE_PRIVATE, INT_MAX);
  }
  // Waits for a number other than `seen`, and returns it.
  uint32_t await_other_than(uint32_t seen, int looks) {
    while (!spin(seen, looks)) {
      sleepers_.fetch_add(1);
      if (number_.load() == seen) call(FUTEX_WAIT_PRIVATE, seen);
      sleepers_.fetch_sub(1);
    }
    return number_.load();
  }

 private:
  static constexpr double kSpinUs = 60;

  bool spin(uint32_t seen, int looks) const {
    const double begin = now_us();
    do {
      for (int i = 0; i < looks; ++i) {
        if (number_.load(std::memory_order_acquire) != seen) return true;
        pause_this_thread();
      }
      sched_yield();
    } while (now_us() - begin < kSpinUs);
    return false;
  }
  void call(int what, uint32_t value) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&number_), what, value, nullptr, nullptr, 0);
  }

  std::atomic<uint32_t> number_{0};
  std::atomic<uint32_t> sleepers_{0};
};

class NaivePool final : public Side {
 public:
  NaivePool(int replicas, bool caller_works)
      : first_(caller_works ? 1 : 0),
        looks_(replicas + (caller_works ? 0 : 1) > static_cast<int>(usable_cpus().size()) ? 1 : 64),
        finished_(static_cast<size_t>(replicas)) {
    for (size_t i = first_; i < finished_.size(); ++i)
      threads_.emplace_back([this, i] { serve(finished_[i]); });
  }
  ~NaivePool() override {
    ends_.store(true);
    started_.publish(++runs_);
  }
  NaivePool(const NaivePool&) = delete;
  NaivePool& operator=(const NaivePool&) = delete;

  std::string name() const override { return "a pool of threads"; }
  void block(const Plan& plan, Samples& samples) override {
    caller_block(plan, samples, [this] { run([](void*) {}, nullptr); });
  }

 private:
  void run(void (*function)(void*), void* argument) {
    function_ = function;
    argument_ = argument;
    started_.publish(++runs_);
    if (first_ != 0) function(argument);
    for (size_t i = first_; i < finished_.size(); ++i) finished_[i].await_other_than(runs_ - 1, looks_);
  }
  void serve(Signal& finished) {
    for (uint32_t run = 0;;) {
      run = started_.await_other_than(run, looks_);
      if (ends_.load()) return;
      function_(argument_);
      finished.publish(run);
    }
  }

  const size_t first_;  // the first replica with its own thread
  const int looks_;
  Signal started_;
  void (*function_)(void*) = nullptr;
  void* argument_ = nullptr;
  std::atomic<bool> ends_{false};
  uint32_t runs_ = 0;
  std::vector<Signal> finished_;
  std::vector<std::jthread> threads_;
};

}  // namespace

std::unique_ptr<Side> naive_pool(int replicas, bool caller_works) {
  return std::make_unique<NaivePool>(replicas, caller_works);
}

}  // namespace bench
