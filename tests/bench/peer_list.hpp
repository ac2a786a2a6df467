// SPDX-License-Identifier: Apache-2.0
// Reads peers.list, which the build generates: the peers that are separate programs, and how to start them.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/peers/protocol.hpp"

namespace bench {

struct PeerOffer {
  std::string group, label;
  peers::Words words;  // the words of its command, some with placeholders
};

struct PeerList {
  std::vector<PeerOffer> offers;
  std::vector<std::string> missing;  // peers that are not installed, one line each
};

enum class PeerUse {
  kBench,
  kFaults,     // the fault matrix in one process
  kProcesses,  // the fault matrix over worker processes
};

// Returns the entries for this use. Throws std::runtime_error if the list cannot be read.
PeerList read_peer_list(const std::string& path, PeerUse use);

// Returns the command for this number of ranks. With `faults`, includes the options that it needs to survive
// a fault.
peers::Words peer_command(const PeerOffer& offer, int ranks, bool faults);

}  // namespace bench
