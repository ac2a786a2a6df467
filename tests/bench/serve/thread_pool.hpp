// SPDX-License-Identifier: Apache-2.0
// What a good programmer would write in twenty lines instead of dist_submit(): threads that take functions
// from a queue.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bench::serve {

class ThreadPool {
 public:
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
  void submit(std::function<void()> function) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(function));
    }
    changed_.notify_one();
  }

 private:
  void work() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [this] { return over_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const std::function<void()> function = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      function();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace bench::serve
