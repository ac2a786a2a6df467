// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/fork.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace dist {

int64_t process_id() noexcept { return getpid(); }

ForkGuard::ForkGuard() noexcept : process_(process_id()) {
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, bytes, MADV_WIPEONFORK) != 0) {
    munmap(page, bytes);
    return;
  }
  page_ = new (page) std::atomic<uint32_t>(1);
}

ForkGuard::~ForkGuard() {
  if (page_ != nullptr) munmap(page_, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
}

bool ForkGuard::forked() const noexcept {
  if (page_ != nullptr) return page_->load(std::memory_order_relaxed) == 0;
  return process_id() != process_;
}

}  // namespace dist
