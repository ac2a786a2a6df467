// SPDX-License-Identifier: Apache-2.0
// The messages between workers other than tensor data: headers and notices, in memory and as bytes.
//
// Every version of the protocol begins a message with the same magic number and the version, and uses the
// same header size. So a worker of another version can be recognized and named.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"
#include "core/comm/signature.hpp"

namespace dist {

inline constexpr uint32_t kWorkerMagic = 0x4C44'5748;
inline constexpr uint32_t kWorkerVersion = 8;

// The result of decoding a message.
enum class Reading : uint8_t { kGood, kOtherVersion, kBad };

// One worker's announcement of one collective. If the payloads of its members are small, they follow
// inside this message, and no further message is needed.
struct WorkerHeader {
  static constexpr std::size_t kSaidBytes = 320;
  static constexpr std::size_t kInsideAlign = 64;   // alignment of each payload
  static constexpr std::size_t kMostInside = 1024;  // size of all payloads
  static constexpr std::size_t kBytes = kSaidBytes + kMostInside;
  static constexpr uint64_t kSizesVary = UINT64_MAX;

  uint32_t version = kWorkerVersion;
  int32_t last = -1;           // the global number of its member that arrived last
  int64_t last_alone_ns = -1;  // how long its other members waited for that one; -1: there are none
  // The fields from here on are equal in the headers of workers that make equal calls.
  int32_t members = 0;         // number of this worker's members
  uint64_t all_members = 0;    // digest of the number of members that it assumes for each worker
  bool complete = false;       // the payloads contain the elements of all tensors
  uint64_t payload_bytes = 0;  // size of each member's payload, or kSizesVary
  uint64_t staging_bytes = 0;  // its limit for tensor bytes in flight
  Signature signature;         // without addresses; its digest is the shared digest

  // Whether the payloads are inside, one after the other. `members` must have been validated.
  bool payloads_inside() const noexcept {
    return payload_bytes <= kMostInside && inside_bytes() <= kMostInside / static_cast<uint64_t>(members);
  }
  // The distance from one payload inside to the next.
  std::size_t inside_bytes() const noexcept {
    return (static_cast<std::size_t>(payload_bytes) + kInsideAlign - 1) / kInsideAlign * kInsideAlign;
  }

  void write(std::byte* to) const noexcept;
  // Writes `last` and `last_alone_ns` into a header whose other fields are written already.
  void write_last(std::byte* to) const noexcept;
  // With kOtherVersion, only `version` is valid.
  Reading read(const std::byte* from) noexcept;
  // Like read(from), but faster for a header that equals this worker's except for its first fields, as most
  // do. `own` is this worker's header, and `own_bytes` its encoding.
  Reading read(const std::byte* from, const WorkerHeader& own, const std::byte* own_bytes) noexcept;
};

struct WorkerNotice {
  static constexpr std::size_t kBytes = 4 + 4 + 8 + 8 + 8 + 1 + 8 + 8 + 4 + 4 * 7 + 1 + 8 +
                                        sizeof(ErrorRecord::message) + sizeof(ErrorRecord::tag) +
                                        sizeof(ErrorRecord::expected) + sizeof(ErrorRecord::received) +
                                        sizeof(ErrorRecord::hint);

  uint64_t completed = 0;  // leave: number of collectives whose messages have all been sent
  uint64_t begun = 0;      // leave: number of asynchronous collectives; all have completed if the code is OK
  uint64_t planned = 0;    // leave: number of rounds of plans that have begun
  bool reported = false;   // leave: a report was sent before
  uint64_t parts = 0;      // leave: the parts that send notices of their own, as bits
  uint64_t failed = 0;     // leave: number of runs so far in which collectives failed on this worker
  uint32_t announced =
      0;  // leave: announced bits, valid from this end of a run on; the reporter's apply to all workers
  ErrorRecord record;  // leave: the failure, if its code is not OK; report: the report

  void write(std::byte* to) const noexcept;
  Reading read(const std::byte* from) noexcept;
};

}  // namespace dist
