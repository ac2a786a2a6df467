// SPDX-License-Identifier: Apache-2.0
// Signatures describe what a member came for; peers compare them on arrival. If they disagree or a member is
// missing, verdict() names the culprit. All functions here are pure.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/collective_traits.hpp"
#include "core/base/status.hpp"
#include "dist/types.h"

namespace dist {

// What a kMergeCall is for (Signature::kind). Reports name it by this.
enum class MergeFor : int32_t { kFunction, kVariable, kAssign, kScatter, kUpdate };

// What one member came for. Plain data: peers read it while they wait.
struct Signature {
  static constexpr int kDims = 4;

  Collective collective = Collective::kNone;
  int32_t op = 0;
  int32_t dtype = 0;  // of the first tensor
  int32_t root = -1;
  int32_t kind = 0;           // kScan; kMergeCall: a MergeFor
  int32_t element_bytes = 0;  // of the host's operator; 0: the dtype's
  int32_t axis = -1;          // of the first tensor, from the front; -1: it is not cut or joined
  bool contributes = false;   // its options say how many contributions it brings
  bool weighted = false;
  int8_t numerics = 0;             // DIST_NUMERICS_...
  int8_t asynchronous = 0;         // 1: the collective is asynchronous; 2: it is planned
  int32_t ndim = 0;                // of the first tensor; kHaloExchange, kReshard: of the whole
  dist_status returned = DIST_OK;  // kReturn: the function's status
  int64_t shape[kDims] = {};       // its first dimensions; kHaloExchange: the shape of the grid
  int64_t tensors = 0;
  int64_t elements = 0;  // of all tensors
  // kMergeCall, the host's operator: its address, which means something in this process alone.
  const void* function = nullptr;
  uint64_t digest = 0;  // equal where all of the above, each tensor's shape and the tag are equal
  // The same without `function`, so that processes can compare it. For them, functions differ by their tags.
  uint64_t shared_digest = 0;
  char tag[DIST_MAX_TAG_BYTES] = "";
};

// Adds to a signature's digest. Not cryptographic: it finds mistakes, not attacks.
inline uint64_t mix(uint64_t digest, uint64_t value) noexcept {
  digest = (digest ^ value) * 0x9E3779B97F4A7C15ull;
  return digest ^ (digest >> 29);
}

inline uint64_t mix_text(uint64_t digest, const char* text) noexcept {
  for (; *text != '\0'; ++text) digest = mix(digest, static_cast<uint8_t>(*text));
  return digest;
}

// Sets the tag and completes both digests: mixes the remaining fields into what `digest` already holds.
void close_digest(Signature& signature, const char* tag) noexcept;

// The signature of a member that leaves its function, with a complete digest. The member sets `returned`.
const Signature& departure() noexcept;

// "all_reduce"; for a merge call, the function that the host called: "replica_variable".
const char* called_name(const Signature& signature) noexcept;
// "all_reduce SUM f32[3, 4]"; "has left its function (OK)".
void describe(const Signature& signature, char* text, std::size_t size) noexcept;
// "asynchronous all_reduce #3 (tag grads)".
void name_round(const Signature& signature, int64_t sequence, char* text, std::size_t size) noexcept;
const char* collective_name(Collective collective) noexcept;

// Why a collective failed.
enum class Trouble {
  kNone,
  kDisagreement,
  kDeadline,     // the collective's own
  kRunDeadline,  // the run's
  kCancelled
};

// What is known when a collective fails. Spans have one entry for each member.
struct Evidence {
  Trouble trouble = Trouble::kDisagreement;
  std::span<const Signature* const> signatures;  // NULL: the member has not arrived
  std::span<const ErrorRecord* const> failures;  // of members that left with an error; NULL elsewhere
  const int32_t* seats = nullptr;                // the members'; NULL: their ranks
  int32_t group = 0;                             // number of the group; 0: all replicas
  int64_t sequence = 0;                          // the collective's number in the run
  int64_t waited_ns = 0;                         // kDeadline, kRunDeadline
  int64_t given_ns = 0;                          // kRunDeadline: the run's whole time
  Naming naming;                                 // of all members of the pool
  const char* reason = nullptr;                  // kCancelled: what the host said; NULL: nothing
};

// Sets error.hint for a failure of this member.
void hint_to_mend(ErrorRecord& error, const MemberName& failed) noexcept;

// Whether the culprit can be named though members are missing: a member left, or more than half of all agree.
bool decidable(const Evidence& evidence) noexcept;

// The one report that every member gets. The culprit is the member that left; else the minority; else, in a
// tie, all that differ from the lowest id. For a deadline, the culprits are the members that did not come. At
// the run's deadline, missing members need not be the cause, so the message says how long the others had
// waited.
ErrorRecord verdict(const Evidence& evidence) noexcept;
// What every report on these signatures begins with, for one whose reason lies elsewhere.
ErrorRecord opening(const Evidence& evidence) noexcept;

}  // namespace dist
