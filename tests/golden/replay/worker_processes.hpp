// SPDX-License-Identifier: Apache-2.0
// Programs whose workers are processes, as in TensorFlow. They are forked before this process has called
// libdist, which cases with gRPC require (catalogue.hpp). They send lines and are told when to continue.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace golden {

// A worker's connection to its parent, inside the worker's process.
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
  // Runs `body` in a new process, which exits with the code that it returns.
  explicit WorkerProcess(const std::function<int(const ToParent&)>& body);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess();  // kills the process if it is still running

  // Returns the next line that it writes. Throws Failed if it ends before, or writes nothing for a long time.
  std::string next();
  void tell() const;

  struct End {
    int code = 0;    // the exit code
    int signal = 0;  // the signal that killed it, or 0
  };
  // Waits until it has ended.
  End end();

 private:
  pid_t pid_ = -1;
  int from_ = -1;
  int to_ = -1;
  std::string buffer_;
};

// Returns loopback addresses on which nothing listens: "127.x.y.z:port".
std::vector<std::string> free_addresses(std::size_t n);

}  // namespace golden
