// SPDX-License-Identifier: Apache-2.0
#include "core/value/elements.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/tensor.hpp"

namespace dist {
namespace {

constexpr std::size_t kWords = 512;  // number of words processed at a time
constexpr std::size_t kChunkBytes = kWords * sizeof(uint64_t);

// Replaces every NaN by the same NaN. The bits of a NaN without its sign exceed those of infinity.
template <class T>
void join_nans(std::byte* elements, std::size_t bytes, T infinity) noexcept {
  constexpr T kAllButSign = static_cast<T>(~T{0}) >> 1;
  for (std::size_t i = 0; i < bytes; i += sizeof(T)) {
    T element;
    std::memcpy(&element, elements + i, sizeof element);
    if (static_cast<T>(element & kAllButSign) > infinity) element = kAllButSign;
    std::memcpy(elements + i, &element, sizeof element);
  }
}

// Gives equal elements equal bits.
void make_plain(dist_dtype dtype, std::byte* elements, std::size_t bytes) noexcept {
  switch (dtype) {
    case DIST_F16: return join_nans<uint16_t>(elements, bytes, 0x7C00);
    case DIST_BF16: return join_nans<uint16_t>(elements, bytes, 0x7F80);
    case DIST_F32:
    case DIST_COMPLEX64: return join_nans<uint32_t>(elements, bytes, 0x7F80'0000);
    case DIST_F64: return join_nans<uint64_t>(elements, bytes, 0x7FF0'0000'0000'0000);
    case DIST_BOOL:
      std::transform(elements, elements + bytes, elements,
                     [](std::byte b) { return b == std::byte{0} ? std::byte{0} : std::byte{1}; });
      return;
    default: return;
  }
}

// Mixes words like MurmurHash3 (public domain). Each step is invertible, so changing one word always changes
// the digest.
class Digest {
 public:
  void add(uint64_t word) noexcept {
    word = std::rotl(word * 0x87C3'7B91'1142'53D5, 31) * 0x4CF5'AD43'2745'937F;
    state_ = std::rotl(state_ ^ word, 27) * 5 + 0x52DC'E729;
  }
  uint64_t get() const noexcept {
    uint64_t mixed = (state_ ^ (state_ >> 33)) * 0xFF51'AFD7'ED55'8CCD;
    mixed = (mixed ^ (mixed >> 33)) * 0xC4CE'B9FE'1A85'EC53;
    return mixed ^ (mixed >> 33);
  }

 private:
  uint64_t state_ = 0;
};

}  // namespace

bool same_element(dist_dtype dtype, const std::byte* a, const std::byte* b) noexcept {
  const std::size_t bytes = dtype_size(dtype);
  if (std::memcmp(a, b, bytes) == 0) return true;
  std::byte plain[2][sizeof(uint64_t)];
  std::memcpy(plain[0], a, bytes);
  std::memcpy(plain[1], b, bytes);
  for (std::byte* each : plain) make_plain(dtype, each, bytes);
  return std::memcmp(plain[0], plain[1], bytes) == 0;
}

uint64_t digest_elements(dist_dtype dtype, const std::byte* elements, int64_t count) noexcept {
  std::size_t left = static_cast<std::size_t>(count) * dtype_size(dtype);
  Digest digest;
  while (left != 0) {
    const std::size_t bytes = std::min(left, kChunkBytes);
    uint64_t words[kWords];
    words[(bytes - 1) / sizeof(uint64_t)] = 0;
    std::memcpy(words, elements, bytes);
    make_plain(dtype, reinterpret_cast<std::byte*>(words), bytes);
    for (std::size_t i = 0; i * sizeof(uint64_t) < bytes; ++i) digest.add(words[i]);
    elements += bytes;
    left -= bytes;
  }
  return digest.get();
}

}  // namespace dist
