// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/worker_play.hpp"

#include <pthread.h>
#include <sched.h>

#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/faults/actor.hpp"
#include "tests/faults/runner.hpp"
#include "tests/faults/step.hpp"

namespace faults {
namespace {

std::atomic<int64_t> the_clock_ns{1};
// Counts how often a replica's thread has read the clock.
thread_local std::atomic<int>* looks = nullptr;

int64_t look_at_clock(void*) {
  if (looks != nullptr) looks->fetch_add(1);
  return the_clock_ns.load();
}

void must(dist_status status) {
  if (status != DIST_OK) std::abort();
}

dist_cluster_resolver* resolver_of(int workers, int me) {
  std::string json = "{\"worker\": [";
  for (int w = 0; w < workers; ++w) json += (w == 0 ? "\"w" : ", \"w") + std::to_string(w) + ":1\"";
  json += "]}";
  dist_cluster_spec* spec = nullptr;
  must(dist_cluster_spec_from_json(json.c_str(), nullptr, &spec));
  dist_cluster_resolver_options options = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  options.task_type = "worker";
  options.has_task_id = 1;
  options.task_id = me;
  dist_cluster_resolver* resolver = nullptr;
  must(dist_cluster_resolver_create_simple(spec, &options, &resolver));
  dist_cluster_spec_destroy(spec);
  return resolver;
}

}  // namespace

Cluster::Cluster(const WorkerCell& cell)
    : threads_(cell.threads), workers_(cell.workers), replicas_(cell.replicas), timed_(cell.timed()) {
  dist_network_options network = DIST_NETWORK_OPTIONS_INIT;
  network.allocator = counting_allocator();
  must(dist_network_create(workers_, &network, &network_));
  for (int w = 0; w < workers_; ++w) {
    dist_cluster_resolver* const resolver = resolver_of(workers_, w);
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
    options.worker = &worker;
    dist_host_options host = DIST_HOST_OPTIONS_INIT;
    options.host = &host;
    options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    options.num_replicas = replicas_;
    worker.cluster_resolver = resolver;
    worker.network = network_;
    options.threads = threads_;
    options.timeout_ns = -1;  // no deadline, so that a hang is noticed
    host.allocator = counting_allocator();
    if (timed_) host.clock = look_at_clock;
    must(dist_strategy_create(&options, &strategies_[w]));
    dist_cluster_resolver_destroy(resolver);
  }
}

bool Cluster::end() {
  bool well = true;
  for (dist_strategy* const strategy : strategies_) well = dist_strategy_destroy(strategy) == DIST_OK && well;
  dist_network_destroy(network_);
  return well;
}

std::string tag_of(const WorkerCell& cell, int step) {
  return "step " + std::to_string(step) + " of " + collective_name(cell.collective);
}

namespace {

struct WorkerScene {
  Cluster& cluster;
  const WorkerCell& cell;
  WorkerOutcome& out;
  std::atomic<int> looked[kMostMembers] = {};
  std::atomic<bool> over[kMostWorkers] = {};
  std::atomic<bool> inside{false};  // the guilty member has reached the point where its strategy is shut down

  void cause() {
    int64_t none = 0;
    out.cause_ns.compare_exchange_strong(none, now_ns());
  }
  // Waits until all replicas except the guilty ones have reached the phase. A replica that has left its run
  // stays in its last phase.
  void await(int phase) const {
    for (int r = 0; r < cell.members(); ++r) {
      while (!cell.is_guilty(r) && out.sides[r].phase.load() < phase) sched_yield();
    }
  }
  // Waits until the runs of the other workers have ended.
  void await_runs() const {
    for (int w = 0; w < cell.workers; ++w) {
      while (w != cell.guilty && !over[w].load()) sched_yield();
    }
  }
  // Waits until waiting leaders have read the clock some more times.
  void await_looks() const {
    for (int w = 0; w < cell.workers; ++w) {
      const int leader = w * cell.replicas;
      if (cell.is_guilty(leader)) continue;
      const int seen = looked[leader].load();
      while (looked[leader].load() < seen + 10) sched_yield();
    }
  }
};

class WorkerActor {
 public:
  WorkerActor(WorkerScene& scene, dist_replica* member)
      : scene_(scene),
        cell_(scene.cell),
        member_(member),
        me_(dist_replica_id(member)),
        side_(scene.out.sides[me_]) {}

  // Throws if that is the fault.
  dist_status play() {
    looks = &scene_.looked[me_];
    dist_status status = DIST_OK;
    for (int k = 0; k < kSteps && status == DIST_OK && !gone_; ++k) {
      const bool here = k == cell_.step();
      status = here && cell_.is_guilty(me_) ? misbehave(k) : behave(k, here);
    }
    looks = nullptr;
    side_.returned_ns = now_ns();
    side_.status = status;
    if (status != DIST_OK) side_.report = latest_report();
    side_.phase.store(kBack);
    if (gone_ && cell_.fault == WorkerFault::kThrown) throw std::runtime_error("no promise kept");
    return gone_ && cell_.fault == WorkerFault::kErrorReturned ? dist_fail(DIST_NOT_FOUND, "no row 7")
                                                               : status;
  }

 private:
  dist_status behave(int k, bool here) {
    Step step(member_, recipe(k));
    if (here && cell_.at_planning()) side_.phase.store(kComing);
    dist_status status = step.prepare();
    if (here && !cell_.at_planning()) side_.phase.store(kComing);
    if (status == DIST_OK) status = step.begin();
    return status == DIST_OK ? step.end() : status;
  }
  Step::Recipe recipe(int k) const {
    Step::Recipe made{cell_.collective, cell_.form, cell_.size, tag_of(cell_, k)};
    if (cell_.timed() && k == cell_.step()) made.timeout_ns = kTimeoutNs;
    return made;
  }
  dist_status misbehave(int k) {
    Step::Recipe mine = recipe(k);
    cell_.spoil(&mine.kind, &mine.wrong);
    Step step(member_, mine);
    dist_status status = cell_.disagrees() ? DIST_OK : step.prepare();
    if (status != DIST_OK) return status;
    scene_.await(kComing);
    status = act();
    if (status != DIST_OK || gone_) return status;
    if (cell_.disagrees()) status = step.prepare();
    if (status == DIST_OK) status = step.begin();
    return status == DIST_OK ? step.end() : status;
  }
  // Acts before the step, if the member still does the step.
  dist_status act() {
    switch (cell_.fault) {
      case WorkerFault::kEarlyReturn:
      case WorkerFault::kErrorReturned:
      case WorkerFault::kThrown:
        scene_.cause();
        gone_ = true;
        break;
      case WorkerFault::kLate:
        if (me_ == cell_.first_guilty()) {
          scene_.await_looks();
          scene_.cause();
          the_clock_ns.fetch_add(2 * kTimeoutNs);
        }
        scene_.await(kBack);
        scene_.await_runs();
        break;
      case WorkerFault::kCancelled:
        scene_.cause();
        return dist_strategy_cancel(dist_replica_strategy(member_)) == DIST_OK ? DIST_OK : DIST_INTERNAL;
      case WorkerFault::kShutDown:
        scene_.inside.store(true);
        scene_.await(kBack);
        break;
      default: scene_.cause();
    }
    return DIST_OK;
  }

  WorkerScene& scene_;
  const WorkerCell& cell_;
  dist_replica* const member_;
  const int me_;
  Side& side_;
  bool gone_ = false;
};

dist_status take_part(dist_replica* member, void* scene) {
  return WorkerActor(*static_cast<WorkerScene*>(scene), member).play();
}

void run_worker(WorkerScene& scene, int worker) {
  WorkerOutcome::Run& run = scene.out.runs[worker];
  if (scene.cell.fault == WorkerFault::kDestroyed && worker == scene.cell.guilty) {
    scene.await(kComing);
    scene.cause();
    run.status = dist_strategy_destroy(scene.cluster.take(worker));
  } else {
    run.status = dist_run(scene.cluster.strategy(worker), take_part, &scene, nullptr);
  }
  if (run.status != DIST_OK) run.report = latest_report();
  run.returned_ns = now_ns();
  scene.over[worker].store(true);
}

dist_status work_well(dist_replica* member, void* user_data) {
  const auto& cell = *static_cast<const WorkerCell*>(user_data);
  dist_status status = Step(member, {cell.collective, Form::kBlocking, cell.size, "next"}).all();
  const int64_t length = 1;
  int32_t number = dist_replica_id(member) + 1;
  dist_tensor tensor = {&number, DIST_I32, 1, &length, nullptr};
  if (status == DIST_OK)
    status = dist_all_reduce(member, DIST_REDUCE_SUM, &tensor, &tensor, 1, nullptr, nullptr);
  if (status != DIST_OK) return status;
  const int n = cell.members();
  return number == n * (n + 1) / 2 ? DIST_OK : dist_fail(DIST_INTERNAL, "a wrong sum");
}

}  // namespace

void play(Cluster& cluster, const WorkerCell& cell, WorkerOutcome& out) {
  WorkerScene scene{cluster, cell, out};
  std::vector<std::thread> threads;
  dist_strategy* const ending =
      cell.fault == WorkerFault::kShutDown ? cluster.strategy(cell.guilty) : nullptr;
  for (int w = 0; w < cell.workers; ++w) threads.emplace_back([&scene, w] { run_worker(scene, w); });
  if (ending != nullptr) {
    while (!scene.inside.load()) sched_yield();
    scene.cause();
    (void)cluster.take(cell.guilty);
    // Does not wait for functions that are running, because the guilty one waits for its peers there.
    const dist_status status = dist_strategy_shutdown(ending, 0);
    if (status != DIST_OK && status != DIST_DEADLINE_EXCEEDED) std::abort();
    if (dist_strategy_destroy(ending) != DIST_OK) std::abort();
  }
  for (std::thread& thread : threads) thread.join();
}

std::string play_well(const Cluster& cluster, const WorkerCell& cell) {
  struct Result {
    dist_status status = DIST_OK;
    Report report;
  } results[kMostWorkers];
  std::vector<std::thread> threads;
  for (int w = 0; w < cell.workers; ++w) {
    if (cluster.strategy(w) == nullptr) continue;
    threads.emplace_back([&, w] {
      WorkerCell given = cell;
      results[w].status = dist_run(cluster.strategy(w), work_well, &given, nullptr);
      if (results[w].status != DIST_OK) results[w].report = latest_report();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int w = 0; w < cell.workers; ++w) {
    if (cluster.strategy(w) == nullptr) continue;
    const Report& report = results[w].report;
    const std::string who = "the next run of worker " + std::to_string(w) + ": ";
    if (!cell.loses() && results[w].status != DIST_OK) return who + report.message;
    if (!cell.loses()) continue;
    if (results[w].status != DIST_UNAVAILABLE || report.worker != cell.guilty)
      return who + "not lost, but " + dist_status_name(results[w].status) + " by worker " +
             std::to_string(report.worker) + ": " + report.message;
  }
  return "";
}

}  // namespace faults
