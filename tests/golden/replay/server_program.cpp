// SPDX-License-Identifier: Apache-2.0
#include "server_program.hpp"

#include <chrono>
#include <thread>

#include <dist/experimental/coordinator.h>
#include <dist/experimental/rpc.h>
#include <dist/experimental/server.h>
#include "cluster.hpp"

namespace golden {
namespace {

constexpr int64_t kTimeoutNs = 20'000'000'000;

// A closure in every program, to check that its servers work.
constexpr char kProbe[] = "probe";

dist_status run_closure(dist_closure* closure, dist_value* arguments, dist_value** out_result,
                        void* user_data) {
  return guarded(
      [&] { *out_result = (*static_cast<const ClosureFn*>(user_data))(closure, arguments).release(); });
}

// FixedShardsPartitioner(num_shards)(shape, dtype)
dist_status fixed_shards(const dist_tensor* spec, int64_t* out_partitions, void* user_data) {
  return dist_partitions_fixed_shards(spec->shape, static_cast<std::size_t>(spec->ndim), 0,
                                      *static_cast<const int32_t*>(user_data), out_partitions);
}

}  // namespace

Servers::Servers(Replay& replay, int32_t num_shards, Closures closures)
    : replay_(replay), num_shards_(num_shards), closures_(std::move(closures)) {
  closures_[kProbe] = [](dist_closure*, dist_value* arguments) { return Value::share(arguments); };
  const auto start = [&](const char* how_many) {
    std::vector<std::string> addresses(member(replay.strategy_description(), how_many).GetUint());
    for (std::string& address : addresses) servers_.push_back(start_server(&address));
    return addresses;
  };
  const std::vector<std::string> ps = start("num_ps");
  const std::vector<std::string> workers = start("num_workers");
  make_strategy(ps, workers);
  dist_coordinator_options options = DIST_COORDINATOR_OPTIONS_INIT;
  options.partitioner = fixed_shards;
  options.partitioner_user_data = &num_shards_;
  check(dist_coordinator_create(strategy_.get(), &options, coordinator_.out()));
  await_workers();
}

Server Servers::start_server(std::string* address) {
  Server server;
  check(dist_server_create_local(nullptr, server.out()));
  for (auto& [name, fn] : closures_)
    check(dist_server_register(server.get(), name.c_str(), run_closure, &fn, nullptr));
  check(dist_server_start(server.get()));
  const std::string target = dist_server_target(server.get());
  *address = target.substr(target.find("://") + 3);
  return server;
}

void Servers::make_strategy(const std::vector<std::string>& ps, const std::vector<std::string>& workers) {
  std::vector<const char*> texts;
  for (const auto* const addresses : {&ps, &workers}) {
    for (const std::string& address : *addresses) texts.push_back(address.c_str());
  }
  const dist_cluster_job jobs[] = {{"ps", texts.data(), nullptr, ps.size()},
                                   {"worker", texts.data() + ps.size(), nullptr, workers.size()}};
  ClusterSpec spec;
  ClusterResolver resolver;
  check(dist_cluster_spec_create(jobs, 2, nullptr, spec.out()));
  check(dist_cluster_resolver_create_simple(spec.get(), nullptr, resolver.out()));
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &worker;
  options.kind = DIST_STRATEGY_PARAMETER_SERVER;
  options.timeout_ns = kTimeoutNs;
  worker.cluster_resolver = resolver.get();
  check(dist_strategy_create(&options, strategy_.out()));
}

// TensorFlow's strategy waits until it is connected to all of its servers. libdist's strategy does not wait,
// so a worker that is not connected yet would leave its closures to other workers.
void Servers::await_workers() const {
  dist_coordinator_stats stats = DIST_COORDINATOR_STATS_INIT;
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kTimeoutNs);
  for (;;) {
    check(dist_coordinator_query(coordinator_.get(), &stats));
    if (stats.workers_up == stats.num_workers) return;
    if (std::chrono::steady_clock::now() > end)
      raise(DIST_DEADLINE_EXCEEDED,
            std::to_string(stats.workers_up) + " of " + std::to_string(stats.num_workers) + " workers came");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Servers::end() {
  // The status is an error that the program has not fetched. The next closure shows that the coordinator
  // still works.
  [[maybe_unused]] const dist_status status =
      dist_coordinator_join(coordinator_.get(), DIST_NO_TIMEOUT, nullptr);
  const Value seven = replay_.scalar("float32", 7);
  const Value back = fetch(schedule(kProbe, seven));
  if (Replay::number_of(back.get()) != 7) raise(DIST_UNKNOWN, "afterwards a closure gives another value");
  join();
  if (!done()) raise(DIST_UNKNOWN, "afterwards closures are left");
  coordinator_.reset();
  check(dist_strategy_destroy(strategy_.get()));
  static_cast<void>(strategy_.release());
  for (Server& server : servers_) {
    check(dist_server_join(server.get(), kTimeoutNs, nullptr));
    check(dist_server_destroy(server.get()));
    static_cast<void>(server.release());
  }
}

std::string Servers::create(const Value& initial) {
  dist_tensor view;
  check(dist_value_tensor(initial.get(), &view));
  std::string name = "v" + std::to_string(num_created_);
  check(dist_coordinator_create_variable(coordinator_.get(), name.c_str(), &view, nullptr));
  ++num_created_;
  return name;
}

Value Servers::read(const std::string& name) const {
  const char* const names[] = {name.c_str()};
  Value value;
  check(dist_coordinator_read(coordinator_.get(), names, 1, value.out()));
  return value;
}

Remote Servers::schedule(const char* closure, const Value& arguments) const {
  Remote remote;
  check(dist_coordinator_schedule(coordinator_.get(), closure, arguments.get(), nullptr, remote.out()));
  return remote;
}

void Servers::join() const { check(dist_coordinator_join(coordinator_.get(), DIST_NO_TIMEOUT, nullptr)); }

bool Servers::done() const {
  int32_t done = 0;
  check(dist_coordinator_done(coordinator_.get(), &done));
  return done != 0;
}

Value fetch(const Remote& remote) {
  Value value;
  check(dist_remote_value_get(remote.get(), kTimeoutNs, value.out()));
  return value;
}

}  // namespace golden
