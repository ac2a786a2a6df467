// SPDX-License-Identifier: Apache-2.0
// peers.list, which the build makes: the peers that are programs of their own, and how each is started.
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

// Throws std::runtime_error where the list cannot be read. `faults`: for the fault matrix.
PeerList read_peer_list(const std::string& path, bool faults);

// Its command for this many ranks; `faults`: with what it needs to survive one.
peers::Words peer_command(const PeerOffer& offer, int ranks, bool faults);

}  // namespace bench
