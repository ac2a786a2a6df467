// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/matrix.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/faults/actor.hpp"
#include "tests/faults/expected.hpp"
#include "tests/faults/play.hpp"
#include "tests/faults/runner.hpp"

namespace faults {
namespace {

constexpr std::chrono::seconds kHang{60};
constexpr std::size_t kMostFindings = 5;

// Names the current cell for the guard thread.
class Progress {
 public:
  void begin(const std::string& cell) {
    const std::lock_guard lock(mutex_);
    cell_ = cell;
    ++count_;
  }
  [[noreturn]] void watch() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const uint64_t seen = count_;
      never_.wait_for(lock, kHang, [&] { return count_ != seen; });
      if (count_ != seen || cell_.empty()) continue;
      std::printf("Bail out! hang: %s\n", cell_.c_str());
      std::fflush(stdout);
      _exit(1);
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable never_;
  std::string cell_;
  uint64_t count_ = 0;
};

// Never destroyed, because the guard thread never ends.
Progress& progress() {
  static auto* const the_progress = new Progress;
  return *the_progress;
}

class Player {
 public:
  explicit Player(std::vector<ClassResult>& results) : results_(results) {}
  ~Player() { leave_stage(); }
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  void play(const Cell& cell) {
    const std::string text = cell.text();
    progress().begin(text);
    if (stage_ == nullptr || !stage_->serves(cell)) enter_stage(cell);
    latest_ = cell;
    ClassResult& result = results_[static_cast<std::size_t>(cell.form)];
    ++result.cells;
    const auto outcome = std::make_unique<Outcome>();
    faults::play(*stage_, cell, *outcome);
    std::string wrong = judge(cell, *outcome);
    if (wrong.empty()) wrong = play_well(*stage_, cell);
    if (!wrong.empty()) {
      ++result.wrong;
      result.find(text + ": " + wrong);
    }
    const int64_t cause = outcome->cause_ns.load();
    for (int r = 0; r < cell.members; ++r) {
      const Side& side = outcome->sides[r];
      if (r != cell.guilty && side.returned_ns >= cause && cause != 0)
        result.latencies_ns.push_back(side.returned_ns - cause);
    }
  }

 private:
  void enter_stage(const Cell& cell) {
    leave_stage();
    before_ = holdings();
    stage_ = std::make_unique<Stage>(cell, read_clock);
  }
  void leave_stage() {
    if (stage_ == nullptr) return;
    ClassResult& result = results_[static_cast<std::size_t>(latest_.form)];
    std::string left = stage_->end() ? "" : "a strategy does not end: " + std::string(dist_last_error());
    stage_ = nullptr;
    if (left.empty()) left = left_behind(before_);
    if (left.empty()) return;
    ++result.leftovers;
    result.find("after cells of " + std::string(fault_name(result.fault)) + " with " +
                std::to_string(latest_.members) + (latest_.devices() ? " devices" : " replicas") +
                ", threads " + threads_name(latest_.threads) + ": " + left);
  }

  std::vector<ClassResult>& results_;
  std::unique_ptr<Stage> stage_;
  Cell latest_;
  Holdings before_;
};

}  // namespace

void Tally::find(std::string finding) {
  if (findings.size() < kMostFindings) findings.push_back(std::move(finding));
}

void playing(const std::string& cell) { progress().begin(cell); }

std::vector<ClassResult> play_all(Fault fault, const Options& options) {
  std::vector<ClassResult> results(kForms);
  for (int form = 0; form < kForms; ++form) {
    results[static_cast<std::size_t>(form)].fault = fault;
    results[static_cast<std::size_t>(form)].form = static_cast<Form>(form);
  }
  {
    Player player(results);
    for (const Cell& cell : cells_of(fault, options.whole, options.seed)) {
      if (cell.text().find(options.filter) != std::string::npos) player.play(cell);
    }
  }
  std::erase_if(results, [](const ClassResult& result) { return result.cells == 0; });
  progress().begin("");
  return results;
}

void guard_against_hangs() {
  std::thread([] { progress().watch(); }).detach();
}

}  // namespace faults
