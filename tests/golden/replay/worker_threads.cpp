// SPDX-License-Identifier: Apache-2.0
#include "worker_threads.hpp"

#include <thread>
#include <vector>

void golden_on_workers(std::size_t n, golden_worker_fn fn, void* user_data) {
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < n; ++worker) threads.emplace_back(fn, worker, user_data);
  for (std::thread& thread : threads) thread.join();
}
