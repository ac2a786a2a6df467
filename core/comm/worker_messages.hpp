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
inline constexpr uint32_t kWorkerVersion = 7;

// Whether a message can be read.
enum class Reading : uint8_t { kGood, kOtherVersion, kBad };

// What one worker says about one collective. Behind that lie the payloads of its members, if they are small: then there is
// no further message.
struct WorkerHeader {
  static constexpr std::size_t kSaidBytes = 320;
  static constexpr std::size_t kInsideAlign = 64;   // of each payload
  static constexpr std::size_t kMostInside = 1024;  // of all payloads
  static constexpr std::size_t kBytes = kSaidBytes + kMostInside;
  static constexpr uint64_t kSizesVary = UINT64_MAX;

  uint32_t version = kWorkerVersion;
  int32_t members = 0;         // of this worker
  uint64_t all_members = 0;    // a digest of how many members it takes each worker to have
  bool complete = false;       // its members' payloads have their tensors' elements
  uint64_t payload_bytes = 0;  // of each member's payload, or kSizesVary
  uint64_t staging_bytes = 0;  // that it may use at a time
  int32_t last = -1;           // of its members the last to come: what it calls that one
  int64_t last_alone_ns = -1;  // how long its others, all there, waited for it; -1: there are none
  Signature signature;         // without addresses; its digest is the shared one

  // Whether the payloads are inside, one behind the other. `members` is known to be right.
  bool payloads_inside() const noexcept {
    return payload_bytes <= kMostInside && inside_bytes() <= kMostInside / static_cast<uint64_t>(members);
  }
  // From one payload inside to the next.
  std::size_t inside_bytes() const noexcept {
    return (static_cast<std::size_t>(payload_bytes) + kInsideAlign - 1) / kInsideAlign * kInsideAlign;
  }

  void write(std::byte* to) const noexcept;
  // Where it says kOtherVersion, `version` is there.
  Reading read(const std::byte* from) noexcept;
};

struct WorkerNotice {
  static constexpr std::size_t kBytes = 4 + 4 + 8 + 8 + 8 + 1 + 8 + 8 + 4 + 4 * 7 + 1 + 8 +
                                        sizeof(ErrorRecord::message) + sizeof(ErrorRecord::tag) +
                                        sizeof(ErrorRecord::expected) + sizeof(ErrorRecord::received) +
                                        sizeof(ErrorRecord::hint);

  uint64_t completed = 0;  // leave: collectives, all of whose messages have been sent
  uint64_t begun = 0;      // leave: asynchronous collectives, which have all ended where the code is OK
  uint64_t planned = 0;    // leave: rounds of plans that have begun
  bool reported = false;   // leave: a report was sent before
  uint64_t parts = 0;      // leave: of which groups of some replicas there are notices too, as bits
  uint64_t failed = 0;     // leave: runs until now in which collectives have failed on this worker
  uint32_t announced =
      0;               // leave: what holds from this end of a run on, as bits; of the leader for all workers
  ErrorRecord record;  // leave: why, where its code is not OK; report: that

  void write(std::byte* to) const noexcept;
  Reading read(const std::byte* from) noexcept;
};

}  // namespace dist
