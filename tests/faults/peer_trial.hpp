// SPDX-License-Identifier: Apache-2.0
// Plays a cell of the fault matrix with another library: a program of tests/bench/peers, started for this
// cell and terminated after it in any case.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/peer_list.hpp"

namespace faults {

// What a rank that did nothing wrong saw, the better one first.
enum class Saw : int {
  kNamed,   // an error that names the guilty rank
  kError,   // one that does not
  kSilent,  // no error
  kKilled,  // its process ended
  kHung,    // did not return
};
inline constexpr int kSaws = 5;
const char* saw_name(Saw saw);

struct Trial {
  const bench::PeerOffer* peer;
  std::string fault, collective;  // as fault_name() and collective_name() have them
  int ranks;                      // the last one is guilty
};

struct Witness {
  int rank = 0;
  Saw saw = Saw::kHung;
  double us = -1;  // from the cause to its return, or its end
  std::string message;
};

struct TrialResult {
  std::string why_not;    // "", or why it could not be played
  Saw saw = Saw::kNamed;  // the worst of the witnesses'
  std::vector<Witness> witnesses;
  std::string next;   // of one more collective: "right", "wrong", "error ...", "": not come to
  std::string words;  // the last that its processes complained of
  int leftovers = 0;  // processes that could not be ended
};

// Which of the trials, all of one peer, it can express: "", or why not. `name` becomes its name and version,
// where it starts.
std::vector<std::string> ask_peer(const std::vector<Trial>& trials, std::string& name);

// `guard_us`: who has not returned that long after the cause has hung.
TrialResult try_peer(const Trial& trial, double guard_us);

}  // namespace faults
