// SPDX-License-Identifier: Apache-2.0
// Encodes numbers and strings in messages between processes. Fields are written one by one, little-endian and
// without padding, so the encoding does not depend on the compiler or the platform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace dist {

// Writes one field after the other. The caller must provide enough room.
class WireWriter {
 public:
  explicit WireWriter(std::byte* at) noexcept : at_(at) {}

  template <class T>
  void put(T value) noexcept {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    const uint64_t bits = static_cast<std::make_unsigned_t<T>>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) *at_++ = static_cast<std::byte>(bits >> 8 * i);
  }
  void put(bool value) noexcept { put<uint8_t>(value ? 1 : 0); }
  void put(double value) noexcept {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    put(bits);
  }
  // Writes the whole array, so that the field has a fixed size. The bytes after the text's terminator are
  // sent as 0.
  template <std::size_t N>
  void put(const char (&text)[N]) noexcept {
    const std::size_t length = strnlen(text, N - 1);
    std::memcpy(at_, text, length);
    std::memset(at_ + length, 0, N - length);
    at_ += N;
  }
  void fill(const std::byte* end) noexcept {
    while (at_ != end) *at_++ = std::byte{};
  }
  std::byte* at() const noexcept { return at_; }

 private:
  std::byte* at_;
};

// Reads such fields without trusting them. After the end, and from the first invalid field on, fields are 0
// and good() is false.
class WireReader {
 public:
  WireReader(const std::byte* data, std::size_t bytes) noexcept : at_(data), end_(data + bytes) {}

  template <class T>
  T take() noexcept {
    if constexpr (std::is_same_v<T, bool>) {
      return take_in<uint8_t>(0, 1) == 1;
    } else if constexpr (std::is_same_v<T, double>) {
      const auto bits = take<uint64_t>();
      double value;
      std::memcpy(&value, &bits, sizeof value);
      return value;
    } else {
      if (!good_ || left() < sizeof(T)) return bad<T>();
      uint64_t bits = 0;
      for (std::size_t i = 0; i < sizeof(T); ++i) bits |= static_cast<uint64_t>(*at_++) << 8 * i;
      return static_cast<T>(bits);
    }
  }
  // Reads a number and checks that it is within these bounds.
  template <class T>
  T take_in(T least, T most) noexcept {
    const T value = take<T>();
    return good_ && value >= least && value <= most ? value : bad<T>();
  }
  template <std::size_t N>
  void take(char (&text)[N]) noexcept {
    if (!good_ || left() < N || std::memchr(at_, '\0', N) == nullptr) {
      bad<uint8_t>();
      text[0] = '\0';
      return;
    }
    std::memcpy(text, at_, N);
    at_ += N;
  }
  const std::byte* take_bytes(std::size_t bytes) noexcept {
    if (!good_ || left() < bytes) {
      bad<uint8_t>();
      return nullptr;
    }
    at_ += bytes;
    return at_ - bytes;
  }
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  bool good() const noexcept { return good_; }

 private:
  template <class T>
  T bad() noexcept {
    good_ = false;
    return T{};
  }

  const std::byte* at_;
  const std::byte* const end_;
  bool good_ = true;
};

}  // namespace dist
