// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/worker_matrix.hpp"

#include <memory>

#include "tests/faults/runner.hpp"
#include "tests/faults/worker_expected.hpp"
#include "tests/faults/worker_play.hpp"

namespace faults {
namespace {

class WorkerPlayer {
 public:
  explicit WorkerPlayer(std::vector<WorkerResult>& results) : results_(results) {}
  ~WorkerPlayer() { leave_cluster(); }
  WorkerPlayer(const WorkerPlayer&) = delete;
  WorkerPlayer& operator=(const WorkerPlayer&) = delete;

  void play(const WorkerCell& cell) {
    const std::string text = cell.text();
    playing(text);
    if (cluster_ == nullptr || !cluster_->serves(cell)) enter_cluster(cell);
    latest_ = cell;
    WorkerResult& result = results_[static_cast<std::size_t>(cell.when)];
    ++result.cells;
    const auto outcome = std::make_unique<WorkerOutcome>();
    faults::play(*cluster_, cell, *outcome);
    std::string wrong = judge(cell, *outcome);
    if (wrong.empty()) wrong = play_well(*cluster_, cell);
    if (!wrong.empty()) {
      ++result.wrong;
      result.find(text + ": " + wrong);
    }
    const int64_t cause = outcome->cause_ns.load();
    for (int w = 0; w < cell.workers; ++w) {
      const int64_t returned = outcome->runs[w].returned_ns;
      if (w != cell.guilty && returned >= cause) result.latencies_ns.push_back(returned - cause);
    }
  }

 private:
  void enter_cluster(const WorkerCell& cell) {
    leave_cluster();
    before_ = holdings();
    cluster_ = std::make_unique<Cluster>(cell);
  }
  void leave_cluster() {
    if (cluster_ == nullptr) return;
    WorkerResult& result = results_[static_cast<std::size_t>(latest_.when)];
    std::string left = cluster_->end() ? "" : "a strategy does not end: " + std::string(dist_last_error());
    cluster_ = nullptr;
    if (left.empty()) left = left_behind(before_);
    if (left.empty()) return;
    ++result.leftovers;
    result.find("after " + latest_.text() + ": " + left);
  }

  std::vector<WorkerResult>& results_;
  std::unique_ptr<Cluster> cluster_;
  WorkerCell latest_;
  Holdings before_;
};

}  // namespace

std::vector<WorkerResult> play_all(WorkerFault fault, const Options& options) {
  std::vector<WorkerResult> results(kWhens);
  for (int when = 0; when < kWhens; ++when) {
    results[static_cast<std::size_t>(when)].fault = fault;
    results[static_cast<std::size_t>(when)].when = static_cast<When>(when);
  }
  {
    WorkerPlayer player(results);
    for (const WorkerCell& cell : worker_cells_of(fault, options.whole, options.seed)) {
      if (cell.text().find(options.filter) != std::string::npos) player.play(cell);
    }
  }
  std::erase_if(results, [](const WorkerResult& result) { return result.cells == 0; });
  playing("");
  return results;
}

}  // namespace faults
