// SPDX-License-Identifier: Apache-2.0
// A program with parameter servers, workers and their coordinator. In TensorFlow and here, all of them are in
// one process and communicate by gRPC over loopback.
#pragma once

#include <dist/experimental/coordinator.h>
#include <dist/experimental/rpc.h>
#include <dist/experimental/server.h>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/golden/harness/replay.hpp"

namespace golden {

using Server = Handle<dist_server, dist_server_destroy>;
using Coordinator = Handle<dist_coordinator, dist_coordinator_destroy>;
using Remote = Handle<dist_remote_value, dist_remote_value_release>;

// A function that a worker runs on one of its threads. An exception becomes the closure's error.
using ClosureFn = std::function<Value(dist_closure* closure, dist_value* arguments)>;
using Closures = std::map<std::string, ClosureFn>;

class Servers {
 public:
  // Starts the case's num_ps and num_workers servers and waits for them. Variables are divided by
  // FixedShardsPartitioner(num_shards). Every server registers the closures, which are functions of the
  // program.
  Servers(Replay& replay, int32_t num_shards, Closures closures);
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;
  // Checks that they still work, whatever the program did, and ends them.
  void end();

  dist_strategy* strategy() const noexcept { return strategy_.get(); }
  dist_coordinator* get() const noexcept { return coordinator_.get(); }

  // tf.Variable(initial) in scope. Throws Failed if it is rejected.
  std::string create(const Value& initial);
  Value read(const std::string& name) const;
  // coordinator.schedule(closure, args), join() and done(); `closure` may be NULL.
  Remote schedule(const char* closure, const Value& arguments = {}) const;
  void join() const;
  bool done() const;

 private:
  Server start_server(std::string* address);
  void make_strategy(const std::vector<std::string>& ps, const std::vector<std::string>& workers);
  void await_workers() const;

  Replay& replay_;
  int32_t num_shards_;
  Closures closures_;
  // Each of these members uses the ones above it, and is destroyed before them.
  std::vector<Server> servers_;
  Strategy strategy_;
  Coordinator coordinator_;
  int num_created_ = 0;
};

// remote.fetch()
Value fetch(const Remote& remote);

}  // namespace golden
