// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/actor.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/faults/step.hpp"

namespace faults {
namespace {

std::atomic<int64_t> the_clock_ns{1};
thread_local Side* waiting_side = nullptr;
thread_local int looks_on_the_way = 0;  // Number of times that a member reads the clock before it arrives, to
                                        // check whether it is too late.

// One member's part of the script.
class Actor {
 public:
  Actor(Scene& scene, dist_replica* member)
      : scene_(scene),
        cell_(scene.cell),
        member_(member),
        me_(dist_replica_id(member)),
        side_(scene.out.sides[me_]) {}

  dist_status play();

 private:
  Step::Recipe recipe(const char* which) const;
  Step::Recipe barrier(const char* which) const;
  dist_status before() { return Step(member_, barrier("before")).all(); }
  dist_status after() { return Step(member_, barrier("after")).all(); }
  void coming() {
    side_.thread.store(static_cast<int>(syscall(SYS_gettid)));
    side_.phase.store(kComing);
    waiting_side = &side_;
    looks_on_the_way = cell_.fault == Fault::kPastDeadline ? 1 : 0;
  }

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
  dist_replica* const member_;
  const int me_;
  Side& side_;
};

Step::Recipe Actor::recipe(const char* which) const {
  Step::Recipe made{cell_.collective, cell_.form, cell_.size, tag_of(cell_, which)};
  const bool everywhere = cell_.collective == DIST_COLLECTIVE_MERGE_CALL || !cell_.grouped;
  if (!everywhere) made.group = scene_.group(member_, 0);
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
  Step step(member_, recipe("step"));
  dist_status status = cell_.at_planning() ? DIST_OK : step.prepare();
  if (status != DIST_OK) return status;
  coming();
  status = finish(step);
  return status == DIST_OK ? after() : status;
}

dist_status Actor::come_late() {
  Step step(member_, recipe("step"));
  const dist_status status = step.prepare();
  if (status != DIST_OK) return status;
  for (int r = 0; r < cell_.members; ++r) {
    while (r != me_ && scene_.out.sides[r].phase.load() != kBack) sched_yield();
  }
  return finish(step);
}

dist_status Actor::go_on_until_stopped() {
  coming();
  dist_status status;
  do {
    status = Step(member_, recipe("step")).all();
    if (me_ == cell_.guilty) scene_.rounds.fetch_add(1);
  } while (status == DIST_OK);
  return status;
}

dist_status Actor::misbehave() {
  Step::Recipe mine = recipe("step");
  mine.wrong = cell_.fault;
  Step step(member_, mine);
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
  if (cell_.fault == Fault::kOppositeGroups) other.group = scene_.group(member_, 1);
  const dist_status status = Step(member_, other).all();
  if (status != DIST_OK || cell_.fault == Fault::kSkipped) return status;
  return finish(step);
}

// Holds up the peers until they time out or are cancelled.
dist_status Actor::hold_up(Step& step) {
  gate();
  if (cell_.fault == Fault::kCancelledOutside) {
    while (!scene_.cancelled.load()) sched_yield();
  } else {
    if (cell_.fault == Fault::kPastDeadline) scene_.await_sleep_of_peers();
    scene_.cause();
    if (cell_.fault == Fault::kCancelled) {
      if (dist_strategy_cancel(dist_replica_strategy(member_)) != DIST_OK) return DIST_INTERNAL;
    } else {
      the_clock_ns.fetch_add(2 * kTimeoutNs);
    }
  }
  if (cell_.order == Order::kPeersFirst) scene_.await_peers(kBack);
  // For a caller that does not take part in the run, the run has ended at its deadline.
  if (cell_.fault == Fault::kPastDeadline && !cell_.guilty_calls()) {
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

}  // namespace

int64_t read_clock(void*) {
  if (Side* side = waiting_side; side != nullptr && looks_on_the_way-- <= 0) {
    int coming = kComing;
    side->phase.compare_exchange_strong(coming, kInside);
  }
  return the_clock_ns.load();
}

void Scene::await_sleep_of_peers() const {
  const auto sleeps = [](int thread) {
    std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string words;
    std::getline(stat, words);
    const auto name_end = words.rfind(')');
    return name_end != std::string::npos && words.compare(name_end, 3, ") S") == 0;
  };
  for (int r = 0; r < cell.members; ++r) {
    while (r != cell.guilty && !sleeps(out.sides[r].thread.load())) sched_yield();
  }
}

const dist_group* Scene::group(dist_replica* member, int which) const {
  if (!cell.devices()) return stage.group(cell.timed(), which);
  const dist_group* along = nullptr;
  if (which == 0 && dist_device_axis_group(member, kAxis, &along) != DIST_OK) std::abort();
  return along;
}

bool goes_on_until_stopped(const Cell& cell) {
  return cell.fault == Fault::kCancelledOutside && cell.order == Order::kRace;
}

dist_status act(dist_replica* member, void* scene) {
  return Actor(*static_cast<Scene*>(scene), member).play();
}

dist_status act_well(dist_replica* member, void* user_data) {
  const auto& scene = *static_cast<const Scene*>(user_data);
  const Cell& cell = scene.cell;
  Step::Recipe mine{cell.collective, cell.form, cell.size, tag_of(cell, "next")};
  if (cell.grouped && cell.collective != DIST_COLLECTIVE_MERGE_CALL) mine.group = scene.group(member, 0);
  dist_status status = Step(member, mine).all();
  const int64_t length = 1;
  int32_t number = dist_replica_id(member) + 1;
  dist_tensor tensor = {&number, DIST_I32, 1, &length, nullptr};
  if (status == DIST_OK)
    status = dist_all_reduce(member, DIST_REDUCE_SUM, &tensor, &tensor, 1, nullptr, nullptr);
  if (status != DIST_OK) return status;
  const int n = cell.members;
  return number == n * (n + 1) / 2 ? DIST_OK : dist_fail(DIST_INTERNAL, "a wrong sum");
}

}  // namespace faults
