// SPDX-License-Identifier: Apache-2.0
// Plays a cell of the fault matrix with another library. The cell has its own process of tests/bench/peers,
// which is always terminated afterwards.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/peer_list.hpp"

namespace faults {

// The result that an innocent rank saw, from best to worst.
enum class Saw : int {
  kNamed,   // an error that names the guilty rank
  kError,   // an error that does not name it
  kSilent,  // no error
  kKilled,  // its process ended
  kHung,    // it did not return
};
inline constexpr int kSaws = 5;
const char* saw_name(Saw saw);

struct Trial {
  const bench::PeerOffer* peer;
  std::string fault, collective;  // as in fault_name() and collective_name()
  int ranks;                      // the last one is guilty
};

struct Witness {
  int rank = 0;
  Saw saw = Saw::kHung;
  double us = -1;  // time from the cause to its return or its end
  std::string message;
};

struct TrialResult {
  std::string why_not;    // "", or why the cell could not be played
  Saw saw = Saw::kNamed;  // the worst result of the witnesses
  std::vector<Witness> witnesses;
  std::string next;   // result of one more collective: "right", "wrong" or "error ..."; "" = not reached
  std::string words;  // the last error text of its processes
  int leftovers = 0;  // processes that could not be ended
};

// Asks a peer which of the trials, all of them its own, it can express. Returns "" or the reason for each.
// `name` receives its name and version if it starts.
std::vector<std::string> ask_peer(const std::vector<Trial>& trials, std::string& name);

// A rank that has not returned `guard_us` after the cause counts as hanging.
TrialResult try_peer(const Trial& trial, double guard_us);

}  // namespace faults
