// SPDX-License-Identifier: Apache-2.0
#include "core/run/library_thread.hpp"

#include <utility>

namespace dist {

void LibraryThread::Life::end() noexcept {
  // The kernel lists the thread for some time after this; the new name keeps it out of the count of library
  // threads.
  name_this_thread("dist-end");
  if (fate.exchange(kEnded, std::memory_order_acq_rel) != kOrphan) return;
  Counted& kept = keeper;
  free();
  kept.release();
}

void LibraryThread::Life::free() noexcept {
  Memory& home = memory;
  const std::size_t size = bytes;
  const std::size_t alignment = align;
  this->~Life();
  home.free(this, size, alignment);
}

// The thread has ended, or was left alone and will free its own Life.
void LibraryThread::forget() noexcept {
  if (Life* const life = std::exchange(life_, nullptr); life != nullptr) life->free();
}

Status LibraryThread::start_thread(void* (*main)(void*), void* argument, const Settings& settings) noexcept {
  DIST_TRY(thread_.start(main, argument, settings.stack_bytes, settings.cpus));
  thread_.name(settings.name);
  if (settings.cpu >= 0) thread_.keep_on(settings.cpu);
  return kOk;
}

bool LibraryThread::leave_alone() noexcept {
  Counted& keeper = life_->keeper;
  keeper.retain();
  uint32_t owned = kOwned;
  if (!life_->fate.compare_exchange_strong(owned, kOrphan, std::memory_order_acq_rel)) {
    keeper.release();
    return false;
  }
  life_ = nullptr;
  thread_.detach();
  return true;
}

}  // namespace dist
