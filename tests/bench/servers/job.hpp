// SPDX-License-Identifier: Apache-2.0
// A parameter server, a worker and their coordinator, each a process on loopback. The plain gRPC server runs
// in the parameter server's process, and its client in the coordinator's, which is this one.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "dist/dist.hpp"
#include "dist/experimental/coordinator.hpp"
#include "tests/bench/servers/plain.hpp"

namespace bench::servers {

// If the program was started as a server, runs it until it is killed. Otherwise, returns false.
bool be_server(int argc, char** argv);

// The process of a server.
class Server {
 public:
  Server(const char* role, std::size_t bytes);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  pid_t process() const { return process_; }
  // Its own address, and that of plain gRPC if it has one.
  const std::string& address() const { return address_; }
  const std::string& plain_address() const { return plain_address_; }

 private:
  pid_t process_ = -1;
  std::string address_, plain_address_;
};

class Job {
 public:
  // One variable of f32. The worker runs this number of closures at a time.
  explicit Job(std::size_t bytes, int closures_at_a_time = 1);

  // This process and the servers.
  std::vector<pid_t> processes() const;

  // Changes the values that are pushed from now on.
  void renew();
  void push() { coordinator_.assign("v", DIST_ASSIGN, given_); }
  void pull() { got_ = coordinator_.read("v"); }
  void plain_push() { plain_.push(data_); }
  void plain_pull() { plain_.pull(pulled_); }
  // Throws std::runtime_error unless both have pulled what was pushed last.
  void check() const;

  // Schedules closures and waits until they have ended. Each adds 1 to the variable's element if `push` is
  // set, or does nothing.
  void run_closures(int closures, bool push);
  // Throws std::runtime_error unless the variable's element has grown by this number since the last renew().
  void check_added(int closures);

 private:
  dist::const_tensor tensor() const;

  std::vector<std::byte> data_, pulled_;
  Server parameter_server_, worker_;
  dist::strategy_ref here_;
  dist::strategy strategy_;
  dist::coordinator coordinator_;
  PlainClient plain_;
  dist::value given_, got_;
  int renewed_ = 0;
};

}  // namespace bench::servers
