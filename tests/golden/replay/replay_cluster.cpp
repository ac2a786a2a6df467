// SPDX-License-Identifier: Apache-2.0
// Area "cluster": cluster specs, and resolvers of given specs, TF_CONFIG and unions. replay_cluster_more.cpp
// has Slurm and the rules of a cluster.
#include <algorithm>
#include <map>

#include "cluster.hpp"

namespace golden {
namespace {

// ---- Cluster specs

std::vector<std::string> jobs_of(const dist_cluster_spec* spec) {
  std::vector<std::string> jobs;
  for (std::size_t i = 0; i < dist_cluster_spec_num_jobs(spec); ++i) {
    jobs.emplace_back(dist_cluster_spec_job(spec, i));
  }
  return jobs;
}

std::vector<int32_t> indices_of(const dist_cluster_spec* spec, const std::string& job) {
  std::size_t n = 0;
  check(dist_cluster_spec_task_indices(spec, job.c_str(), nullptr, 0, &n));
  std::vector<int32_t> indices(n);
  check(dist_cluster_spec_task_indices(spec, job.c_str(), indices.data(), n, &n));
  return indices;
}

const char* address_of(const dist_cluster_spec* spec, const std::string& job, int32_t task) {
  const char* address = nullptr;
  check(dist_cluster_spec_task_address(spec, job.c_str(), task, &address));
  return address;
}

// Python's text for a spec, with the jobs sorted by name.
std::string printed(Replay& replay, const dist_cluster_spec* spec) {
  const Json dict = as_dict(replay, spec);
  std::map<std::string, std::string> jobs;
  for (const auto& [name, tasks] : dict.GetObject()) {
    std::string text;
    const auto add = [&](const std::string& item) { text.append(text.empty() ? "" : ", ").append(item); };
    if (tasks.IsArray()) {
      for (const Json& one : tasks.GetArray()) add(std::string("'").append(text_of(one)).append("'"));
      text.insert(0, "[").append("]");
    } else {
      for (const auto& [index, one] : tasks.GetObject()) {
        add(std::string(text_of(index)).append(": '").append(text_of(one)).append("'"));
      }
      text.insert(0, "{").append("}");
    }
    jobs[std::string(text_of(name))] = text;
  }
  std::string all;
  for (const auto& [name, text] : jobs)
    all.append(all.empty() ? "'" : ", '").append(name).append("': ").append(text);
  return "ClusterSpec({" + all + "})";
}

// A list with an element for each index up to the last one, like job_tasks().
Json job_tasks(Replay& replay, const dist_cluster_spec* spec, const std::string& job) {
  const std::vector<int32_t> indices = indices_of(spec, job);
  std::vector<Json> items;
  for (const int32_t index : indices) {
    while (static_cast<int32_t>(items.size()) < index) items.push_back(replay.null());
    items.push_back(replay.json(address_of(spec, job, index)));
  }
  return replay.array(std::move(items));
}

Json job_facts(Replay& replay, const dist_cluster_spec* spec, const std::string& job) {
  std::vector<std::pair<std::string, Json>> members;
  members.emplace_back("num_tasks", replay.attempt([&] {
    int32_t n = 0;
    check(dist_cluster_spec_num_tasks(spec, job.c_str(), &n));
    return replay.json(n);
  }));
  members.emplace_back("task_indices", replay.attempt([&] {
    std::vector<Json> items;
    for (const int32_t index : indices_of(spec, job)) items.push_back(replay.json(index));
    return replay.array(std::move(items));
  }));
  members.emplace_back("job_tasks", replay.attempt([&] { return job_tasks(replay, spec, job); }));
  std::vector<std::pair<std::string, Json>> addresses;
  for (const int32_t index : {-1, 0, 1, 2, 3, 5}) {
    addresses.emplace_back(std::to_string(index),
                           replay.attempt([&] { return replay.json(address_of(spec, job, index)); }));
  }
  members.emplace_back("task_address", replay.object(std::move(addresses)));
  return replay.object(std::move(members));
}

void replay_equal(Replay& replay) {
  const ClusterSpec a = spec_from_text(replay, replay.input("a"));
  const ClusterSpec b = spec_from_text(replay, replay.input("b"));
  const bool equal = dist_cluster_spec_is_equal(a.get(), b.get()) == 1;
  replay.record("equal", replay.json(equal));
  if (replay.topic(1) != "dict_vs_list_of_same_tasks") replay.record("not_equal", replay.json(!equal));
}

void replay_spec(Replay& replay) {
  if (replay.topic(0) == "equal") return replay_equal(replay);
  const ClusterSpec spec = spec_from_text(replay, replay.input("cluster"));
  const dist_cluster_spec* const c = spec.get();
  replay.record("as_dict", replay.attempt([&] { return as_dict(replay, c); }));
  std::vector<std::string> jobs = jobs_of(c);
  replay.record("jobs", replay.attempt([&] {
    std::vector<Json> items;
    for (const std::string& job : jobs) items.push_back(replay.json(job));
    return replay.array(std::move(items));
  }));
  replay.record("bool", replay.json(dist_cluster_spec_num_jobs(c) != 0));
  replay.record("str", replay.attempt([&] { return replay.json(printed(replay, c)); }));
  ClusterSpec copy;
  check(dist_cluster_spec_from_json(dist_cluster_spec_json(c), nullptr, copy.out()));
  replay.record("equal_to_copy", replay.json(dist_cluster_spec_is_equal(c, copy.get()) == 1));
  ClusterSpec other;
  check(dist_cluster_spec_from_json(R"({"other": ["x:1"]})", nullptr, other.out()));
  replay.record("equal_to_other", replay.json(dist_cluster_spec_is_equal(c, other.get()) == 1));
  jobs.emplace_back("missing");
  for (const std::string& job : jobs) replay.record("job/" + job, job_facts(replay, c, job));
}

// ---- TF_CONFIG

// Properties that a program sets are options of the resolver, which override what it finds.
void replay_setters(Replay& replay) {
  set_environment("TF_CONFIG",
                  R"({"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 0}})");
  dist_cluster_resolver_options options = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  options.task_type = "chief";
  options.has_task_id = 1;
  options.task_id = 7;
  options.rpc_layer = "foo";
  ClusterResolver resolver;
  check(dist_cluster_resolver_create_tf_config(&options, resolver.out()));
  replay.record("task_type", task_type(replay, resolver));
  replay.record("task_id", task_id(replay, resolver));
  replay.record("rpc_layer", rpc_layer(replay, resolver));
  set_environment("TF_CONFIG", R"({"cluster": {"worker": ["c:3"]}})");
  replay.record("cluster_spec_after_env_change", spec_of(replay, resolver));
  set_environment("TF_CONFIG", std::nullopt);
}

void replay_tf_config(Replay& replay) {
  if (replay.topic(0) == "setters_and_env_reread") return replay_setters(replay);
  const Json& text = replay.input("TF_CONFIG");
  set_environment("TF_CONFIG", text.IsNull() ? std::nullopt : std::optional(std::string(text_of(text))));
  ResolverArguments arguments;
  if (!arguments.read(replay.input("kwargs"))) return;
  ClusterResolver resolver;
  check(dist_cluster_resolver_create_tf_config(arguments.options(), resolver.out()));
  replay.record("cluster_spec", replay.attempt([&] { return spec_of(replay, resolver); }));
  replay.record("task_type", replay.attempt([&] { return task_type(replay, resolver); }));
  replay.record("task_id", replay.attempt([&] { return task_id(replay, resolver); }));
  replay.record("rpc_layer", replay.attempt([&] { return rpc_layer(replay, resolver); }));
  replay.record("environment", replay.attempt([&] { return environment(replay, resolver); }));
  replay.record("master", replay.attempt([&] { return master(replay, resolver); }));
  replay.record("master_worker_0", replay.attempt([&] { return master(replay, resolver, "worker", 0); }));
  replay.record("master_worker_1_rpc_ssl",
                replay.attempt([&] { return master(replay, resolver, "worker", 1, "ssl"); }));
  replay.record("num_accelerators", replay.attempt([&] { return num_accelerators(replay, resolver); }));
  set_environment("TF_CONFIG", std::nullopt);
}

// ---- Given specs, and unions

std::optional<ClusterResolver> simple_resolver(Replay& replay, const Json& cluster, const Json& kwargs) {
  ResolverArguments arguments;
  if (!arguments.read(kwargs)) return std::nullopt;
  const ClusterSpec spec = spec_from_arrays(replay, cluster);
  ClusterResolver resolver;
  check(dist_cluster_resolver_create_simple(spec.get(), arguments.options(), resolver.out()));
  return resolver;
}

void replay_simple(Replay& replay) {
  if (!replay.has("kwargs")) return;  // the case has a dictionary instead of a spec
  const auto made = simple_resolver(replay, replay.input("cluster"), replay.input("kwargs"));
  if (!made) return;
  const ClusterResolver& resolver = *made;
  replay.record("cluster_spec", spec_of(replay, resolver));
  replay.record("task_type", task_type(replay, resolver));
  replay.record("task_id", task_id(replay, resolver));
  replay.record("rpc_layer", rpc_layer(replay, resolver));
  replay.record("environment", environment(replay, resolver));
  replay.record("master", replay.attempt([&] { return master(replay, resolver); }));
  replay.record("master_worker_0", replay.attempt([&] { return master(replay, resolver, "worker", 0); }));
  replay.record("master_worker_only", replay.attempt([&] { return master(replay, resolver, "worker"); }));
  replay.record("master_worker_2_rpc_x",
                replay.attempt([&] { return master(replay, resolver, "worker", 2, "x"); }));
  replay.record("master_worker_9", replay.attempt([&] { return master(replay, resolver, "worker", 9); }));
  replay.record("master_missing_job", replay.attempt([&] { return master(replay, resolver, "nope", 0); }));
  replay.record("num_accelerators", replay.attempt([&] { return num_accelerators(replay, resolver); }));
}

ClusterResolver union_of(const std::vector<ClusterResolver>& members,
                         const dist_cluster_resolver_options* options) {
  std::vector<dist_cluster_resolver*> handles;
  for (const ClusterResolver& member : members) handles.push_back(member.get());
  ClusterResolver resolver;
  check(dist_cluster_resolver_create_union(handles.data(), handles.size(), options, resolver.out()));
  return resolver;
}

// The recorded program made a resolver of two workers, whose addresses do not matter.
void replay_overrides(Replay& replay) {
  ResolverArguments arguments;
  if (!arguments.read(replay.input("kwargs"))) return;
  std::vector<ClusterResolver> members;
  rapidjson::Document cluster(&replay.memory());
  cluster.Parse(R"({"worker": ["a:1", "b:2"]})");
  members.push_back(*simple_resolver(replay, cluster, replay.object({})));
  const ClusterResolver resolver = union_of(members, arguments.options());
  replay.record("task_type", task_type(replay, resolver));
  replay.record("task_id", task_id(replay, resolver));
  replay.record("rpc_layer", rpc_layer(replay, resolver));
  replay.record("master", replay.attempt([&] { return master(replay, resolver); }));
}

void replay_union(Replay& replay) {
  if (!replay.has("resolvers")) return replay_overrides(replay);
  std::vector<ClusterResolver> members;
  for (const Json& one : replay.input("resolvers").GetArray()) {
    if (!one.IsObject()) return;  // a string instead of a resolver
    auto made = simple_resolver(replay, member(one, "cluster"), member(one, "kwargs"));
    if (!made) return;
    members.push_back(std::move(*made));
  }
  const ClusterResolver resolver = union_of(members, nullptr);
  replay.record("cluster_spec", replay.attempt([&] { return spec_of(replay, resolver); }));
  replay.record("task_type", replay.attempt([&] { return task_type(replay, resolver); }));
  replay.record("task_id", replay.attempt([&] { return task_id(replay, resolver); }));
  replay.record("rpc_layer", replay.attempt([&] { return rpc_layer(replay, resolver); }));
  replay.record("environment", replay.attempt([&] { return environment(replay, resolver); }));
  replay.record("master", replay.attempt([&] { return master(replay, resolver); }));
  replay.record("master_worker_1", replay.attempt([&] { return master(replay, resolver, "worker", 1); }));
  replay.record("num_accelerators", replay.attempt([&] { return num_accelerators(replay, resolver); }));
}

}  // namespace

void replay_cluster(Replay& replay) {
  const std::string_view first = std::string_view(replay.id()).substr(0, replay.id().find('/'));
  if (first == "tf_config") return replay_tf_config(replay);
  if (first == "cluster_spec") return replay_spec(replay);
  if (first == "simple") return replay_simple(replay);
  if (first == "union") return replay_union(replay);
  if (first == "slurm") return replay_slurm(replay);
  if (first == "multi_worker_util") return replay_multi_worker_util(replay);
  if (first == "cluster_device_filters") return;  // selects which devices of other processes TensorFlow shows
  replay.unknown("a topic called " + std::string(first));
}

}  // namespace golden
