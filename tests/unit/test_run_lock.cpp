// SPDX-License-Identifier: Apache-2.0
// core/run/run_lock.hpp: who owns the lock after it has been closed.
#include "core/run/run_lock.hpp"

#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

extern "C" {
#include <cmocka.h>
}
#undef fail

namespace dist {
namespace {

// Threads increment a plain number under the lock, some of them while the lock is being closed.
void threads_that_lock_a_closed_lock_exclude_each_other(void**) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 2000;
  RunLock lock;
  std::atomic<int> inside{0};
  std::atomic<bool> together{false};
  int64_t count = 0;
  const auto play = [&] {
    for (int i = 0; i < kTimes; ++i) {
      lock.lock();
      if (inside.fetch_add(1) != 0) together = true;
      ++count;
      if (i % 16 == 0) std::this_thread::yield();
      inside.fetch_sub(1);
      lock.unlock();
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(play);
  lock.close();
  for (std::thread& each : threads) each.join();
  assert_false(together);
  assert_int_equal(count, kThreads * kTimes);
  assert_true(lock.try_lock());
}

void one_that_may_give_up_is_refused(void**) {
  RunLock lock;
  lock.lock();
  lock.close();
  assert_true(lock.lock(Host{}, 0, nullptr) == RunLock::Wait::kClosed);
  assert_false(lock.try_lock());
  lock.unlock();
  assert_true(lock.try_lock());
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(threads_that_lock_a_closed_lock_exclude_each_other),
      cmocka_unit_test(one_that_may_give_up_is_refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
