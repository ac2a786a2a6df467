// SPDX-License-Identifier: Apache-2.0
// Programs whose workers are processes, as in TensorFlow. They are forked before this process has called
// libdist, which cases with gRPC require (catalogue.hpp). They send lines and are told when to continue.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace golden {

// The other end of a worker's process, inside of it.
class ToParent {
 public:
  ToParent(int from, int to) : from_(from), to_(to) {}
  void say(const std::string& line) const;
  // Waits for WorkerProcess::tell().
  void listen() const;

 private:
  int from_;
  int to_;
};

class WorkerProcess {
 public:
  // Runs `body` in a new process, which ends with the code that it returns.
  explicit WorkerProcess(const std::function<int(const ToParent&)>& body);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess();  // kills it, unless it has ended

  // The next line that it says; Failed where it ends before, or says nothing for long.
  std::string next();
  void tell() const;

  struct End {
    int code = 0;    // the exit code
    int signal = 0;  // what it died of, else 0
  };
  // Waits until it has ended.
  End end();

 private:
  pid_t pid_ = -1;
  int from_ = -1;
  int to_ = -1;
  std::string buffer_;
};

// Addresses of loopback on which nobody listens: "127.x.y.z:port".
std::vector<std::string> free_addresses(std::size_t n);

}  // namespace golden
