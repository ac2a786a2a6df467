// SPDX-License-Identifier: Apache-2.0
// Area "cluster": Slurm steps, and the rules of a cluster.
#include "cluster.hpp"

namespace golden {
namespace {

// ---- Slurm

constexpr const char* kSlurmVariables[] = {
    "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_NTASKS", "SLURM_NODELIST",       "SLURM_TASKS_PER_NODE"};

void replay_host_list(Replay& replay) {
  std::vector<std::string> hosts;
  check(dist_slurm_expand_host_list(
      std::string(replay.text("hostlist")).c_str(),
      [](const char* text, std::size_t size, void* user_data) {
        static_cast<std::vector<std::string>*>(user_data)->emplace_back(text, size);
      },
      &hosts));
  std::vector<Json> items;
  for (const std::string& host : hosts) items.push_back(replay.json(host));
  replay.record("hosts", replay.array(std::move(items)));
}

void replay_tasks_per_node(Replay& replay) {
  const std::string text(replay.text("tasks_per_node"));
  std::size_t n = 0;
  check(dist_slurm_expand_tasks_per_node(text.c_str(), nullptr, 0, &n));
  std::vector<int32_t> tasks(n);
  check(dist_slurm_expand_tasks_per_node(text.c_str(), tasks.data(), n, &n));
  std::vector<Json> items;
  for (const int32_t number : tasks) items.push_back(replay.json(number));
  replay.record("tasks", replay.array(std::move(items)));
}

// SlurmClusterResolver's arguments, and the assignment of GPUs that TensorFlow's resolver makes.
class SlurmProgram {
 public:
  explicit SlurmProgram(Replay& replay) : replay_(replay), kwargs_(replay.input("kwargs")) {}

  void run() {
    for (const char* name : kSlurmVariables) set_environment(name, std::nullopt);
    for (const auto& [name, value] : replay_.input("env").GetObject()) {
      set_environment(name.GetString(), std::string(text_of(value)));
    }
    read_arguments();
    check(dist_cluster_resolver_create_slurm(&slurm_, &options_, resolver_.out()));
    replay_.record("constructor_kwargs", arguments());
    replay_.record("task_info_before", task_info());
    replay_.record("cluster_spec", replay_.attempt([&] {
      assign_gpus();
      return spec_of(replay_, resolver_);
    }));
    replay_.record("task_info_after", task_info());
    replay_.record("master", replay_.attempt([&] { return golden::master(replay_, resolver_); }));
    replay_.record("master_worker_1", replay_.attempt([&] {
      assign_gpus();
      return golden::master(replay_, resolver_, "worker", 1);
    }));
    replay_.record("cuda_visible_devices", gpus_.empty() ? replay_.null() : replay_.json(gpus_));
    replay_.record("num_accelerators",
                   replay_.attempt([&] { return golden::num_accelerators(replay_, resolver_, true); }));
    replay_.record("rpc_layer", golden::rpc_layer(replay_, resolver_));
  }

 private:
  bool gpus_given() const { return find(kwargs_, "gpus_per_node") != nullptr; }

  int32_t integer(std::string_view key, int32_t otherwise) const {
    const Json* const given = find(kwargs_, key);
    return given == nullptr || given->IsNull() ? otherwise : given->GetInt();
  }

  void read_arguments() {
    slurm_.port_base = integer("port_base", 0);
    slurm_.gpus_per_host = integer("gpus_per_node", 2);
    slurm_.gpus_per_task = integer("gpus_per_task", gpus_given() ? 0 : 1);
    if (const Json* const jobs = find(kwargs_, "jobs")) {
      for (const auto& [name, tasks] : jobs->GetObject()) {
        jobs_.push_back({name.GetString(), nullptr, nullptr, static_cast<std::size_t>(tasks.GetInt())});
      }
      slurm_.jobs = jobs_.data();
      slurm_.num_jobs = jobs_.size();
    }
    if (const Json* const tasks = find(kwargs_, "tasks_per_node")) {
      if (tasks->IsInt()) slurm_.tasks_on_each_host = tasks->GetInt();
      if (tasks->IsObject()) read_hosts(*tasks);
    }
    if (const Json* const layer = find(kwargs_, "rpc_layer")) options_.rpc_layer = layer->GetString();
  }

  // {"z": 1, "a": 2}
  void read_hosts(const Json& tasks) {
    for (const auto& [host, number] : tasks.GetObject()) {
      hosts_.append(hosts_.empty() ? "" : ",").append(text_of(host));
      numbers_.append(numbers_.empty() ? "" : ",").append(std::to_string(number.GetInt()));
    }
    slurm_.host_list = hosts_.c_str();
    slurm_.tasks_per_node = numbers_.c_str();
  }

  Json arguments() {
    std::vector<std::pair<std::string, Json>> members;
    if (!gpus_given()) members.emplace_back("gpus_per_node", replay_.json(2));
    for (const auto& [name, value] : kwargs_.GetObject()) {
      members.emplace_back(std::string(text_of(name)), Json(value, replay_.memory()));
    }
    if (find(kwargs_, "gpus_per_task") == nullptr) {
      members.emplace_back("gpus_per_task", gpus_given() ? replay_.null() : replay_.json(1));
    }
    return replay_.object(std::move(members));
  }

  Json task_info() {
    std::vector<Json> items;
    items.push_back(task_type(replay_, resolver_));
    items.push_back(task_id(replay_, resolver_));
    return replay_.array(std::move(items));
  }

  // TensorFlow's cluster_spec() sets CUDA_VISIBLE_DEVICES, unless auto_set_gpu is False. libdist leaves the
  // environment to the program.
  void assign_gpus() {
    const Json* const automatic = find(kwargs_, "auto_set_gpu");
    if (automatic != nullptr && !automatic->GetBool()) return;
    char ids[DIST_MAX_ADDRESS_BYTES];
    check(dist_cluster_resolver_gpu_ids(resolver_.get(), ids, sizeof ids));
    gpus_ = ids;
  }

  Replay& replay_;
  const Json& kwargs_;
  dist_slurm_options slurm_ = DIST_SLURM_OPTIONS_INIT;
  dist_cluster_resolver_options options_ = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  std::vector<dist_cluster_job> jobs_;
  std::string hosts_;
  std::string numbers_;
  std::string gpus_;
  ClusterResolver resolver_;
};

// ---- The rules of a cluster

class Rules {
 public:
  explicit Rules(Replay& replay) : replay_(replay), spec_(spec_from_text(replay, replay.input("cluster"))) {
    if (const Json& type = replay.input("task_type"); type.IsString()) {
      text_ = text_of(type);
      type_ = text_.c_str();
    }
    if (const Json& id = replay.input("task_id"); id.IsInt()) id_ = id.GetInt();
  }

  void run() {
    replay_.record("validate_cluster_spec", replay_.attempt([&] {
      check(dist_cluster_validate(spec_.get(), type_, id_));
      return replay_.null();
    }));
    replay_.record("is_chief", replay_.attempt([&] {
      return replay_.json(
          number([&](int32_t* out) { return dist_cluster_is_chief(spec_.get(), type_, id_, out); }) == 1);
    }));
    replay_.record("collective_leader", replay_.attempt([&] {
      return text([&](char* out, std::size_t size) {
        return dist_cluster_collective_leader(spec_.get(), type_, id_, out, size);
      });
    }));
    replay_.record("coordination_leader", replay_.attempt([&] {
      return text([&](char* out, std::size_t size) {
        return dist_cluster_coordination_leader(spec_.get(), out, size);
      });
    }));
    replay_.record("worker_count", replay_.attempt([&] {
      return replay_.json(
          number([&](int32_t* out) { return dist_cluster_worker_count(spec_.get(), type_, out); }));
    }));
    replay_.record("id_in_cluster", replay_.attempt([&] {
      return replay_.json(
          number([&](int32_t* out) { return dist_cluster_id_in_cluster(spec_.get(), type_, id_, out); }));
    }));
    // 0 if there is no such job.
    replay_.record("task_count", replay_.attempt([&] {
      int32_t n = 0;
      const dist_status status = dist_cluster_spec_num_tasks(spec_.get(), type_, &n);
      return replay_.json(status == DIST_OK ? n : 0);
    }));
  }

 private:
  template <class Ask>
  int32_t number(Ask&& ask) {
    int32_t number = 0;
    check(ask(&number));
    return number;
  }
  template <class Ask>
  Json text(Ask&& ask) {
    char room[DIST_MAX_ADDRESS_BYTES];
    check(ask(room, sizeof room));
    return replay_.json(static_cast<const char*>(room));
  }

  Replay& replay_;
  const ClusterSpec spec_;
  std::string text_;
  const char* type_ = nullptr;
  int32_t id_ = DIST_TASK_UNSET;
};

}  // namespace

void replay_slurm(Replay& replay) {
  if (replay.topic(0) == "hostlist") return replay_host_list(replay);
  if (replay.topic(0) == "tasks_per_node") return replay_tasks_per_node(replay);
  if (replay.topic(0) == "resolver") return SlurmProgram(replay).run();
  replay.unknown("a topic of slurm");
}

void replay_multi_worker_util(Replay& replay) {
  if (replay.topic(0) == "normalize") {
    spec_from_text(replay, replay.input("cluster"));
  } else if (replay.topic(0) == "should_save_checkpoint_without_context") {
    int32_t should = 0;  // without a cluster
    check(dist_cluster_should_save_checkpoint(nullptr, nullptr, DIST_TASK_UNSET, &should));
  } else if (replay.topic(0) == "has_worker_context") {
    dist_cluster_resolver* resolver = nullptr;
    check(dist_strategy_cluster_resolver(dist_get_strategy(), &resolver));
    replay.record("result", replay.json(resolver != nullptr));
  } else {
    Rules(replay).run();
  }
}

}  // namespace golden
