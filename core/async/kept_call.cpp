// SPDX-License-Identifier: Apache-2.0
#include "core/async/kept_call.hpp"

#include <algorithm>
#include <utility>

namespace dist {
namespace {

// Allocates parts of a buffer, each aligned to 8 bytes.
class Cursor {
 public:
  explicit Cursor(uint64_t* at) noexcept : at_(at) {}
  template <class T>
  const T* copy(const T* from, std::size_t n) noexcept {
    if (from == nullptr) return nullptr;
    auto* to = reinterpret_cast<T*>(at_);
    std::copy_n(from, n, to);
    at_ += (n * sizeof(T) + 7) / 8;
    return to;
  }
  uint64_t* take(std::size_t words) noexcept { return std::exchange(at_, at_ + words); }

 private:
  uint64_t* at_;
};

std::size_t bytes_of(const dist_tensor* tensors, std::size_t n) noexcept {
  if (tensors == nullptr) return 0;
  std::size_t bytes = n * sizeof(dist_tensor);
  for (std::size_t t = 0; t < n; ++t)
    bytes += 2 * sizeof(int64_t) * static_cast<std::size_t>(tensors[t].ndim);
  return bytes;
}

const dist_tensor* copy_tensors(Cursor& cursor, const dist_tensor* tensors, std::size_t n) noexcept {
  if (tensors == nullptr) return nullptr;
  auto* copies = const_cast<dist_tensor*>(cursor.copy(tensors, n));
  for (std::size_t t = 0; t < n; ++t) {
    const auto ndim = static_cast<std::size_t>(tensors[t].ndim);
    copies[t].shape = cursor.copy(tensors[t].shape, ndim);
    copies[t].strides = cursor.copy(tensors[t].strides, ndim);
  }
  return copies;
}

}  // namespace

std::size_t kept_words(const Call& call, int members) noexcept {
  return (bytes_of(call.in, call.n * call.lists()) + bytes_of(call.out, call.n)) / 8 +
         (call.weights == nullptr ? 0 : call.lists()) +
         (call.splits == nullptr ? 0 : static_cast<std::size_t>(members) + 1);
}

Call kept_in(uint64_t* place, const Call& call, int members) noexcept {
  Cursor cursor(place);
  Call kept = call;
  kept.in = copy_tensors(cursor, call.in, call.n * call.lists());
  kept.out = copy_tensors(cursor, call.out, call.n);
  kept.weights = cursor.copy(call.weights, call.lists());
  if (call.splits != nullptr)
    kept.offset_splits(reinterpret_cast<int64_t*>(cursor.take(static_cast<std::size_t>(members) + 1)),
                       members);
  kept.splits = nullptr;
  return kept;
}

void KeptCall::keep(const Call& call, int members) {
  place_.resize(kept_words(call, members));
  call_ = kept_in(place_.data(), call, members);
}

}  // namespace dist
