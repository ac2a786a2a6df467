// SPDX-License-Identifier: Apache-2.0
// Knowing that one is in a forked child, without a system call: threads do not survive a fork, so a
// strategy's handle must give an error there and never wait.
#pragma once

#include <atomic>
#include <cstdint>

namespace dist {

// The number of the process that asks: a system call.
int64_t process_id() noexcept;

// Belongs to one strategy; reads as `forked` in every child forked after it was made.
class ForkGuard {
 public:
  ForkGuard() noexcept;
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  bool forked() const noexcept;

 private:
  std::atomic<uint32_t>* page_ = nullptr;  // the system wipes it in children; NULL: it cannot
  int64_t process_ = 0;                    // then the process's id is compared
};

}  // namespace dist
