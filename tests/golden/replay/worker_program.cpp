// SPDX-License-Identifier: Apache-2.0
#include "worker_program.hpp"

#include <exception>

#include "programs.hpp"
#include "worker_threads.hpp"

namespace golden {

std::string config_of(const Json& tasks, std::size_t me, const std::vector<std::string>& addresses) {
  rapidjson::Document config(rapidjson::kObjectType);
  JsonMemory& memory = config.GetAllocator();
  Json cluster(rapidjson::kObjectType);
  for (rapidjson::SizeType i = 0; i < tasks.Size(); ++i) {
    const std::string_view type = text_of(tasks[i][0]);
    if (find(cluster, type) == nullptr) {
      Json name(type.data(), static_cast<rapidjson::SizeType>(type.size()), memory);
      cluster.AddMember(name, Json(rapidjson::kArrayType), memory);
    }
    Json& of_type = const_cast<Json&>(member(cluster, type));
    of_type.PushBack(Json(addresses[i].c_str(), memory), memory);
  }
  Json task(rapidjson::kObjectType);
  task.AddMember("type", Json(tasks[static_cast<rapidjson::SizeType>(me)][0], memory), memory);
  task.AddMember("index", Json(tasks[static_cast<rapidjson::SizeType>(me)][1], memory), memory);
  config.AddMember("cluster", cluster, memory);
  config.AddMember("task", task, memory);
  return to_text(config);
}

Workers::Workers(Replay& replay, int64_t timeout_ns) : replay_(replay) {
  const Json& tasks = member(replay.strategy_description(), "tasks");
  const int32_t n = static_cast<int32_t>(tasks.Size());
  check(dist_network_create(n, nullptr, network_.out()));
  std::vector<std::string> addresses;  // no connection is made to these
  for (int32_t w = 0; w < n; ++w) addresses.push_back("host" + std::to_string(w) + ":1");
  for (int32_t w = 0; w < n; ++w) {
    auto worker = std::make_unique<Worker>();
    const Json& task = tasks[static_cast<rapidjson::SizeType>(w)];
    worker->id = w;
    worker->task_type = text_of(task[0]);
    worker->task_id = task[1].GetInt();
    const std::string config = config_of(tasks, static_cast<std::size_t>(w), addresses);
    dist_cluster_resolver_options found = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
    found.tf_config = config.c_str();
    check(dist_cluster_resolver_create_tf_config(&found, worker->resolver.out()));
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_worker_options options_worker = DIST_WORKER_OPTIONS_INIT;
    options.worker = &options_worker;
    options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
    options.num_replicas = member(replay.strategy_description(), "replicas_per_worker").GetInt();
    options.timeout_ns = timeout_ns;
    options_worker.cluster_resolver = worker->resolver.get();
    options_worker.network = network_.get();
    check(dist_strategy_create(&options, worker->strategy.out()));
    all_.push_back(std::move(worker));
  }
}

void Workers::on_all(const std::function<void(Worker&)>& body) {
  struct Bodies {
    Workers& workers;
    const std::function<void(Worker&)>& body;
    std::vector<std::exception_ptr> thrown;
  } bodies{*this, body, std::vector<std::exception_ptr>(size())};
  golden_on_workers(
      size(),
      [](std::size_t w, void* user_data) {
        Bodies& all = *static_cast<Bodies*>(user_data);
        try {
          all.body(all.workers[w]);
        } catch (...) {
          all.thrown[w] = std::current_exception();
        }
      },
      &bodies);
  rethrow_kept();
  for (const std::exception_ptr& one : bodies.thrown) {
    if (one != nullptr) std::rethrow_exception(one);
  }
}

void Workers::record(const std::function<Json(Worker&)>& of) {
  std::vector<Json> answers;
  for (const auto& worker : all_) {
    std::vector<std::pair<std::string, Json>> members;
    members.emplace_back("expected", of(*worker));
    answers.push_back(replay_.object(std::move(members)));
  }
  replay_.record("per_worker", replay_.array(std::move(answers)));
}

void Workers::end() {
  on_all([this](Worker& worker) {
    run(worker.strategy.get(), [this](dist_replica* replica, dist_value*, dist_value*) -> Value {
      const Value sum = all_reduce(replica, DIST_REDUCE_SUM, replay_.scalar("float32", 1));
      if (Replay::number_of(sum.get()) != dist_replica_num_replicas(replica)) {
        raise(DIST_UNKNOWN, "afterwards all_reduce(SUM, 1.0) is wrong");
      }
      return {};
    });
  });
  for (const auto& worker : all_) {
    check(dist_strategy_destroy(worker->strategy.get()));
    static_cast<void>(worker->strategy.release());
  }
}

}  // namespace golden
