// SPDX-License-Identifier: Apache-2.0
// Peers that are separate programs (folder peers), and programs that use libdist from other languages (folder
// bindings): which ones exist, and their turns in a row.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/bench/peer_list.hpp"
#include "tests/bench/peer_process.hpp"
#include "tests/bench/targets.hpp"

namespace bench {

class Peers {
 public:
  Peers() = default;  // none
  // From the list that the build made. Throws std::runtime_error where it cannot be read.
  explicit Peers(const std::string& list);

  bool empty() const { return offers_.empty(); }
  // Why some take no part, a line each.
  const std::vector<std::string>& skipped() const { return skipped_; }
  // Names and versions of those that have been started.
  const std::vector<std::string>& names() const { return names_; }

  // Sees to it that all run for this many replicas, and none for another number.
  void start(int replicas);
  // One group's forms that can do this. A peer's forms that are far from the group's fastest are left out:
  // the fastest counts, and the others only take time. Of a binding those on host threads are asked for, or
  // those that are not: the one without a name. Throws PeerLost, and std::runtime_error on a wrong result.
  std::vector<std::unique_ptr<Side>> sides(PeerGroup group, const peers::Request& request,
                                           bool on_host_threads = false);
  // The same, with those that are far from the fastest.
  std::vector<std::unique_ptr<Side>> all_sides(PeerGroup group, const peers::Request& request);
  // Throws away those that do not answer any more; their rows go on without them.
  void forget_lost();
  double cpu_us() const;

 private:
  std::vector<std::unique_ptr<Side>> sides_up_to(double too_slow, PeerGroup group,
                                                 const peers::Request& request, bool on_host_threads);
  struct Offer {
    PeerGroup group;
    PeerOffer start;
    std::unique_ptr<PeerProcess> process;
  };
  std::vector<Offer> offers_;
  std::vector<std::string> skipped_, names_;
  int replicas_ = 0;
};

}  // namespace bench
