// SPDX-License-Identifier: Apache-2.0
#include "core/net/mpi/frame.hpp"

#include <cstdlib>
#include <new>

namespace dist::mpi_link {
namespace {

constexpr int kMostKept = 16;
constexpr std::size_t kSmall = std::size_t{64} << 10;  // frames of up to this size are not kept

// Never destroyed, because frames may be freed while the process exits.
struct Kept {
  std::mutex mutex;
  Frame* first = nullptr;
  int size = 0;
};
Kept& kept() noexcept {
  static auto& all = *new Kept;
  return all;
}

}  // namespace

FrameRef make_frame(std::size_t bytes) noexcept {
  const std::size_t capacity = bytes <= kSmall ? bytes : kMostData;
  if (capacity == kMostData) {
    Kept& all = kept();
    const std::scoped_lock lock(all.mutex);
    if (all.first != nullptr) {
      FrameRef taken(all.first);
      all.first = std::exchange(taken->next, nullptr);
      --all.size;
      taken->request = MPI_REQUEST_NULL;
      taken->head = {};
      taken->bytes = bytes;
      return taken;
    }
  }
  void* const memory = std::malloc(sizeof(Frame) + capacity);
  if (memory == nullptr) return nullptr;
  FrameRef made(new (memory) Frame);
  made->capacity = capacity;
  made->bytes = bytes;
  return made;
}

void FrameFree::operator()(Frame* frame) const noexcept {
  if (frame->capacity == kMostData) {
    Kept& all = kept();
    const std::scoped_lock lock(all.mutex);
    if (all.size < kMostKept) {
      frame->next = all.first;
      all.first = frame;
      ++all.size;
      return;
    }
  }
  std::free(frame);
}

}  // namespace dist::mpi_link
