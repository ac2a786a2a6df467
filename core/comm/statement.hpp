// SPDX-License-Identifier: Apache-2.0
// Statements: what a member says on arrival that it came for, and the verdict where they do not agree.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/status.hpp"
#include "dist/types.h"

namespace dist {

enum class Collective : int32_t {
  kNone = DIST_COLLECTIVE_NONE,
  kAllReduce = DIST_COLLECTIVE_ALL_REDUCE,
  kBroadcast = DIST_COLLECTIVE_BROADCAST,
  kBarrier = DIST_COLLECTIVE_BARRIER,
  kMergeCall = DIST_COLLECTIVE_MERGE_CALL,
  kReturn = DIST_COLLECTIVE_RETURN,
};

// What one member came for. Plain data: peers read it while they wait.
struct Statement {
  static constexpr int kDims = 4;

  Collective collective = Collective::kNone;
  int32_t op = 0;
  int32_t dtype = 0;  // of the first tensor
  int32_t root = -1;
  int32_t ndim = 0;                // of the first tensor
  dist_status returned = DIST_OK;  // kReturn: the function's status
  int64_t shape[kDims] = {};       // of the first tensor, its first dimensions
  int64_t tensors = 0;
  int64_t elements = 0;            // of all tensors
  const void* function = nullptr;  // kMergeCall
  uint64_t signature = 0;          // equal where all of the above, each tensor's shape and the tag are equal
  char tag[DIST_MAX_TAG_BYTES] = "";
};

// Adds to a statement's signature. Not cryptographic: it finds mistakes, not attacks.
inline uint64_t mix(uint64_t signature, uint64_t value) noexcept {
  signature = (signature ^ value) * 0x9E3779B97F4A7C15ull;
  return signature ^ (signature >> 29);
}

// Sets the tag and closes the signature over the fields that are not in it yet.
void seal(Statement& statement, const char* tag) noexcept;

// "all_reduce SUM f32[3, 4]"; "has left its function (OK)".
void describe(const Statement& statement, char* text, std::size_t size) noexcept;
const char* collective_name(Collective collective) noexcept;

// Why a collective did not come together.
enum class Trouble { kDisagreement, kDeadline, kCancelled };

// What is known when a collective fails: one entry for each member, NULL where it has not arrived.
struct Evidence {
  Trouble trouble = Trouble::kDisagreement;
  std::span<const Statement* const> statements;
  std::span<const ErrorRecord* const> failures;  // of members that left with an error; NULL elsewhere
  int64_t sequence = 0;                          // the collective's number in the run
  int64_t waited_ns = 0;                         // kDeadline
};

// Whether the culprit can be named before the missing members have come: someone left, or more than half of
// all agree.
bool decidable(const Evidence& evidence) noexcept;

// The one report that every member gets. The culprit is the member that left, else the minority, else (a tie)
// all that differ from the lowest id; for a deadline, the members that did not come.
ErrorRecord verdict(const Evidence& evidence) noexcept;

}  // namespace dist
