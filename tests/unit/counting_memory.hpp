// SPDX-License-Identifier: Apache-2.0
// A host allocator for tests: it counts outstanding memory, checks what is freed, and can reject the k-th
// request.
#pragma once

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/memory.hpp"

namespace dist {

class CountingMemory {
 public:
  CountingMemory() : memory_(Memory::create({allocate, give_back, this})) {}
  ~CountingMemory() {
    if (memory_ != nullptr) memory_->release();
  }
  CountingMemory(const CountingMemory&) = delete;
  CountingMemory& operator=(const CountingMemory&) = delete;

  Memory& operator*() noexcept { return *memory_; }
  // Returns the outstanding bytes, without those of the Memory object itself.
  std::size_t live() {
    const std::scoped_lock lock(mutex_);
    return blocks_.size() - 1;
  }
  // Returns the number of blocks that were freed twice, or with a size or alignment other than they were
  // allocated with.
  int mistakes() const noexcept { return mistakes_; }
  // Refuses request number k from now (0 = the next one) once. A negative k refuses none.
  void refuse(long k) noexcept { countdown_ = k; }
  bool refused() const noexcept { return refused_.exchange(false); }

 private:
  static void* allocate(std::size_t bytes, std::size_t align, void* self) {
    auto& memory = *static_cast<CountingMemory*>(self);
    const std::scoped_lock lock(memory.mutex_);
    if (memory.countdown_ >= 0 && memory.countdown_-- == 0) {
      memory.refused_ = true;
      return nullptr;
    }
    void* block = nullptr;
    if (posix_memalign(&block, align < sizeof(void*) ? sizeof(void*) : align, bytes) != 0) return nullptr;
    memory.blocks_[block] = {bytes, align};
    return block;
  }
  static void give_back(void* block, std::size_t bytes, std::size_t align, void* self) {
    auto& memory = *static_cast<CountingMemory*>(self);
    const std::scoped_lock lock(memory.mutex_);
    const auto at = memory.blocks_.find(block);
    if (at == memory.blocks_.end()) {
      ++memory.mistakes_;
      return;
    }
    if (at->second != std::pair(bytes, align)) ++memory.mistakes_;
    memory.blocks_.erase(at);
    std::free(block);
  }

  std::mutex mutex_;
  std::map<void*, std::pair<std::size_t, std::size_t>> blocks_;
  long countdown_ = -1;
  mutable std::atomic<bool> refused_{false};
  std::atomic<int> mistakes_{0};
  Memory* memory_;
};

}  // namespace dist
