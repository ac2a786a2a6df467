// SPDX-License-Identifier: Apache-2.0
#include "core/async/places.hpp"

#include <new>

namespace dist {

Places::Places(Memory& memory, AsyncMemory& bound, Channel& owner, int members)
    : memory_(memory), bound_(bound), owner_(owner), members_(static_cast<std::size_t>(members)) {
  bound_.take_anyway(counted_bytes());
  try {
    front_ = make_chunk();
  } catch (...) {
    bound_.give_back(counted_bytes());
    throw;
  }
}

Places::~Places() {
  while (front_ != nullptr) {
    Chunk* const chunk = front_;
    front_ = chunk->next_.load(std::memory_order_relaxed);
    rest(chunk);
  }
  let_go_of_spares();
}

std::size_t Places::block_bytes() const noexcept {
  return sizeof(Chunk) + alignof(Place) + kPlaces * sizeof(Place) +
         kPlaces * members_ * (sizeof(Brought) + sizeof(CallDescriptor*));
}

// The caller must have accounted for the memory.
Places::Chunk* Places::make_chunk() {
  static_assert(alignof(Place) >= alignof(Brought) && sizeof(Place) % alignof(Brought) == 0);
  auto* const block = static_cast<std::byte*>(memory_.allocate(block_bytes(), alignof(Place)));
  auto* const chunk = new (block) Chunk();
  const std::size_t head = (sizeof(Chunk) + alignof(Place) - 1) / alignof(Place) * alignof(Place);
  const std::size_t entries = kPlaces * members_;
  chunk->members_ = members_;
  chunk->places_ = reinterpret_cast<Place*>(block + head);
  chunk->brought_ = reinterpret_cast<Brought*>(chunk->places_ + kPlaces);
  chunk->descriptors_ = reinterpret_cast<const CallDescriptor**>(chunk->brought_ + entries);
  for (uint32_t i = 0; i < kPlaces; ++i) new (&chunk->places_[i]) Place(owner_);
  for (std::size_t i = 0; i < entries; ++i) {
    new (&chunk->brought_[i]) Brought();
    chunk->descriptors_[i] = &chunk->brought_[i].descriptor;
  }
  ++chunks_;
  return chunk;
}

void Places::end_chunk(Chunk* chunk) noexcept {
  for (uint32_t i = 0; i < kPlaces; ++i) {
    bound_.give_back(chunk->places_[i].copied.load(std::memory_order_relaxed));
    chunk->places_[i].~Place();
  }
  for (std::size_t i = 0; i < kPlaces * members_; ++i) chunk->brought_[i].~Brought();
  memory_.free(chunk, block_bytes(), alignof(Place));
  bound_.give_back(counted_bytes());
  --chunks_;
}

// Gives a chunk its numbers. This works whatever numbers the chunk had before, because numbers wrap around.
void Places::set_first(Chunk& chunk, uint32_t first) noexcept {
  chunk.next_.store(nullptr, std::memory_order_relaxed);
  chunk.first_ = first;
  for (uint32_t i = 0; i < kPlaces; ++i) {
    chunk.places_[i].pack.reset(first + i - 1);
    for (std::size_t r = 0; r < members_; ++r) {
      chunk.brought(static_cast<int>(r), i).number.store(first + i - 1, std::memory_order_relaxed);
    }
  }
}

void Places::rest(Chunk* chunk) noexcept {
  chunk->next_.store(resting_, std::memory_order_relaxed);
  resting_ = chunk;
}

Places::Chunk* Places::begin_afresh(uint32_t latest) noexcept {
  for (Chunk* chunk = front_; chunk != nullptr;) {
    Chunk* const next = chunk->next_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < kPlaces; ++i)
      bound_.give_back(chunk->places_[i].copied.exchange(0, std::memory_order_relaxed));
    rest(chunk);
    chunk = next;
  }
  front_ = resting_;
  resting_ = front_->next_.load(std::memory_order_relaxed);
  set_first(*front_, latest);
  front_->places_[0].pack.reset(latest);
  return front_;
}

void Places::let_go_of_spares() noexcept {
  if (front_ != nullptr) rest_the_passed();
  while (resting_ != nullptr) {
    Chunk* const chunk = resting_;
    resting_ = chunk->next_.load(std::memory_order_relaxed);
    end_chunk(chunk);
  }
}

// Whether all collectives of the chunk are complete and every member has arrived in the next chunk. Then each
// member has returned from the calls that it made in this one.
bool Places::all_have_passed(Chunk& chunk) noexcept {
  Chunk* const next = chunk.next_.load(std::memory_order_relaxed);
  if (next == nullptr) return false;
  for (uint32_t i = 0; i < kPlaces; ++i) {
    if (!chunk.places_[i].pack.complete(chunk.first_ + i)) return false;
  }
  for (std::size_t r = 0; r < members_; ++r) {
    // acquire: makes visible what the member did before it arrived there.
    const uint32_t number =
        next->brought(static_cast<int>(r), next->first_).number.load(std::memory_order_acquire);
    if (number != next->first_) return false;
  }
  return true;
}

void Places::rest_the_passed() noexcept {
  while (all_have_passed(*front_)) {
    Chunk* const passed = front_;
    front_ = passed->next_.load(std::memory_order_relaxed);
    rest(passed);
  }
}

Places::Chunk* Places::after(Chunk& last, int rank, Work** out_oldest) {
  // acquire: makes the chunk's fields visible.
  if (Chunk* const there = last.next_.load(std::memory_order_acquire)) return there;
  const std::lock_guard lock(mutex_);
  if (Chunk* const there = last.next_.load(std::memory_order_relaxed)) return there;
  const uint32_t first = last.first_ + kPlaces;
  rest_the_passed();
  Chunk* chunk = resting_;
  if (chunk != nullptr) {
    resting_ = chunk->next_.load(std::memory_order_relaxed);
  } else {
    if (chunks_ < kLeastChunks) {
      bound_.take_anyway(counted_bytes());
    } else if (!bound_.take(counted_bytes())) {
      if ((*out_oldest = oldest_locked(rank, first)) != nullptr) return nullptr;
      // The work has completed meanwhile, so its memory is free for the next one.
      bound_.take_anyway(counted_bytes());
    }
    try {
      chunk = make_chunk();
    } catch (...) {
      bound_.give_back(counted_bytes());
      throw;
    }
  }
  set_first(*chunk, first);
  last.next_.store(chunk, std::memory_order_release);
  return chunk;
}

Work* Places::oldest(int rank, uint32_t below) noexcept {
  const std::lock_guard lock(mutex_);
  rest_the_passed();
  return oldest_locked(rank, below);
}

Work* Places::oldest_locked(int rank, uint32_t below) noexcept {
  for (Chunk* chunk = front_; chunk != nullptr; chunk = chunk->next_.load(std::memory_order_relaxed)) {
    for (uint32_t number = chunk->first_; number != chunk->first_ + kPlaces; ++number) {
      if (number == below) return nullptr;
      if (!chunk->place(number).pack.complete(number)) return chunk->brought(rank, number).work;
    }
  }
  return nullptr;
}

}  // namespace dist
