// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/barrier.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dist {

bool enable_asymmetric_barriers() noexcept {
#if defined(__SANITIZE_THREAD__)
  return false;  // the sanitizer knows C++'s barriers only
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
  return false;
#else
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
#endif
#else
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
#endif
}

void rare_barrier() noexcept { syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); }

}  // namespace dist
