// SPDX-License-Identifier: Apache-2.0
// A tensor repeats a pattern whose length is a prime number. Resetting and checking 64 MiB then read memory
// only once, and the pattern's period does not coincide with the chunks of any implementation.
#include "tests/bench/data.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>

namespace bench {
namespace {

constexpr size_t kPeriod = 65521;  // elements

// Converts the bits, because not all C++20 compilers have 16-bit floats.
float load(const unsigned char* from, dist_dtype dtype) {
  uint32_t bits = 0;
  std::memcpy(&bits, from, dtype == DIST_F32 ? 4 : 2);
  if (dtype == DIST_F32) return std::bit_cast<float>(bits);
  if (dtype == DIST_BF16) return std::bit_cast<float>(bits << 16);
  const float sign = (bits & 0x8000u) != 0 ? -1.0f : 1.0f;
  return sign *
         std::ldexp(static_cast<float>((bits & 0x3ffu) | 0x400u), static_cast<int>(bits >> 10 & 31u) - 25);
}

// Rounds to nearest even. Only for normal numbers within the range, which the patterns and their sums are.
void store(unsigned char* to, dist_dtype dtype, float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t dropped = dtype == DIST_F32 ? 0u : dtype == DIST_BF16 ? 16u : 13u;
  if (dropped != 0) bits += (1u << (dropped - 1)) - 1 + (bits >> dropped & 1u);
  if (dtype == DIST_BF16) bits >>= 16;
  if (dtype == DIST_F16) bits = (bits >> 16 & 0x8000u) | (((bits & 0x7fffffffu) >> 13) - (112u << 10));
  std::memcpy(to, &bits, dtype == DIST_F32 ? 4 : 2);
}

// The whole tensor repeats the pattern.
template <class Visit>
void each_piece(size_t bytes, size_t period_bytes, Visit visit) {
  for (size_t at = 0; at < bytes; at += period_bytes) visit(at, std::min(period_bytes, bytes - at));
}

}  // namespace

const char* layout_name(Layout layout) {
  switch (layout) {
    case Layout::kInPlace: return "in place";
    case Layout::kOutOfPlace: return "out of place";
    case Layout::kOneOutput: return "one output";
  }
  return "?";
}

const char* dtype_name(dist_dtype dtype) {
  return dtype == DIST_F32 ? "f32" : dtype == DIST_BF16 ? "bf16" : dtype == DIST_F16 ? "f16" : "-";
}

void Free::operator()(void* memory) const { std::free(memory); }

Buffer allocate(size_t bytes) {
  // malloc() may put buffers next to each other, so that the last cache line of one is the first of the next.
  constexpr size_t kApart = 128;
  void* memory = std::malloc(std::max<size_t>(bytes, 4096) + kApart);
  if (memory == nullptr) throw std::bad_alloc();
  return Buffer(memory);
}

size_t Data::memory_bytes(size_t bytes, int replicas, Layout layout) {
  const size_t outputs = layout == Layout::kInPlace     ? 0
                         : layout == Layout::kOneOutput ? 1
                                                        : static_cast<size_t>(replicas);
  return bytes * (static_cast<size_t>(replicas) + outputs);
}

Data::Data(dist_dtype dtype, size_t bytes, int replicas, Layout layout)
    : dtype_(dtype),
      bytes_(bytes),
      element_bytes_(dtype == DIST_F32 ? 4 : 2),
      replicas_(replicas),
      layout_(layout) {
  const int outputs = layout == Layout::kInPlace ? 0 : layout == Layout::kOneOutput ? 1 : replicas;
  for (int i = 0; i < outputs; ++i) out_.push_back(allocate(bytes));
  std::uniform_real_distribution<float> magnitude(1.0f, 2.0f);
  for (int replica = 0; replica < replicas; ++replica) {
    in_.push_back(allocate(bytes));
    std::mt19937 random(static_cast<uint32_t>(replica) + 1);
    Bits pattern(std::min(kPeriod, count()) * element_bytes_);
    // All replicas have the same sign at an element, so that no sum cancels to zero.
    for (size_t i = 0; i < std::min(kPeriod, count()); ++i) {
      store(&pattern[i * element_bytes_], dtype, (i % 3 == 0 ? -1.0f : 1.0f) * magnitude(random));
    }
    pattern_.push_back(std::move(pattern));
  }
}

void* Data::out(int replica) const {
  if (layout_ == Layout::kInPlace) return in(replica);
  return out_[layout_ == Layout::kOneOutput ? 0 : static_cast<size_t>(replica)].get();
}

int Data::most_iterations() const {
  if (layout_ != Layout::kInPlace) return 1 << 20;
  const int exponent_bits = dtype_ == DIST_F16 ? 14 : 120;
  return std::max(1, exponent_bits / std::max<int>(1, std::bit_width(static_cast<unsigned>(replicas_ - 1))));
}

void Data::expect(int iterations) {
  if (layout_ != Layout::kInPlace) iterations = 1;
  if (iterations == expected_iterations_) return;
  expected_.resize(pattern_[0].size());
  for (size_t i = 0; i < std::min(kPeriod, count()); ++i) {
    unsigned char* const result = &expected_[i * element_bytes_];
    float sum = load(&pattern_[0][i * element_bytes_], dtype_);
    for (size_t r = 1; r < pattern_.size(); ++r) sum += load(&pattern_[r][i * element_bytes_], dtype_);
    store(result, dtype_, sum);
    for (int again = 1; again < iterations; ++again) {
      const float one = load(result, dtype_);
      sum = one;
      for (size_t r = 1; r < pattern_.size(); ++r) sum += one;
      store(result, dtype_, sum);
    }
  }
  expected_iterations_ = iterations;
}

void Data::reset(int replica) noexcept {
  const Bits& pattern = pattern_[static_cast<size_t>(replica)];
  auto* const to = static_cast<unsigned char*>(in(replica));
  each_piece(bytes_, pattern.size(), [&](size_t at, size_t n) { std::memcpy(to + at, pattern.data(), n); });
  if (layout_ == Layout::kOutOfPlace || (layout_ == Layout::kOneOutput && replica == 0)) {
    std::memset(out(replica), 0xff, bytes_);
  }
}

// All contributions to an element have one sign, so each addition rounds by at most half a unit of its
// result.
bool Data::about_equal(const unsigned char* from, size_t bytes) const {
  const float unit = dtype_ == DIST_F32 ? 0x1p-23f : dtype_ == DIST_F16 ? 0x1p-10f : 0x1p-7f;
  const float allowed = unit * static_cast<float>(replicas_ * expected_iterations_);
  for (size_t at = 0; at < bytes; at += element_bytes_) {
    const float wanted = load(&expected_[at], dtype_);
    if (!(std::fabs(load(from + at, dtype_) - wanted) <= allowed * std::fabs(wanted))) return false;
  }
  return true;
}

void Data::check(int replica, int iterations) noexcept {
  if (layout_ == Layout::kInPlace && iterations != expected_iterations_) return count_wrong(1);
  check_result(out(replica));
}

void Data::check_result(const void* result) noexcept {
  const auto* const from = static_cast<const unsigned char*>(result);
  size_t wrong = 0;
  each_piece(bytes_, expected_.size(), [&](size_t at, size_t n) {
    if (std::memcmp(from + at, expected_.data(), n) == 0) return;
    if (!rounding_allowed_ || !about_equal(from + at, n)) ++wrong;
  });
  count_wrong(wrong);
}

}  // namespace bench
