// SPDX-License-Identifier: Apache-2.0
// Reads peers.list, which the build generates: the peers that are separate programs, and how to start them.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/peers/protocol.hpp"

namespace bench {

struct PeerOffer {
  std::string group, label;
  peers::Words words;  // of its command, some with blanks to fill
};

struct PeerList {
  std::vector<PeerOffer> offers;
  std::vector<std::string> missing;  // those that are not installed, a line each
};

enum class PeerUse {
  kBench,
  kFaults,     // the fault matrix in one process
  kProcesses,  // and that over workers that are processes
};

// What is for that use. Throws std::runtime_error where the list cannot be read.
PeerList read_peer_list(const std::string& path, PeerUse use);

// Its command for this many ranks; `faults`: with what it needs to survive one.
peers::Words peer_command(const PeerOffer& offer, int ranks, bool faults);

}  // namespace bench
