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
  // Reads the list that the build made. Throws std::runtime_error if it cannot be read.
  explicit Peers(const std::string& list);

  bool empty() const { return offers_.empty(); }
  // The reasons why some peers do not take part, one line each.
  const std::vector<std::string>& skipped() const { return skipped_; }
  // Names and versions of the peers that have been started.
  const std::vector<std::string>& names() const { return names_; }

  // Starts all peers with this number of replicas, and ends those with another number.
  void start(int replicas);
  // Returns the forms of one group that support the request. Forms of a peer that are much slower than the
  // group's fastest are left out, because only the fastest counts. For a binding, returns the forms on host
  // threads, or else the form without a name. Throws PeerLost, and std::runtime_error for a wrong result.
  std::vector<std::unique_ptr<Side>> sides(PeerGroup group, const peers::Request& request,
                                           bool on_host_threads = false);
  // The same, including the slow ones.
  std::vector<std::unique_ptr<Side>> all_sides(PeerGroup group, const peers::Request& request);
  // Removes peers that no longer answer. Their rows continue without them.
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
