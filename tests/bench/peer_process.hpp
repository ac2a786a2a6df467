// SPDX-License-Identifier: Apache-2.0
// A peer in one or several processes that dist_bench starts, queries, watches and stops.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/peers/protocol.hpp"

namespace bench {

// The peer did not start, died, or did not answer in time.
class PeerLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns the process and all its living descendants. Descendants of a process that has ended are not found.
std::vector<pid_t> with_descendants(pid_t process);

class PeerProcess {
 public:
  // Returns when the peer is ready. Throws PeerLost. The thread that calls this must outlive the object.
  explicit PeerProcess(const peers::Words& command);
  // Ends the peer by closing its input, or otherwise by killing it.
  ~PeerProcess();
  // Kills the peer and its descendants at once, because it may hang.
  void put_down();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  const std::string& name() const { return name_; }
  const peers::Words& forms() const { return forms_; }
  // The peer and its descendants, such as the ranks of a launcher.
  const std::vector<pid_t>& processes() const { return processes_; }
  // Their CPU time so far.
  double cpu_us() const;

  // Gives the peer up and throws PeerLost. From then on, lost() returns the reason.
  [[noreturn]] void lose(const std::string& what);
  const std::string& lost() const { return lost_; }

  // Sends a command and waits for its answer. Throws PeerLost.
  peers::Words ask(const std::string& command);
  // Returns the last line that it printed on stderr.
  std::string last_words();

 private:
  void start(const peers::Words& command);
  void stop();
  void close_pipes();
  bool read_answer(peers::Words& answer, double limit_us);

  struct Close {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  std::string name_ = "it", lost_;
  peers::Words forms_;
  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
  std::unique_ptr<FILE, Close> errors_;  // its stderr
  std::string unread_;
  std::vector<pid_t> processes_;
};

}  // namespace bench
