// SPDX-License-Identifier: Apache-2.0
// Memory: the host's allocator as a std::pmr::memory_resource, and reference-counted objects that live in it.
//
// All memory that outlives a call is allocated here. Memory::allocate() throws std::bad_alloc if the host's
// allocator fails. Only the control plane may use functions that throw; the C ABI converts the exception to
// RESOURCE_EXHAUSTED.
//
// Invariant: every object holds a reference to its Memory, so a Memory is destroyed after the last object in
// it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory_resource>
#include <new>
#include <utility>

#include "core/base/os/fork.hpp"
#include "core/base/status.hpp"
#include "dist/types.h"

namespace dist {

// The maximum number of elements in an array of T: no object is larger than half of the address space.
template <class T>
constexpr std::size_t most_of() noexcept {
  return static_cast<std::size_t>(PTRDIFF_MAX) / sizeof(T);
}

class Memory;

// An intrusive pointer to a Counted object.
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  // Takes over the caller's reference.
  static Ref adopt(T* object) noexcept {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  // Adds a reference.
  static Ref share(T* object) noexcept {
    if (object != nullptr) object->retain();
    return adopt(object);
  }
  Ref(const Ref& other) noexcept : object_(other.object_) {
    if (object_ != nullptr) object_->retain();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->release();
  }
  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  // Transfers the reference to the caller.
  T* take() noexcept { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

// The host's allocator. It is destroyed after the last object in it, because each object holds a reference.
class Memory final : public std::pmr::memory_resource {
 public:
  // NULL functions select malloc and free. Returns NULL if the Memory itself cannot be allocated.
  static Memory* create(const dist_allocator& allocator) noexcept;

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept;

  // Returns NULL if no memory is left. For code that must not throw.
  void* try_allocate(std::size_t bytes, std::size_t align) noexcept;
  void free(void* memory, std::size_t bytes, std::size_t align) noexcept;

  // True in a child that was forked from the process that created this object. There, the objects in this
  // memory have no threads, and their mutexes may stay locked forever.
  bool forked() const noexcept { return fork_guard_.forked(); }

  // Number of bytes currently allocated, including the Memory itself.
  std::size_t held() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  explicit Memory(const dist_allocator& allocator) noexcept : allocator_(allocator) {}
  ~Memory() override = default;
  void* do_allocate(std::size_t bytes, std::size_t align) override;
  void do_deallocate(void* memory, std::size_t bytes, std::size_t align) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  dist_allocator allocator_;
  std::atomic<std::size_t> references_{1};
  std::atomic<std::size_t> held_{sizeof(Memory)};
  ForkGuard fork_guard_;
};

// Returns OK if the host's allocator has both functions or neither. `name` begins the message.
Status check_allocator(const dist_allocator& allocator, const char* name) noexcept;
// Validates the host's allocator and wraps it; all zero selects malloc() and free().
Status create_memory(const dist_allocator& allocator, const char* name, Ref<Memory>* out) noexcept;

// Base class of reference-counted objects in a Memory. Create them with make_counted().
class Counted {
 public:
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept;
  // Whether there is only one reference, so that its holder may modify the object.
  bool sole() const noexcept { return references_.load(std::memory_order_acquire) == 1; }
  Memory& memory() const noexcept { return *memory_; }

 protected:
  explicit Counted(Memory& memory) noexcept : memory_(&memory) {}
  virtual ~Counted() = default;

 private:
  template <class T, class... Arguments>
  friend Ref<T> make_counted(Memory& memory, Arguments&&... arguments);
  template <class T, class... Arguments>
  friend Ref<T> make_counted_with_room(Memory& memory, std::size_t room_bytes, Arguments&&... arguments);

  // `construct(place)` constructs a T at that address.
  template <class T, class Construct>
  static Ref<T> make(Memory& memory, std::size_t bytes, Construct&& construct) {
    void* place = memory.allocate(bytes, alignof(T));
    T* object;
    try {
      object = construct(place);
    } catch (...) {
      memory.deallocate(place, bytes, alignof(T));
      throw;
    }
    object->Counted::bytes_ = bytes;
    object->Counted::align_ = alignof(T);
    memory.retain();  // released after the object has been freed
    return Ref<T>::adopt(object);
  }

  std::atomic<std::size_t> references_{1};
  Memory* memory_;
  std::size_t bytes_ = 0;
  std::size_t align_ = 0;
};

// Creates a T(memory, arguments...) with one reference. Throws std::bad_alloc and whatever the constructor
// throws.
template <class T, class... Arguments>
Ref<T> make_counted(Memory& memory, Arguments&&... arguments) {
  return Counted::make<T>(memory, sizeof(T), [&](void* place) {
    return new (place) T(memory, std::forward<Arguments>(arguments)...);
  });
}

// Like make_counted(), with `room_bytes` of additional memory after the object, with the object's alignment.
template <class T, class... Arguments>
Ref<T> make_counted_with_room(Memory& memory, std::size_t room_bytes, Arguments&&... arguments) {
  return Counted::make<T>(memory, sizeof(T) + room_bytes, [&](void* place) {
    return new (place) T(memory, std::forward<Arguments>(arguments)...);
  });
}

}  // namespace dist
