// SPDX-License-Identifier: Apache-2.0
// A worker makes three runs. All workers are correct in the first one, one makes a mistake in the second, and
// in the third all are correct again or receive another report that one is lost.
#include "tests/faults/process_worker.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>

#include <csignal>
#include <stdexcept>
#include <thread>

#include "tests/faults/process_page.hpp"
#include "tests/faults/runner.hpp"
#include "tests/faults/step.hpp"

namespace faults {
namespace {

constexpr int kNumbers = 3000;  // in a sum whose result is checked

// Sums numbers that all replicas know. Sets `right` to false if the result is wrong.
dist_status add_numbers(dist_replica* member, int salt, bool* right) {
  const int n = dist_replica_num_replicas(member);
  const int me = dist_replica_id(member);
  std::vector<int32_t> numbers(kNumbers);
  for (int i = 0; i < kNumbers; ++i) numbers[static_cast<std::size_t>(i)] = (me + 1) * (i + salt);
  const int64_t length = kNumbers;
  dist_tensor tensor = {numbers.data(), DIST_I32, 1, &length, nullptr};
  const dist_status status = dist_all_reduce(member, DIST_REDUCE_SUM, &tensor, &tensor, 1, nullptr, nullptr);
  *right = true;
  for (int i = 0; i < kNumbers && status == DIST_OK; ++i)
    *right = *right && numbers[static_cast<std::size_t>(i)] == n * (n + 1) / 2 * (i + salt);
  return status;
}

struct Place {
  ProcessPage& page;
  const int worker;
};

dist_status work_well(dist_replica* member, void* user_data) {
  const Place& place = *static_cast<const Place*>(user_data);
  const WorkerCell& cell = place.page.cell;
  dist_status status = Step(member, {cell.collective, cell.form, cell.size, "well"}).all();
  bool right = true;
  if (status == DIST_OK) status = add_numbers(member, 7, &right);
  if (!right) place.page.workers[place.worker].wrong_data.fetch_add(1);
  return status;
}

class ProcessActor {
 public:
  ProcessActor(const Place& place, dist_replica* member)
      : page_(place.page),
        cell_(place.page.cell),
        worker_(place.page.workers[place.worker]),
        member_(member),
        me_(dist_replica_id(member)),
        side_(place.page.replicas[me_]) {}

  // Throws if that is the fault.
  dist_status play() {
    dist_status status = DIST_OK;
    for (int k = 0; k < kSteps && status == DIST_OK && !gone_; ++k) {
      const bool here = k == cell_.step();
      status = here && cell_.is_guilty(me_) ? misbehave(k) : behave(recipe(k), here);
      bool right = true;
      if (status == DIST_OK && !gone_ && cell_.checked) status = add_numbers(member_, k, &right);
      if (!right) worker_.wrong_data.fetch_add(1);
    }
    side_.returned_ns = now_ns();
    side_.status = status;
    if (status != DIST_OK) side_.report.keep(latest_report());
    go_to(kBack);
    if (gone_ && cell_.fault == WorkerFault::kThrown) throw std::runtime_error("no promise kept");
    return gone_ && cell_.fault == WorkerFault::kErrorReturned ? dist_fail(DIST_NOT_FOUND, "no row 7")
                                                               : status;
  }

 private:
  void go_to(int phase) {
    if (phase == kComing) side_.coming_ns = now_ns();
    side_.phase.store(phase);
    page_.changed();
  }
  void await(int phase) {
    page_.await([&] { return page_.peers_are(phase); });
  }
  void await_runs() {
    page_.await([&] { return page_.peers_runs_are_over(); });
  }
  dist_status behave(const Step::Recipe& recipe, bool here) {
    Step step(member_, recipe);
    if (here && cell_.at_planning()) go_to(kComing);
    dist_status status = step.prepare();
    if (here && !cell_.at_planning()) go_to(kComing);
    if (status == DIST_OK) status = step.begin();
    return status == DIST_OK ? step.end() : status;
  }
  Step::Recipe recipe(int k) const {
    Step::Recipe made{cell_.collective, cell_.form, cell_.size, tag_of(cell_, k)};
    if (cell_.timed() && k == cell_.step()) made.timeout_ns = page_.timeout_ns;
    return made;
  }
  Step::Recipe barrier(int k) const {
    Step::Recipe made = recipe(k);
    made.kind = DIST_COLLECTIVE_BARRIER;
    return made;
  }

  dist_status misbehave(int k) {
    Step::Recipe mine = recipe(k);
    mine.flat = cell_.fault == WorkerFault::kOtherRank;
    cell_.spoil(&mine.kind, &mine.wrong);
    Step step(member_, mine);
    dist_status status = cell_.disagrees() ? DIST_OK : step.prepare();
    if (status != DIST_OK) return status;
    await(kComing);
    if (cell_.fault != WorkerFault::kLate) status = act(k);
    if (status != DIST_OK || gone_) return status;
    if (cell_.disagrees()) status = step.prepare();
    if (cell_.fault == WorkerFault::kLate) await(kBack), await_runs();
    if (status == DIST_OK) status = step.begin();
    return status == DIST_OK ? step.end() : status;
  }
  // Acts before the step, if the member still does the step.
  dist_status act(int k) {
    switch (cell_.fault) {
      case WorkerFault::kEarlyReturn:
      case WorkerFault::kErrorReturned:
      case WorkerFault::kThrown: gone_ = true; break;
      case WorkerFault::kKilled: page_.cause(), raise(SIGKILL); break;
      case WorkerFault::kExited: page_.cause(), _exit(0);
      case WorkerFault::kStopped:
        // Only once: it is not continued a second time.
        if (page_.cause()) raise(SIGSTOP);
        break;
      case WorkerFault::kCutOff:
        page_.inside.store(true), page_.changed();
        await_runs();
        return DIST_OK;
      case WorkerFault::kCancelled:
        page_.cause();
        return dist_strategy_cancel(dist_replica_strategy(member_));
      case WorkerFault::kShutDown:
        page_.inside.store(true), page_.changed();
        await(kBack);
        return DIST_OK;
      case WorkerFault::kOtherOrder: page_.cause(); return Step(member_, barrier(k)).all();
      default: break;
    }
    page_.cause();
    return DIST_OK;
  }

  ProcessPage& page_;
  const WorkerCell& cell_;
  ProcessPage::Worker& worker_;
  dist_replica* const member_;
  const int me_;
  ProcessPage::Replica& side_;
  bool gone_ = false;
};

dist_status take_part(dist_replica* member, void* place) {
  return ProcessActor(*static_cast<const Place*>(place), member).play();
}

dist_status create(const ProcessPage& page, dist_strategy** strategy) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  options.worker = &worker;
  dist_host_options host = DIST_HOST_OPTIONS_INIT;
  options.host = &host;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = page.cell.replicas;
  worker.transport = DIST_TRANSPORT_AUTO;  // shared memory, unless DIST_TRANSPORT selects another one
  options.threads = page.cell.threads;
  options.timeout_ns = page.cell.fault == WorkerFault::kNeverStarted ? page.timeout_ns : -1;
  host.allocator = counting_allocator();
  return dist_strategy_create(&options, strategy);
}

class ProcessWorker {
 public:
  ProcessWorker(ProcessPage& page, int worker)
      : place_{page, worker}, out_(page.workers[worker]), guilty_(worker == page.cell.guilty) {}

  void play() {
    const WorkerCell& cell = place_.page.cell;
    const bool all_there = cell.fault != WorkerFault::kNeverStarted;
    const int64_t before_bytes = holdings().bytes;
    out_.before = create(place_.page, &strategy_);
    if (out_.before == DIST_OK && all_there) out_.before = run(work_well);
    if (out_.before != DIST_OK) {
      out_.before_report.keep(latest_report());
    } else {
      play_fault();
      if (strategy_ != nullptr && all_there) {
        out_.after = run(work_well);
        if (out_.after != DIST_OK) out_.after_report.keep(latest_report());
      }
    }
    out_.told.store(true);
    place_.page.changed();
    // If it left before the others have run again, they would lose it too.
    if (!guilty_) place_.page.await([this] { return place_.page.peers_are_told(); });
    if (strategy_ != nullptr) out_.end = dist_strategy_destroy(strategy_);
    if (out_.end != DIST_OK) out_.end_report.keep(latest_report());
    out_.left_bytes = holdings().bytes - before_bytes;
  }

 private:
  dist_status run(dist_replica_fn function) { return dist_run(strategy_, function, &place_, nullptr); }

  void play_fault() {
    ProcessPage& page = place_.page;
    std::thread ender;
    if (guilty_ && page.cell.fault == WorkerFault::kDestroyed) {
      page.await([&] { return page.peers_are(kComing); });
      page.cause();
      out_.run = dist_strategy_destroy(strategy_);
      strategy_ = nullptr;
    } else {
      dist_strategy* const ending = strategy_;
      if (guilty_ && page.cell.fault == WorkerFault::kShutDown) {
        strategy_ = nullptr;
        ender = std::thread([&page, this, ending] {
          page.await([&] { return page.inside.load(); });
          page.cause();
          // Does not wait for functions that are running, because the guilty one waits for its peers there.
          const dist_status status = dist_strategy_shutdown(ending, 0);
          if (status != DIST_OK && status != DIST_DEADLINE_EXCEEDED) out_.end = status;
          if (dist_strategy_destroy(ending) != DIST_OK) out_.end = DIST_INTERNAL;
        });
      }
      out_.run = dist_run(ending, take_part, &place_, nullptr);
    }
    if (out_.run != DIST_OK) out_.run_report.keep(latest_report());
    out_.returned_ns = now_ns();
    out_.over.store(true);
    page.changed();
    if (ender.joinable()) ender.join();
  }

  Place place_;
  ProcessPage::Worker& out_;
  const bool guilty_;
  dist_strategy* strategy_ = nullptr;
};

}  // namespace

int play_as_process(int page_fd, int worker) {
  void* const at = mmap(nullptr, sizeof(ProcessPage), PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
  if (at == MAP_FAILED || worker < 0 || worker >= kMostWorkers) return 2;
  ProcessWorker(*static_cast<ProcessPage*>(at), worker).play();
  return 0;
}

}  // namespace faults
