// SPDX-License-Identifier: Apache-2.0
// The memory that the processes of a benchmark share: the current measurement, a barrier, and the times.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "dist/dist.h"
#include "tests/bench/meeting.hpp"
#include "tests/bench/workers/hand_memory.hpp"

namespace bench {

constexpr int kMostWorkers = HandMemory::kMostWorkers;
constexpr int kMostRounds = 100;

struct Size {
  const char* name;
  std::size_t bytes;
  int operations;  // of a turn
};
constexpr std::array<Size, 6> kSizes{{{"4 B", 4, 200},
                                      {"1 KiB", std::size_t{1} << 10, 200},
                                      {"8 KiB", std::size_t{8} << 10, 200},
                                      {"64 KiB", std::size_t{64} << 10, 100},
                                      {"1 MiB", std::size_t{1} << 20, 20},
                                      {"16 MiB", std::size_t{16} << 20, 3}}};
constexpr int kNumSizes = static_cast<int>(kSizes.size());
// The first turn shows which sides are slow, and their later turns are shorter. An operation of one of Gloo's
// algorithms may take a second. Thus algorithms that are much slower than the fastest one get no more turns.
constexpr double kTooSlow = 4,
                 kHopeless = 20;  // times the fastest's time: no turns at this size or at larger ones
constexpr double kMostTurnUs = 1e5;
constexpr int kNever = -1, kWarmUp = 3, kFewest = 3;
int operations_for(double us, int most);
constexpr std::size_t kMiB = std::size_t{1} << 20;

// Sides that are turns of the workers themselves. Gloo's algorithms follow these.
enum InnerSide : int { kLibdist, kRoundTrip, kExchange, kByHand, kFirstOfGloo };
constexpr int kMostInnerSides = 9;

struct Page {
  int workers = 2, rounds = 9, sizes = kNumSizes;
  bool quick = false;
  bool outsiders = false;  // the process that started the workers gives turns to other programs, too
  dist_transport transport = DIST_TRANSPORT_GRPC;  // AUTO: shared memory
  std::array<char, 64> bare_address{};
  std::array<char, 256> gloo_folder{};

  std::atomic<bool> failed{false};
  std::array<char, 512> why{};
  // The operations in a turn of each side, chosen by worker 0 after the first turns. 0: no turn at this size,
  // kNever: no turn at larger sizes either.
  std::array<std::atomic<int>, kMostInnerSides> operations{};
  double us[kNumSizes][kMostRounds][kMostInnerSides] = {};
  HandMemory by_hand;

  void begin();
  // The workers meet. In meet_outside() the process that started them takes part as well.
  void meet() { inside_.meet(failed); }
  void meet_outside() { outside_.meet(failed); }
  // The first failure is recorded, and waiting processes return.
  void fail(const std::string& what);
  int most_operations(const Size& size) const { return quick ? 2 : size.operations; }

 private:
  Meeting inside_, outside_;
};

}  // namespace bench
