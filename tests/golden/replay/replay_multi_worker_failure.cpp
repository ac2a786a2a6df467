// SPDX-License-Identifier: Apache-2.0
// The topics "failure/..." of area "multi_worker": workers that disagree or do not arrive
// (replay_multi_worker_death.cpp has those that die). TensorFlow lets some of them hang, so its recorded
// answers cannot be libdist's. Here, all of them must fail with a report and continue.
#include <array>

#include "programs.hpp"
#include "worker_program.hpp"

namespace golden {
namespace {

constexpr int64_t kPatienceNs = 20'000'000'000;
constexpr int64_t kShortNs = 300'000'000;  // timeout of calls in which no other worker takes part

struct Scenario {
  std::string_view name;
  dist_status status;  // of all workers that call
  const char* words;   // in the report
  bool first_alone;    // only worker 0 calls
};
constexpr std::array<Scenario, 4> kScenarios{{
    {"shape_mismatch", DIST_INVALID_ARGUMENT, "worker", false},
    {"dtype_mismatch", DIST_INVALID_ARGUMENT, "worker", false},
    {"missing_call", DIST_DEADLINE_EXCEEDED, "worker 1", true},
    {"timeout_option", DIST_DEADLINE_EXCEEDED, "worker 1", true},
}};

class Failure {
 public:
  Failure(Replay& replay, const Scenario& scenario)
      : replay_(replay), scenario_(scenario), workers_(replay, kPatienceNs), calls_(workers_.size()) {}

  void play() {
    on_all("first_all_reduce", false, [](Worker&) { return Tensor{DIST_F32, 1}; });
    const bool shapes = scenario_.name == "shape_mismatch";
    const bool dtypes = scenario_.name == "dtype_mismatch";
    on_all(scenario_.first_alone ? "all_reduce_only_worker_0" : "all_reduce_mismatch", true,
           [&](Worker& worker) {
             return Tensor{dtypes && worker.id != 0 ? DIST_F64 : DIST_F32,
                           shapes ? (worker.id == 0 ? 3 : 2) : 1};
           });
    // A worker that did not arrive gets the report at its next call. After that, it is in step again.
    if (scenario_.first_alone) {
      workers_.on_all([&](Worker& worker) {
        if (worker.id != 0) must_fail(all_reduce_of(worker, {DIST_F32, 1}, false));
      });
    }
    on_all("all_reduce_afterwards", false, [](Worker&) { return Tensor{DIST_F32, 1}; });
    std::vector<Json> answers;
    for (std::vector<Json>& own : calls_) {
      std::vector<std::pair<std::string, Json>> members;
      members.emplace_back("calls", replay_.array(std::move(own)));
      answers.push_back(replay_.object(std::move(members)));
    }
    replay_.record("per_worker", replay_.array(std::move(answers)));
    workers_.end();
  }

 private:
  struct Tensor {
    dist_dtype dtype;
    int64_t elements;
  };
  struct Outcome {
    Value result;
    std::optional<Failed> failed;
  };

  Outcome all_reduce_of(Worker& worker, const Tensor& tensor, bool fails) {
    Outcome outcome;
    dist_collective_options given = DIST_COLLECTIVE_OPTIONS_INIT;
    if (fails && scenario_.first_alone) given.timeout_ns = kShortNs;
    try {
      outcome.result = run(worker.strategy.get(), [&](dist_replica* replica, dist_value*, dist_value*) {
        const std::vector<double> ones(static_cast<std::size_t>(tensor.elements), 1);
        const Value value = replay_.tensor(tensor.dtype, {tensor.elements}, ones);
        Value sum;
        check(dist_all_reduce_value(replica, DIST_REDUCE_SUM, value.get(), &given, sum.out()));
        return sum;
      });
    } catch (const Failed& failed) {
      outcome.failed = failed;
    }
    return outcome;
  }

  void must_fail(const Outcome& outcome) const {
    if (outcome.failed && outcome.failed->status == scenario_.status &&
        outcome.failed->message.find(scenario_.words) != std::string::npos)
      return;
    throw Unknown{"a failure without its report: " +
                  (outcome.failed ? outcome.failed->message : "it went on")};
  }

  void on_all(const char* id, bool fails, const std::function<Tensor(Worker&)>& tensor) {
    std::vector<std::optional<Outcome>> outcomes(workers_.size());
    workers_.on_all([&](Worker& worker) {
      if (fails && scenario_.first_alone && worker.id != 0) return;
      outcomes[static_cast<std::size_t>(worker.id)] = all_reduce_of(worker, tensor(worker), fails);
    });
    for (std::size_t w = 0; w < outcomes.size(); ++w) {
      if (!outcomes[w]) continue;
      if (fails) must_fail(*outcomes[w]);
      if (!fails && outcomes[w]->failed) throw *outcomes[w]->failed;
      std::vector<std::pair<std::string, Json>> members;
      members.emplace_back("id", replay_.json(id));
      if (fails) {
        members.emplace_back("error", replay_.encode_error(outcomes[w]->failed->status));
      } else {
        members.emplace_back("result", replay_.encode(outcomes[w]->result));
      }
      calls_[w].push_back(replay_.object(std::move(members)));
    }
  }

  Replay& replay_;
  const Scenario& scenario_;
  Workers workers_;
  std::vector<std::vector<Json>> calls_;
};

}  // namespace

void replay_worker_failure(Replay& replay) {
  if (replay_worker_death(replay)) return;
  for (const Scenario& one : kScenarios) {
    if (one.name == replay.text("scenario")) return Failure(replay, one).play();
  }
  replay.unknown("scenario " + std::string(replay.text("scenario")));
}

}  // namespace golden
