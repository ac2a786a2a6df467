// SPDX-License-Identifier: Apache-2.0
// Replica numbers. A replica has two of them. Its number in this process indexes components, variable copies,
// states and recorders. Its number among the replicas of all processes is the one that programs see and
// reports use. The two have types that do not convert to each other. ReplicaCount keeps the corresponding
// counts apart too, so that each use states which one it means. Special cases for a single replica usually
// mean a single one in all processes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dist {

enum class LocalReplica : int32_t {};
enum class GlobalReplica : int32_t {};

inline constexpr LocalReplica kNoLocalReplica{-1};
inline constexpr GlobalReplica kNoReplica{-1};

// The number as an index of arrays.
constexpr std::size_t index(LocalReplica replica) noexcept { return static_cast<std::size_t>(replica); }
// The number for messages and the C interface.
constexpr int32_t number(GlobalReplica replica) noexcept { return static_cast<int32_t>(replica); }

class ReplicaCount {
 public:
  // A process that has all replicas.
  constexpr explicit ReplicaCount(int32_t local) noexcept : local_(local), global_(local) {}
  // The replicas of one worker, among `global` replicas of all workers.
  constexpr ReplicaCount(int32_t local, GlobalReplica first, int32_t global) noexcept
      : local_(local), global_(global), first_(first) {}

  constexpr int32_t local() const noexcept { return local_; }
  constexpr int32_t global() const noexcept { return global_; }
  // The first replica of this process.
  constexpr GlobalReplica first() const noexcept { return first_; }
  constexpr GlobalReplica global_of(LocalReplica replica) const noexcept {
    return GlobalReplica{number(first_) + static_cast<int32_t>(replica)};
  }
  // Returns kNoLocalReplica for a replica of another process.
  constexpr LocalReplica local_of(GlobalReplica replica) const noexcept {
    const int64_t local = int64_t{number(replica)} - number(first_);
    return local >= 0 && local < local_ ? LocalReplica{static_cast<int32_t>(local)} : kNoLocalReplica;
  }
  // The last replica of this process, for messages such as "0 to 3".
  constexpr GlobalReplica last() const noexcept { return global_of(LocalReplica{local_ - 1}); }

 private:
  int32_t local_;
  int32_t global_;
  GlobalReplica first_{0};
};

// How messages and reports name a member: a replica, a logical device of one, or a worker with all of its
// replicas.
struct MemberName {
  GlobalReplica replica = kNoReplica;
  int32_t logical_device = -1;  // of the replica; -1: the replica itself
  int32_t worker = -1;          // the worker, if workers are named; -1: none
  int32_t home = -1;            // the worker that has the replica; -1: there is only one

  // "replica", "logical device" or "worker", and its number.
  constexpr const char* word() const noexcept {
    return logical_device >= 0                    ? "logical device"
           : worker >= 0 && replica == kNoReplica ? "worker"
                                                  : "replica";
  }
  constexpr int32_t number() const noexcept {
    return logical_device >= 0                    ? logical_device
           : worker >= 0 && replica == kNoReplica ? worker
                                                  : dist::number(replica);
  }
};

// The names of a pool's members, by rank.
struct Naming {
  GlobalReplica first{0};            // the member of rank 0; if the members are workers, that worker's number
  GlobalReplica whole = kNoReplica;  // whose logical devices the members are; kNoReplica: they are replicas
  bool workers = false;              // the members are workers
  int32_t home = -1;                 // the worker that has the members; -1: there is only one
  bool request = false;              // the only member runs a request; messages say so

  constexpr bool devices() const noexcept { return whole != kNoReplica; }
  constexpr MemberName name(int rank) const noexcept {
    if (workers) return {kNoReplica, -1, dist::number(first) + rank};
    if (devices()) return {whole, rank, -1, home};
    return {GlobalReplica{dist::number(first) + rank}, -1, -1, home};
  }
  constexpr const char* word() const noexcept { return name(0).word(); }
  constexpr const char* run() const noexcept { return request ? "request" : "run"; }
};

}  // namespace dist
