// SPDX-License-Identifier: Apache-2.0
// Signatures describe the call of a member; peers compare them on arrival. If they disagree or a member is
// missing, diagnosis() names the culprit. All functions here are pure.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/collective_traits.hpp"
#include "core/base/status.hpp"
#include "dist/types.h"

namespace dist {

// The purpose of a kMergeCall (Signature::kind), for reports.
enum class MergeFor : int32_t { kFunction, kVariable, kAssign, kScatter, kUpdate };

// Describes one member's call. Plain data that peers read while they wait.
struct Signature {
  static constexpr int kDims = 4;

  Collective collective = Collective::kNone;
  int32_t op = 0;
  int32_t dtype = 0;  // of the first tensor
  int32_t root = -1;
  int32_t kind = 0;           // kScan; kMergeCall: a MergeFor
  int32_t element_bytes = 0;  // size of the host operator's elements; 0: the dtype's
  int32_t axis = -1;          // of the first tensor, counted from the front; -1: no tensor is cut or joined
  bool contributes = false;   // the call's options specify a number of contributions
  bool weighted = false;
  int8_t numerics = 0;             // counted from DIST_NUMERICS_DEFAULT
  int8_t asynchronous = 0;         // 1: the collective is asynchronous; 2: it is planned
  int32_t ndim = 0;                // of the first tensor; kHaloExchange, kReshard: of the whole
  dist_status returned = DIST_OK;  // kReturn: the function's status
  int64_t shape[kDims] = {};       // the first dimensions; kHaloExchange: the shape of the grid
  int64_t tensors = 0;
  int64_t elements = 0;  // of all tensors
  // kMergeCall and host operators: an address, which is only meaningful in this process.
  const void* function = nullptr;
  uint64_t digest = 0;  // equal if all of the above, the shapes of all tensors and the tag are equal
  // Like `digest`, but without `function`, so that processes can compare it. Between processes, functions
  // differ only by their tags.
  uint64_t shared_digest = 0;
  char tag[DIST_MAX_TAG_BYTES] = "";
};

// Mixes a value into a signature's digest. Not cryptographic: it detects mistakes, not attacks.
inline uint64_t mix(uint64_t digest, uint64_t value) noexcept {
  digest = (digest ^ value) * 0x9E3779B97F4A7C15ull;
  return digest ^ (digest >> 29);
}

inline uint64_t mix_text(uint64_t digest, const char* text) noexcept {
  for (; *text != '\0'; ++text) digest = mix(digest, static_cast<uint8_t>(*text));
  return digest;
}

// Sets the tag and completes both digests, mixing the remaining fields into the current value of `digest`.
void close_digest(Signature& signature, const char* tag) noexcept;

// The signature of a member that leaves its function, with complete digests. The member sets `returned`.
const Signature& departure() noexcept;

// "all_reduce"; for a merge call, the function that the host called: "replica_variable".
const char* called_name(const Signature& signature) noexcept;
// "all_reduce SUM f32[3, 4]"; "has left its function (OK)".
void describe(const Signature& signature, char* text, std::size_t size) noexcept;
// "asynchronous all_reduce #3 (tag "grads")".
void name_round(const Signature& signature, int64_t sequence, char* text, std::size_t size) noexcept;
const char* collective_name(Collective collective) noexcept;

// Why a collective failed.
enum class Trouble {
  kNone,
  kDisagreement,
  kDeadline,     // of the collective
  kRunDeadline,  // of the run
  kCancelled
};

// The facts that are known when a collective fails. The spans have one entry for each member.
struct Evidence {
  Trouble trouble = Trouble::kDisagreement;
  std::span<const Signature* const> signatures;  // NULL: the member has not arrived
  std::span<const ErrorRecord* const> failures;  // of members that left with an error; otherwise NULL
  const int32_t* local_ranks = nullptr;          // the members'; NULL: their ranks
  int32_t group = 0;                             // number of the group; 0: all replicas
  int64_t sequence = 0;                          // number of the collective in the run
  int64_t waited_ns = 0;                         // kDeadline, kRunDeadline
  int64_t given_ns = 0;                          // kRunDeadline: the run's timeout
  Naming naming;                                 // of all members of the pool
  const char* reason = nullptr;                  // kCancelled: the host's reason; NULL: none
  const char* state = "";  // of the first member that has not arrived; without a final period
};

// Sets error.hint for a failure of this member.
void hint_to_mend(ErrorRecord& error, const MemberName& failed) noexcept;

// Whether the culprit can be named although members are missing: a member left, or more than half of all
// members agree.
bool decidable(const Evidence& evidence) noexcept;

// The report that every member gets. The culprit is the member that left; otherwise the minority; in a tie,
// all members that differ from the one with the lowest id. If a deadline has passed, the culprits are the
// members that did not arrive. At the run's deadline the missing members need not be the cause, so the
// message states how long the others had waited.
ErrorRecord diagnosis(const Evidence& evidence) noexcept;
// The common first part of a report on these signatures, for a failure with another reason.
ErrorRecord opening(const Evidence& evidence) noexcept;

}  // namespace dist
