// SPDX-License-Identifier: Apache-2.0
// A line is GROUP LABEL WORD..., or - LABEL PACKAGES if the peer is not installed. @RANKS@ stands for the
// number of ranks. A word that begins with @FAULTS@ is used only in the fault matrix. If the first word
// begins with @BENCH@, the line is used only in the benchmark: it is another way to start a peer that the
// fault matrix already has, or a peer that has only an all_reduce. If the first word begins with @PROCESSES@,
// the line is used only for the faults of processes. If the peer is not installed, these two marks come after
// PACKAGES.
#include "tests/bench/peer_list.hpp"

#include <fstream>
#include <stdexcept>

namespace bench {

namespace {

const std::string kFaults = "@FAULTS@", kBench = "@BENCH@", kProcesses = "@PROCESSES@";

}  // namespace

PeerList read_peer_list(const std::string& path, PeerUse use) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error(path +
                             " cannot be read: the build makes it (that of peers with -Dpeers=enabled)");
  PeerList list;
  for (std::string line; std::getline(file, line);) {
    const peers::Words words = peers::split(line);
    if (words.size() < 3) continue;
    const bool missing = words[0] == "-";
    const bool of_processes = missing ? words.back() == kProcesses : words[2].starts_with(kProcesses);
    const bool of_bench = missing ? words.back() == kBench : words[2].starts_with(kBench);
    if (use == PeerUse::kProcesses ? !of_processes : !missing && of_processes) continue;
    if (use != PeerUse::kBench && of_bench) continue;
    if (missing) {
      list.missing.push_back(words[1] + ": not installed (" + words[2] + ")");
    } else {
      list.offers.push_back({words[0], words[1], {words.begin() + 2, words.end()}});
    }
  }
  return list;
}

peers::Words peer_command(const PeerOffer& offer, int ranks, bool faults) {
  peers::Words command;
  for (std::string word : offer.words) {
    if (word.starts_with(kFaults) && !faults) continue;
    for (const std::string& mark : {kFaults, kBench, kProcesses}) {
      if (word.starts_with(mark)) word.erase(0, mark.size());
    }
    command.push_back(word == "@RANKS@" ? std::to_string(ranks) : word);
  }
  return command;
}

}  // namespace bench
