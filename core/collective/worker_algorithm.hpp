// SPDX-License-Identifier: Apache-2.0
// WorkerAlgorithm: how the tensors of a collective move between workers. Of two algorithms, a cost model
// selects the one that takes less time. It is a pure function of sizes and measures nothing, so a program
// does the same in every run.
//
//     kTogether   all workers get all tensors together with the members' descriptions: one message each way
//     kOwner      each range of the result has an owner among the workers. The owner receives the inputs of
//                 its range, folds them, and sends the result to the workers that need it, in pieces
//
// Invariant: both fold an element in the same order, so they produce the same bits.
#pragma once

#include <cstddef>

#include "core/collective/call.hpp"

namespace dist {

enum class WorkerAlgorithm { kTogether, kOwner };

struct WorkerAlgorithmQuestion {
  int workers;
  std::size_t givers;   // number of members of all workers that bring tensors
  bool to_all;          // every worker receives the whole result
  bool folds;           // the result is a fold of all tensors
  std::size_t bytes;    // size of what one member brings
  std::size_t staging;  // a worker's staging memory for tensors of others
};

// The limit for kTogether. Larger data are sent in pieces, because saving a round is not worth the additional
// traffic.
inline constexpr std::size_t kMostTogetherBytes = std::size_t{256} << 10;

// The messages of one worker in a collective of one piece. It receives as many as it sends.
struct WorkerTraffic {
  int rounds;            // messages that wait for an earlier one, one after another
  std::size_t messages;  // sent, to all others in each round
  std::size_t bytes;     // of tensors received
};

// `bytes` of the question times the number of members must not overflow.
constexpr WorkerTraffic worker_traffic_of(WorkerAlgorithm algorithm,
                                          const WorkerAlgorithmQuestion& q) noexcept {
  const auto workers = static_cast<std::size_t>(q.workers);
  const std::size_t all = q.givers * q.bytes / workers * (workers - 1);
  if (algorithm == WorkerAlgorithm::kTogether) return {1, workers - 1, all};
  // The members' descriptions, the inputs of the own range, and the results of the others' ranges.
  return {3, 3 * (workers - 1), all / workers + q.bytes / workers * (workers - 1)};
}

// The costs of a link between workers. The defaults are 25 Gb/s and the latency of TCP.
struct WorkerLinkCosts {
  double latency_ns = 15'000;  // of a message
  double message_ns = 0;       // a worker's own time for each further message of a round
  double byte_ns = 0.32;
};

constexpr double worker_time_ns(const WorkerTraffic& traffic, const WorkerLinkCosts& link) noexcept {
  return traffic.rounds * link.latency_ns +
         static_cast<double>(traffic.messages - static_cast<std::size_t>(traffic.rounds)) * link.message_ns +
         static_cast<double>(traffic.bytes) * link.byte_ns;
}

constexpr WorkerAlgorithm worker_algorithm_of(const WorkerAlgorithmQuestion& q,
                                              const WorkerLinkCosts& link = {}) noexcept {
  const std::size_t most = q.staging < kMostTogetherBytes ? q.staging : kMostTogetherBytes;
  if (!q.to_all || (q.givers != 0 && q.bytes > most / q.givers)) return WorkerAlgorithm::kOwner;
  if (!q.folds) return WorkerAlgorithm::kTogether;
  const double together = worker_time_ns(worker_traffic_of(WorkerAlgorithm::kTogether, q), link);
  return together <= worker_time_ns(worker_traffic_of(WorkerAlgorithm::kOwner, q), link)
             ? WorkerAlgorithm::kTogether
             : WorkerAlgorithm::kOwner;
}

// The question from one member's point of view. If one member chooses kOwner, all members use it.
inline WorkerAlgorithmQuestion worker_question(const Call& call, int workers, int members, int me,
                                               std::size_t staging) noexcept {
  const CollectiveTraits& traits = call.traits();
  const std::size_t bytes = call.gives(me) ? call.bytes * call.lists() : 0;
  return {.workers = workers,
          .givers = traits.sources == Ends::kRoot ? 1 : static_cast<std::size_t>(members),
          .to_all = traits.destinations == Ends::kAll,
          .folds = traits.reduces,
          .bytes = bytes,
          .staging = staging};
}

}  // namespace dist
