// SPDX-License-Identifier: Apache-2.0
// The messages by which two workers agree on whether they share memory.
//
//     over the transport below       Introduction    both ways: machine, user, name of a local socket, a token
//     over the local socket          Handshake       the lower worker: both tokens
//                                    Handshake       the higher worker: both tokens, its memory
//                                    Handshake       the lower worker: its memory
//     over the transport below       Outcome         both ways: whether all of this has worked
//
// The transport below has proven that its peers know the job's secret, and each token is sent to only one
// worker. So a process that presents both tokens is that worker. No memory is mapped before this.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dist::shm {

inline constexpr uint32_t kMagic = 0x4C44'4D53;
inline constexpr uint32_t kVersion = 1;
inline constexpr std::size_t kReasonBytes = 160;

using Token = std::array<std::byte, 32>;

struct Introduction {
  static constexpr std::size_t kNameBytes = 48;
  static constexpr std::size_t kBytes = 2 * 4 + 1 + 16 + 8 + kNameBytes + 32 + kReasonBytes;

  bool willing = false;
  std::byte boot[16] = {};
  uint64_t credit = 0;
  char name[kNameBytes] = "";
  Token token{};
  char reason[kReasonBytes] = "";  // set if it is not willing

  void write(std::byte* to) const noexcept;
  // Returns false if the message is not valid.
  bool read(const std::byte* from) noexcept;
};

struct Handshake {
  static constexpr std::size_t kBytes = 3 * 4 + 3 * 8 + 2 * 32;

  int32_t worker = -1;   // the sender
  uint64_t bytes = 0;    // size of its memory, whose descriptor is sent with this message; 0: none
  uint64_t salt = 0;     // of its memory
  uint64_t address = 0;  // where the sender's token is in its private memory
  Token own{};
  Token other{};

  void write(std::byte* to) const noexcept;
  bool read(const std::byte* from) noexcept;
};

struct Outcome {
  static constexpr std::size_t kBytes = 4 + 1 + kReasonBytes;

  bool works = false;
  char reason[kReasonBytes] = "";

  void write(std::byte* to) const noexcept;
  bool read(const std::byte* from) noexcept;
};

}  // namespace dist::shm
