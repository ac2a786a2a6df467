// SPDX-License-Identifier: Apache-2.0
// The topics "failure/death..." of area "multi_worker": the last worker's process dies. The others receive an
// error in their current call and in later calls. Each worker is a process here, too.
#include <memory>

#include "input_program.hpp"
#include "worker_processes.hpp"
#include "worker_program.hpp"

namespace golden {
namespace {

constexpr int64_t kTimeoutNs = 20'000'000'000;
constexpr int kDeath = 17;  // exit code of the last worker

struct Scenario {
  std::string_view name;
  bool during;                     // the last worker dies while the others wait for it
  std::vector<const char*> calls;  // calls that the others make then
};
const Scenario kScenarios[] = {
    {"death", false, {"all_reduce_after_death", "second_all_reduce_after_death"}},
    {"death_during", true, {"all_reduce_in_flight_when_the_last_worker_dies"}},
};

class Death {
 public:
  Death(Replay& replay, const Scenario& scenario)
      : replay_(replay), scenario_(scenario), tasks_(member(replay.strategy_description(), "tasks")) {
    const std::vector<std::string> addresses = free_addresses(tasks_.Size());
    for (std::size_t w = 0; w < addresses.size(); ++w) {
      const std::string config = config_of(tasks_, w, addresses);
      processes_.push_back(std::make_unique<WorkerProcess>(
          [&](const ToParent& parent) { return work(w + 1 == addresses.size(), config, parent); }));
    }
    calls_.resize(processes_.size());
    ends_.resize(processes_.size());
  }

  void play() {
    const std::size_t last = processes_.size() - 1;
    for (std::size_t w = 0; w <= last; ++w) hear(w);
    if (scenario_.during) {
      for (std::size_t w = 0; w < last; ++w) processes_[w]->tell();
      for (std::size_t w = 0; w < last; ++w) processes_[w]->next();
    }
    processes_[last]->tell();
    ends_[last] = processes_[last]->end();
    for (std::size_t w = 0; w < last; ++w) {
      if (!scenario_.during) processes_[w]->tell();
      for (std::size_t i = 0; i < scenario_.calls.size(); ++i) hear(w);
      ends_[w] = processes_[w]->end();
    }
    record();
  }

 private:
  // ---- In a worker's process

  int work(bool dies, const std::string& config, const ToParent& parent) {
    Strategy strategy = strategy_of(config);
    parent.say(all_reduce_of(strategy.get(), "first_all_reduce"));
    parent.listen();
    if (dies) return kDeath;
    if (scenario_.during) parent.say("calls");
    for (const char* id : scenario_.calls) parent.say(all_reduce_of(strategy.get(), id));
    check(dist_strategy_destroy(strategy.release()));
    return 0;
  }

  Strategy strategy_of(const std::string& config) const {
    ClusterResolver resolver;
    dist_cluster_resolver_options found = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
    found.tf_config = config.c_str();
    check(dist_cluster_resolver_create_tf_config(&found, resolver.out()));
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
    options.worker = &worker;
    options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    options.num_replicas = member(replay_.strategy_description(), "replicas_per_worker").GetInt();
    options.timeout_ns = kTimeoutNs;
    worker.cluster_resolver = resolver.get();
    Strategy strategy;
    check(dist_strategy_create(&options, strategy.out()));
    return strategy;
  }

  // all_reduce(SUM, 1.0), with its outcome as a line of text.
  std::string all_reduce_of(dist_strategy* strategy, const char* id) {
    Json outcome;
    try {
      Value sum;
      run(strategy, [&](dist_replica* replica, dist_value*, dist_value*) {
        const Value one = replay_.scalar("float32", 1);
        check(dist_all_reduce_value(replica, DIST_REDUCE_SUM, one.get(), nullptr, sum.out()));
        return Value();
      });
      outcome =
          object(replay_, "id", replay_.json(id), "expected", object(replay_, "result", replay_.encode(sum)));
    } catch (const Failed& failed) {
      must_name_the_dead(failed.message);
      outcome = object(replay_, "id", replay_.json(id), "error", replay_.encode_error(failed.status));
    }
    return to_text(outcome);
  }

  // The report must name the worker that died.
  void must_name_the_dead(const std::string& message) const {
    const std::string name = "worker " + std::to_string(tasks_.Size() - 1);
    if (message.find(name) == message.npos) raise(DIST_UNKNOWN, "a report without " + name + ": " + message);
  }

  // ---- In the case's process

  // Reads the outcome of the next call.
  void hear(std::size_t worker) {
    rapidjson::Document outcome(&replay_.memory());
    outcome.Parse<rapidjson::kParseFullPrecisionFlag>(processes_[worker]->next());
    if (outcome.HasParseError()) throw Unknown{"a worker's line that is no JSON"};
    calls_[worker].push_back(std::move(static_cast<Json&>(outcome)));
  }

  void record() {
    std::vector<Json> answers;
    for (std::size_t w = 0; w < processes_.size(); ++w) {
      std::vector<Json> fatal;  // what ended it, other than its own exit
      if (ends_[w].signal != 0) fatal.push_back(replay_.json("signal " + std::to_string(ends_[w].signal)));
      answers.push_back(object(replay_, "exit_code", replay_.json(ends_[w].code), "calls",
                               replay_.array(std::move(calls_[w])), "fatal_log",
                               replay_.array(std::move(fatal))));
    }
    replay_.record("per_worker", replay_.array(std::move(answers)));
  }

  Replay& replay_;
  const Scenario& scenario_;
  const Json& tasks_;
  std::vector<std::unique_ptr<WorkerProcess>> processes_;
  std::vector<std::vector<Json>> calls_;
  std::vector<WorkerProcess::End> ends_;
};

}  // namespace

bool replay_worker_death(Replay& replay) {
  for (const Scenario& one : kScenarios) {
    if (one.name != replay.text("scenario")) continue;
    Death(replay, one).play();
    return true;
  }
  return false;
}

}  // namespace golden
