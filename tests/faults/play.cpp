// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/play.hpp"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <cstdlib>

#include "tests/faults/actor.hpp"
#include "tests/faults/runner.hpp"

namespace faults {
namespace {

// ---- Around members that are logical devices: the functions of their replica and of the other one ----

template <dist_replica_fn Fn>
dist_status run_on_devices(dist_replica* replica, void* scene, int64_t timeout_ns) {
  const dist_values_fn each = [](dist_replica* device, dist_value*, dist_value*, dist_value**, void* given) {
    return Fn(device, given);
  };
  dist_devices_options options = DIST_DEVICES_OPTIONS_INIT;
  options.timeout_ns = timeout_ns;
  return dist_run_on_devices(replica, each, scene, nullptr, nullptr, &options, nullptr);
}

void tell(std::atomic<bool>& event) {
  event.store(true);
  event.notify_all();
}

// Whatever happens to one replica's devices, those of the other replica succeed, unless everything is
// cancelled.
dist_status act_beside(dist_replica* replica, Scene& scene) {
  scene.run_is_back.wait(false);
  if (scene.cell.fault == Fault::kCancelledOutside) scene.cancelled.wait(false);
  const dist_status status = scene.out.beside = run_on_devices<act_well>(replica, &scene, 0);
  if (status != DIST_OK) scene.out.beside_report = latest_report();
  tell(scene.beside_is_back);
  return status;
}

// Waits until late devices have left, and returns the result of the run after them.
dist_status await_devices(dist_replica* replica) {
  const dist_values_fn nothing = [](dist_replica*, dist_value*, dist_value*, dist_value**, void*) {
    return dist_status{DIST_OK};
  };
  dist_status status;
  while ((status = dist_run_on_devices(replica, nothing, nullptr, nullptr, nullptr, nullptr, nullptr)) ==
         DIST_FAILED_PRECONDITION)
    sched_yield();
  return status;
}

dist_status act_around(dist_replica* replica, void* user_data) {
  struct Back {
    std::atomic<bool>& event;
    ~Back() { tell(event); }  // also if this thread is ended by pthread_exit()
  };
  auto& scene = *static_cast<Scene*>(user_data);
  if (dist_replica_id(replica) != scene.cell.part_of) return act_beside(replica, scene);
  const bool deadline = scene.cell.fault == Fault::kPastDeadline;
  Outcome& out = scene.out;
  {
    const Back back{scene.run_is_back};
    out.run = run_on_devices<act>(replica, &scene, deadline ? kTimeoutNs : 0);
    if (out.run != DIST_OK) out.run_report = latest_report();
  }
  if (deadline && await_devices(replica) != DIST_OK)
    out.trouble = std::string("after the devices' deadline: ") + dist_last_error();
  // Return only afterwards: a failure here would abort the other replica.
  scene.beside_is_back.wait(false);
  return out.run;
}

dist_status act_well_around(dist_replica* replica, void* scene) {
  return run_on_devices<act_well>(replica, scene, 0);
}

// The thread that cancels from outside.
void* cancel_outside(void* argument) {
  Scene& scene = *static_cast<Scene*>(argument);
  if (goes_on_until_stopped(scene.cell)) {
    const int rounds = 1 + scene.cell.members % 3;
    while (scene.rounds.load() < rounds) sched_yield();
  } else {
    scene.await_peers(scene.cell.timed() ? kInside : kComing);
  }
  scene.cause();
  if (dist_strategy_cancel(scene.stage.strategy(scene.cell.timed())) != DIST_OK) std::abort();
  tell(scene.cancelled);
  return nullptr;
}

}  // namespace

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string tag_of(const Cell& cell, const char* which) {
  return std::string(which) + " of " + collective_name(cell.collective);
}

void play(const Stage& stage, const Cell& cell, Outcome& out) {
  Scene scene{stage, cell, out};
  pthread_t outside;
  const bool cancels = cell.fault == Fault::kCancelledOutside;
  if (cancels && pthread_create(&outside, nullptr, cancel_outside, &scene) != 0) std::abort();
  Runner runner(stage.strategy(cell.timed()), cell.threads, cell.devices() ? act_around : act, &scene);
  if (cell.fault == Fault::kPastDeadline && !cell.devices()) {
    runner.run_until(kTimeoutNs);
    scene.run_is_back.store(true);
    // The late member must have left first.
    runner.await_idle();
  } else {
    runner.run(cell.ends_caller());
  }
  (cell.devices() ? out.around : out.run) = runner.status();
  (cell.devices() ? out.around_report : out.run_report) = runner.report();
  if (!runner.trouble().empty()) out.trouble = runner.trouble();
  if (cancels) pthread_join(outside, nullptr);
}

std::string play_well(const Stage& stage, const Cell& cell) {
  Outcome unused;
  Scene scene{stage, cell, unused};
  Runner runner(stage.strategy(cell.timed()), cell.threads, cell.devices() ? act_well_around : act_well,
                &scene);
  runner.run(false);
  if (!runner.trouble().empty()) return runner.trouble();
  return runner.status() == DIST_OK ? "" : "the next run fails: " + runner.report().message;
}

}  // namespace faults
