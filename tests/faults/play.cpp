// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/play.hpp"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <cstdlib>

#include "tests/faults/runner.hpp"
#include "tests/faults/step.hpp"

namespace faults {
namespace {

constexpr int64_t kTimeoutNs = 1'000'000'000;  // by the hand-moved clock

std::atomic<int64_t> the_clock_ns{1};
thread_local Side* waiting_side = nullptr;

int64_t read_clock(void*) {
  if (Side* side = waiting_side) {
    int coming = kComing;
    side->phase.compare_exchange_strong(coming, kInside);
  }
  return the_clock_ns.load();
}

// What all threads of a played cell share.
struct Scene {
  const Stage& stage;
  const Cell& cell;
  Outcome& out;
  std::atomic<int> rounds{0};          // of the guilty replica, where all go on until they are stopped
  std::atomic<bool> cancelled{false};  // from outside
  std::atomic<bool> run_is_back{false};

  // Waits until all replicas but the guilty one, and `beside` it, are that far.
  void await_peers(int phase, int beside = -1) const {
    for (int r = 0; r < cell.replicas; ++r) {
      if (r == cell.guilty || r == beside) continue;
      while (out.sides[r].phase.load() < phase) sched_yield();
    }
  }
  void cause() const { out.cause_ns.store(now_ns()); }
  int late() const { return (cell.guilty + 1) % cell.replicas; }  // of kWorkCancelled
};

// One replica's part.
class Actor {
 public:
  Actor(Scene& scene, dist_replica* replica)
      : scene_(scene),
        cell_(scene.cell),
        replica_(replica),
        me_(dist_replica_id(replica)),
        side_(scene.out.sides[me_]) {}

  dist_status play();

 private:
  Step::Recipe recipe(const char* which) const;
  Step::Recipe barrier(const char* which) const;
  dist_status before() { return Step(replica_, barrier("before")).all(); }
  dist_status after() { return Step(replica_, barrier("after")).all(); }
  void coming() { side_.phase.store(kComing), waiting_side = &side_; }

  dist_status behave();
  dist_status come_late();
  dist_status go_on_until_stopped();
  dist_status misbehave();
  dist_status do_wrong(Step& step);
  dist_status leave(Step& step);
  dist_status elsewhere(Step& step);
  dist_status hold_up(Step& step);
  dist_status cancel_work(Step& step);
  dist_status finish(Step& step) {
    dist_status status = cell_.at_planning() ? step.prepare() : DIST_OK;
    if (status == DIST_OK) status = step.begin();
    return status == DIST_OK ? step.end() : status;
  }
  void gate() const {
    if (cell_.order == Order::kPeersFirst) scene_.await_peers(cell_.timed() ? kInside : kComing);
  }

  Scene& scene_;
  const Cell& cell_;
  dist_replica* const replica_;
  const int me_;
  Side& side_;
};

Step::Recipe Actor::recipe(const char* which) const {
  Step::Recipe made{cell_.collective, cell_.form, cell_.size, tag_of(cell_, which)};
  const bool everywhere = cell_.collective == DIST_COLLECTIVE_MERGE_CALL || !cell_.grouped;
  if (!everywhere) made.group = scene_.stage.group(cell_.timed(), 0);
  if (cell_.fault == Fault::kStalled) made.timeout_ns = kTimeoutNs;
  made.own_operator = cell_.fault == Fault::kOtherFunction;
  return made;
}

Step::Recipe Actor::barrier(const char* which) const {
  Step::Recipe made = recipe(which);
  made.kind = DIST_COLLECTIVE_BARRIER;
  made.timeout_ns = 0;
  made.own_operator = false;
  if (made.form == Form::kPlanned) made.form = Form::kBlocking;
  return made;
}

bool goes_on_until_stopped(const Cell& cell) {
  return cell.fault == Fault::kCancelledOutside && cell.order == Order::kRace;
}

dist_status Actor::play() {
  dist_status status = before();
  if (status == DIST_OK) {
    if (goes_on_until_stopped(cell_)) {
      status = go_on_until_stopped();
    } else if (me_ == cell_.guilty) {
      status = misbehave();
    } else if (cell_.fault == Fault::kWorkCancelled && me_ == scene_.late()) {
      status = come_late();
    } else {
      status = behave();
    }
  }
  waiting_side = nullptr;
  side_.returned_ns = now_ns();
  side_.status = status;
  if (status != DIST_OK) side_.report = latest_report();
  side_.phase.store(kBack);
  return status;
}

dist_status Actor::behave() {
  Step step(replica_, recipe("step"));
  dist_status status = cell_.at_planning() ? DIST_OK : step.prepare();
  if (status != DIST_OK) return status;
  coming();
  status = finish(step);
  return status == DIST_OK ? after() : status;
}

dist_status Actor::come_late() {
  Step step(replica_, recipe("step"));
  const dist_status status = step.prepare();
  if (status != DIST_OK) return status;
  for (int r = 0; r < cell_.replicas; ++r) {
    while (r != me_ && scene_.out.sides[r].phase.load() != kBack) sched_yield();
  }
  return finish(step);
}

dist_status Actor::go_on_until_stopped() {
  coming();
  dist_status status;
  do {
    status = Step(replica_, recipe("step")).all();
    if (me_ == cell_.guilty) scene_.rounds.fetch_add(1);
  } while (status == DIST_OK);
  return status;
}

dist_status Actor::misbehave() {
  Step::Recipe mine = recipe("step");
  mine.wrong = cell_.fault;
  Step step(replica_, mine);
  if (!cell_.at_planning()) {
    const dist_status status = step.prepare();
    if (status != DIST_OK) return status;
  }
  switch (cell_.fault) {
    case Fault::kEarlyReturn:
    case Fault::kErrorReturned:
    case Fault::kErrorUnderWay:
    case Fault::kThreadGone: return leave(step);
    case Fault::kSkipped:
    case Fault::kExtra:
    case Fault::kSwappedOrder:
    case Fault::kOppositeGroups: return elsewhere(step);
    case Fault::kStalled:
    case Fault::kCancelled:
    case Fault::kCancelledOutside:
    case Fault::kPastDeadline: return hold_up(step);
    case Fault::kWorkCancelled: return cancel_work(step);
    default:
      gate();
      scene_.cause();
      return finish(step);
  }
}

dist_status Actor::leave(Step& step) {
  gate();
  if (cell_.fault == Fault::kErrorUnderWay) {
    const dist_status status = finish(step);
    if (status != DIST_OK) return status;
  }
  scene_.cause();
  if (cell_.fault == Fault::kEarlyReturn) return DIST_OK;
  if (cell_.fault == Fault::kThreadGone) pthread_exit(nullptr);
  return dist_fail(DIST_NOT_FOUND, "no row 7");
}

dist_status Actor::elsewhere(Step& step) {
  gate();
  scene_.cause();
  Step::Recipe other = barrier(cell_.fault == Fault::kExtra ? "extra" : "after");
  if (cell_.fault == Fault::kOppositeGroups) other.group = scene_.stage.group(cell_.timed(), 1);
  const dist_status status = Step(replica_, other).all();
  if (status != DIST_OK || cell_.fault == Fault::kSkipped) return status;
  return finish(step);
}

// Its peers get tired of it, or are called off.
dist_status Actor::hold_up(Step& step) {
  gate();
  if (cell_.fault == Fault::kCancelledOutside) {
    while (!scene_.cancelled.load()) sched_yield();
  } else {
    scene_.cause();
    if (cell_.fault == Fault::kCancelled) {
      if (dist_strategy_cancel(dist_replica_strategy(replica_)) != DIST_OK) return DIST_INTERNAL;
    } else {
      the_clock_ns.fetch_add(2 * kTimeoutNs);
    }
  }
  if (cell_.order == Order::kPeersFirst) scene_.await_peers(kBack);
  // A run that its caller is no part of is over for that caller now.
  const bool caller_plays = cell_.threads == DIST_THREADS_CALLER && cell_.guilty == 0;
  if (cell_.fault == Fault::kPastDeadline && !caller_plays) {
    while (!scene_.run_is_back.load()) sched_yield();
  }
  return finish(step);
}

dist_status Actor::cancel_work(Step& step) {
  dist_status status = step.begin();
  if (status != DIST_OK) return status;
  scene_.await_peers(kInside, scene_.late());
  scene_.cause();
  status = step.cancel();
  return status == DIST_OK ? step.end() : status;
}

dist_status act(dist_replica* replica, void* user_data) {
  return Actor(*static_cast<Scene*>(user_data), replica).play();
}

// The one who cancels from outside.
void* cancel_outside(void* argument) {
  Scene& scene = *static_cast<Scene*>(argument);
  if (goes_on_until_stopped(scene.cell)) {
    const int rounds = 1 + scene.cell.replicas % 3;
    while (scene.rounds.load() < rounds) sched_yield();
  } else {
    scene.await_peers(scene.cell.timed() ? kInside : kComing);
  }
  scene.cause();
  if (dist_strategy_cancel(scene.stage.strategy(scene.cell.timed())) != DIST_OK) std::abort();
  scene.cancelled.store(true);
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

Stage::Set Stage::make(int32_t threads, int replicas, bool timed) {
  Set set;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = replicas;
  options.threads = threads;
  options.timeout_ns = -1;  // a hang is to be seen as one
  options.allocator = counting_allocator();
  if (timed) options.clock = read_clock;
  if (dist_strategy_create(&options, &set.strategy) != DIST_OK) std::abort();
  int32_t ids[kMostReplicas];
  for (int r = 0; r < replicas; ++r) ids[r] = r;
  for (dist_group*& group : set.groups) {
    if (dist_group_create(set.strategy, ids, static_cast<size_t>(replicas), &group) != DIST_OK) std::abort();
  }
  return set;
}

Stage::Stage(int32_t threads, int replicas)
    : plain_(make(threads, replicas, false)), timed_(make(threads, replicas, true)) {}

bool Stage::end() {
  bool well = true;
  for (Set* set : {&plain_, &timed_}) {
    for (dist_group*& group : set->groups) well = dist_group_destroy(group) == DIST_OK && well;
    well = dist_strategy_destroy(set->strategy) == DIST_OK && well;
  }
  return well;
}

void play(const Stage& stage, const Cell& cell, Outcome& out) {
  Scene scene{stage, cell, out};
  pthread_t outside;
  const bool cancels = cell.fault == Fault::kCancelledOutside;
  if (cancels && pthread_create(&outside, nullptr, cancel_outside, &scene) != 0) std::abort();
  Runner runner(stage.strategy(cell.timed()), cell.threads, act, &scene);
  if (cell.fault == Fault::kPastDeadline) {
    runner.run_until(kTimeoutNs);
    scene.run_is_back.store(true);
    // Not before the late one is out.
    runner.await_idle();
  } else {
    runner.run(cell.fault == Fault::kThreadGone && cell.threads == DIST_THREADS_CALLER && cell.guilty == 0);
  }
  out.run = runner.status();
  out.run_report = runner.report();
  out.trouble = runner.trouble();
  if (cancels) pthread_join(outside, nullptr);
}

namespace {

dist_status act_well(dist_replica* replica, void* user_data) {
  const auto& scene = *static_cast<const Scene*>(user_data);
  const Cell& cell = scene.cell;
  Step::Recipe mine{cell.collective, cell.form, cell.size, tag_of(cell, "next")};
  if (cell.grouped && cell.collective != DIST_COLLECTIVE_MERGE_CALL) {
    mine.group = scene.stage.group(cell.timed(), 0);
  }
  dist_status status = Step(replica, mine).all();
  const int64_t length = 1;
  int32_t number = dist_replica_id(replica) + 1;
  dist_tensor tensor = {&number, DIST_I32, 1, &length, nullptr};
  if (status == DIST_OK) status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, nullptr);
  if (status != DIST_OK) return status;
  const int n = cell.replicas;
  return number == n * (n + 1) / 2 ? DIST_OK : dist_fail(DIST_INTERNAL, "a wrong sum");
}

}  // namespace

std::string play_well(const Stage& stage, const Cell& cell) {
  Outcome unused;
  Scene scene{stage, cell, unused};
  Runner runner(stage.strategy(cell.timed()), cell.threads, act_well, &scene);
  runner.run(false);
  if (!runner.trouble().empty()) return runner.trouble();
  return runner.status() == DIST_OK ? "" : "the next run fails: " + runner.report().message;
}

}  // namespace faults
