// SPDX-License-Identifier: Apache-2.0
#include "core/base/memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "core/base/host_call.hpp"

namespace dist {
namespace {

void* system_alloc(std::size_t bytes, std::size_t align, void*) {
  // malloc() serves small blocks from a cache; aligned allocations are more expensive.
  if (align <= alignof(std::max_align_t)) return std::malloc(bytes);
  void* memory = nullptr;
  return posix_memalign(&memory, std::max(align, sizeof(void*)), bytes) == 0 ? memory : nullptr;
}

void system_free(void* memory, std::size_t, std::size_t, void*) { std::free(memory); }

// An allocator that throws is treated like one that returns NULL.
void* call_alloc(const dist_allocator& allocator, std::size_t bytes, std::size_t align) noexcept {
  void* memory = nullptr;
  if (allocator.alloc == system_alloc) {
    memory = system_alloc(bytes, align, nullptr);
  } else {
    const HostCall inside("an allocator", HostCall::Refuses::kCalls);
    (void)survived([&] { memory = allocator.alloc(bytes, align, allocator.user_data); });
  }
  if (memory == nullptr) block_refused(bytes);
  return memory;
}

void call_free(const dist_allocator& allocator, void* memory, std::size_t bytes, std::size_t align) noexcept {
  if (allocator.free == system_free) return system_free(memory, bytes, align, nullptr);
  const HostCall inside("an allocator", HostCall::Refuses::kCalls);
  (void)survived([&] { allocator.free(memory, bytes, align, allocator.user_data); });
}

}  // namespace

Memory* Memory::create(const dist_allocator& allocator) noexcept {
  dist_allocator chosen = allocator;
  if (chosen.alloc == nullptr) chosen = {system_alloc, system_free, nullptr};
  void* place = call_alloc(chosen, sizeof(Memory), alignof(Memory));
  return place == nullptr ? nullptr : new (place) Memory(chosen);
}

Status check_allocator(const dist_allocator& allocator, const char* name) noexcept {
  if ((allocator.alloc == nullptr) == (allocator.free == nullptr)) return kOk;
  return invalid_argument("%s: only one of alloc and free is set. Set both or neither.", name);
}

Status create_memory(const dist_allocator& allocator, const char* name, Ref<Memory>* out) noexcept {
  DIST_TRY(check_allocator(allocator, name));
  *out = Ref<Memory>::adopt(Memory::create(allocator));
  return *out ? kOk : out_of_memory();
}

void Memory::release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const dist_allocator allocator = allocator_;
  this->~Memory();
  call_free(allocator, this, sizeof(Memory), alignof(Memory));
}

void* Memory::try_allocate(std::size_t bytes, std::size_t align) noexcept {
  void* memory = call_alloc(allocator_, std::max<std::size_t>(bytes, 1), align);
  if (memory != nullptr) held_.fetch_add(bytes, std::memory_order_relaxed);
  return memory;
}

void Memory::free(void* memory, std::size_t bytes, std::size_t align) noexcept {
  if (memory == nullptr) return;
  held_.fetch_sub(bytes, std::memory_order_relaxed);
  call_free(allocator_, memory, std::max<std::size_t>(bytes, 1), align);
}

void* Memory::do_allocate(std::size_t bytes, std::size_t align) {
  void* memory = try_allocate(bytes, align);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void Memory::do_deallocate(void* memory, std::size_t bytes, std::size_t align) { free(memory, bytes, align); }

void Counted::release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Memory* memory = memory_;
  const std::size_t bytes = bytes_;
  const std::size_t align = align_;
  void* place = dynamic_cast<void*>(this);  // where the whole object begins
  this->~Counted();
  memory->free(place, bytes, align);
  memory->release();
}

}  // namespace dist
