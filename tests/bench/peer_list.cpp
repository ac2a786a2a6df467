// SPDX-License-Identifier: Apache-2.0
// A line is GROUP LABEL WORD..., or - LABEL PACKAGES for what is not installed. @RANKS@ is how many ranks;
// what follows @FAULTS@ in a word is one for the fault matrix alone.
#include "tests/bench/peer_list.hpp"

#include <fstream>
#include <stdexcept>

namespace bench {

PeerList read_peer_list(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error(path +
                             " cannot be read: the build makes it (that of peers with -Dpeers=enabled)");
  PeerList list;
  for (std::string line; std::getline(file, line);) {
    const peers::Words words = peers::split(line);
    if (words.size() < 3) continue;
    if (words[0] == "-") {
      list.missing.push_back(words[1] + ": not installed (" + words[2] + ")");
    } else {
      list.offers.push_back({words[0], words[1], {words.begin() + 2, words.end()}});
    }
  }
  return list;
}

peers::Words peer_command(const PeerOffer& offer, int ranks, bool faults) {
  static const std::string mark = "@FAULTS@";
  peers::Words command;
  for (const std::string& word : offer.words) {
    const bool marked = word.starts_with(mark);
    if (marked && !faults) continue;
    command.push_back(word == "@RANKS@" ? std::to_string(ranks) : marked ? word.substr(mark.size()) : word);
  }
  return command;
}

}  // namespace bench
