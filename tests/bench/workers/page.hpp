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
// Turns of who is slow are cut; the first one tells who is. Of Gloo's algorithms those that are far from its fastest have no
// more: an operation of theirs may take a second.
constexpr double kTooSlow = 4,
                 kHopeless = 20;  // times the fastest's time: not at this size, nor at larger ones
constexpr double kMostTurnUs = 1e5;
constexpr int kNever = -1, kWarmUp = 3, kFewest = 3;
int operations_for(double us, int most);
constexpr std::size_t kMiB = std::size_t{1} << 20;

// Sides that are turns of the workers themselves; Gloo's algorithms follow these.
enum InnerSide : int { kLibdist, kRoundTrip, kExchange, kByHand, kFirstOfGloo };
constexpr int kMostInnerSides = 9;

struct Page {
  int workers = 2, rounds = 9, sizes = kNumSizes;
  bool quick = false;
  bool outsiders = false;  // whoever started the workers has turns as well, of programs that are peers
  dist_transport transport = DIST_TRANSPORT_GRPC;  // AUTO: shared memory
  std::array<char, 64> bare_address{};
  std::array<char, 256> gloo_folder{};

  std::atomic<bool> failed{false};
  std::array<char, 512> why{};
  std::array<std::atomic<int>, kMostInnerSides>
      operations{};  // of a side's turn, as worker 0 has seen by the first ones; 0: none, kNever: nor at larger sizes
  double us[kNumSizes][kMostRounds][kMostInnerSides] = {};
  HandMemory by_hand;

  void begin();
  // The workers meet; in meet_outside() with whoever started them.
  void meet() { inside_.meet(failed); }
  void meet_outside() { outside_.meet(failed); }
  // The first one to fail says why; nobody waits any more.
  void fail(const std::string& what);
  int most_operations(const Size& size) const { return quick ? 2 : size.operations; }

 private:
  Meeting inside_, outside_;
};

}  // namespace bench
