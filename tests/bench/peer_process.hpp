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

// It did not start, died, or did not answer in time.
class PeerLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// It and all that it has started that still lives; of what was started in turn, only where the starter lives.
std::vector<pid_t> with_descendants(pid_t process);

class PeerProcess {
 public:
  // Returns when it has said that it is ready. Throws PeerLost. The thread that makes it must outlive it.
  explicit PeerProcess(const peers::Words& command);
  // Ends it: by the end of its input, or else by force.
  ~PeerProcess();
  // Ends it and all that it started at once, since it may hang.
  void put_down();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  const std::string& name() const { return name_; }
  const peers::Words& forms() const { return forms_; }
  // It and all that it started, such as a launcher's ranks.
  const std::vector<pid_t>& processes() const { return processes_; }
  // Their CPU time so far.
  double cpu_us() const;

  // Gives it up, and why: throws PeerLost, and lost() gives the words from then on.
  [[noreturn]] void lose(const std::string& what);
  const std::string& lost() const { return lost_; }

  // Sends a command and waits for its answer. Throws PeerLost.
  peers::Words ask(const std::string& command);
  // The last that it complained of.
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
  std::unique_ptr<FILE, Close> errors_;  // what it prints on stderr
  std::string unread_;
  std::vector<pid_t> processes_;
};

}  // namespace bench
