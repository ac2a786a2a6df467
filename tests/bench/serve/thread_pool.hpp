// SPDX-License-Identifier: Apache-2.0
// The floor for dist_submit(): threads that take functions from a queue with a mutex and a condition
// variable. An idle thread spins for 60 us before it sleeps, like an instance.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace bench::serve {

class ThreadPool {
 public:
  using Function = void (*)(void* data);

  explicit ThreadPool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~ThreadPool() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    for (std::thread& each : threads_) each.join();
  }
  void submit(Function function, void* data) {
    bool wakes = false;
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back({function, data});
      queued_.store(queue_.size(), std::memory_order_relaxed);
      wakes = sleepers_ > 0;
    }
    if (wakes) changed_.notify_one();
  }

 private:
  struct Call {
    Function function;
    void* data;
  };

  void work() {
    for (std::unique_lock lock(mutex_);;) {
      if (queue_.empty() && !over_) {
        lock.unlock();
        spin();
        lock.lock();
        ++sleepers_;
        changed_.wait(lock, [this] { return over_ || !queue_.empty(); });
        --sleepers_;
      }
      if (queue_.empty()) return;
      const Call call = queue_.front();
      queue_.pop_front();
      queued_.store(queue_.size(), std::memory_order_relaxed);
      lock.unlock();
      call.function(call.data);
      lock.lock();
    }
  }

  void spin() const {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::microseconds(60);
    do {
      for (int i = 0; i < 32; ++i) {
        if (queued_.load(std::memory_order_relaxed) != 0) return;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
    } while (Clock::now() < end);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> queue_;
  std::atomic<std::size_t> queued_{0};  // for spinning threads
  int sleepers_ = 0;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace bench::serve
