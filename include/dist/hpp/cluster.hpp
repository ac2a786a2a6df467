// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/cluster.hpp: cluster specs, resolvers, and the rules of a cluster (cluster.h, cluster_resolver.h).
//
//     const dist::cluster_resolver resolver = dist::cluster_resolver::tf_config();
//     if (resolver.spec().should_save_checkpoint(resolver.task())) save();
#ifndef DIST_HPP_CLUSTER_HPP
#define DIST_HPP_CLUSTER_HPP

#include <optional>

#include "inspect.hpp"
#include "names.hpp"

namespace dist {

// A task of a cluster; its type is the name of its job. A field that is not set is not known.
struct cluster_task {
  std::optional<std::string> type{};
  int32_t id = DIST_TASK_UNSET;

  const char *type_or_null() const { return type ? detail::for_c(*type) : nullptr; }
};

// ---- Cluster specs, and the rules of a cluster -------------------------------------------------------------

// A job of a cluster and the addresses of its tasks.
struct cluster_job {
  std::string name{};
  std::vector<std::string> addresses{};
  std::vector<int32_t> task_indices{};  // empty = 0, 1, ...
};

// The jobs of a cluster and their tasks. Owns the C handle; resolvers that use the spec keep it.
class cluster_spec {
 public:
  static cluster_spec from_json(const std::string &text) {
    const char *const json = detail::for_c(text);
    return made([&](dist_cluster_spec **out) { return dist_cluster_spec_from_json(json, nullptr, out); });
  }
  static cluster_spec from_jobs(const std::vector<cluster_job> &jobs) {
    std::vector<std::vector<const char *>> addresses(jobs.size());
    std::vector<dist_cluster_job> rows;
    for (const cluster_job &each : jobs) {
      if (!each.task_indices.empty() && each.task_indices.size() != each.addresses.size())
        throw error(DIST_INVALID_ARGUMENT, "a job has as many indices as addresses, or none");
      std::vector<const char *> &texts = addresses[rows.size()];
      for (const std::string &address : each.addresses) texts.push_back(detail::for_c(address));
      rows.push_back({detail::for_c(each.name), texts.data(),
                      each.task_indices.empty() ? nullptr : each.task_indices.data(), texts.size()});
    }
    return made([&](dist_cluster_spec **out) {
      return dist_cluster_spec_create(rows.data(), rows.size(), nullptr, out);
    });
  }
  // Merges several specs.
  static cluster_spec union_of(const std::vector<const cluster_spec *> &specs) {
    std::vector<const dist_cluster_spec *> handles;
    for (const cluster_spec *each : specs) handles.push_back(each->get());
    return made([&](dist_cluster_spec **out) {
      return dist_cluster_spec_union(handles.data(), handles.size(), nullptr, out);
    });
  }
  // Takes ownership of the handle.
  explicit cluster_spec(dist_cluster_spec *handle) noexcept : handle_(handle) {}
  ~cluster_spec() { dist_cluster_spec_destroy(handle_); }
  cluster_spec(cluster_spec &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  cluster_spec &operator=(cluster_spec &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  cluster_spec(const cluster_spec &) = delete;
  cluster_spec &operator=(const cluster_spec &) = delete;

  [[nodiscard]] dist_cluster_spec *get() const noexcept { return handle_; }
  dist_cluster_spec *release() noexcept { return std::exchange(handle_, nullptr); }

  std::vector<std::string> jobs() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < dist_cluster_spec_num_jobs(handle_); ++i)
      names.emplace_back(dist_cluster_spec_job(handle_, i));
    return names;
  }
  int32_t num_tasks(const char *job) const {
    return number([&](int32_t *out) { return dist_cluster_spec_num_tasks(handle_, job, out); });
  }
  std::vector<int32_t> task_indices(const char *job) const {
    std::vector<int32_t> indices(static_cast<std::size_t>(num_tasks(job)));
    std::size_t n = 0;
    check(dist_cluster_spec_task_indices(handle_, job, indices.data(), indices.size(), &n));
    return indices;
  }
  const char *task_address(const char *job, int32_t task) const {
    const char *address = nullptr;
    check(dist_cluster_spec_task_address(handle_, job, task, &address));
    return address;
  }
  const char *json() const noexcept { return dist_cluster_spec_json(handle_); }
  friend bool operator==(const cluster_spec &a, const cluster_spec &b) noexcept {
    return dist_cluster_spec_is_equal(a.handle_, b.handle_) == 1;
  }
  friend bool operator!=(const cluster_spec &a, const cluster_spec &b) noexcept { return !(a == b); }

  void validate(const cluster_task &task) const {
    check(dist_cluster_validate(handle_, task.type_or_null(), task.id));
  }
  bool is_chief(const cluster_task &task) const { return of_task(dist_cluster_is_chief, task) == 1; }
  int32_t id_in_cluster(const cluster_task &task) const { return of_task(dist_cluster_id_in_cluster, task); }
  bool should_save_checkpoint(const cluster_task &task) const {
    return of_task(dist_cluster_should_save_checkpoint, task) == 1;
  }
  bool should_save_summary(const cluster_task &task) const {
    return of_task(dist_cluster_should_save_summary, task) == 1;
  }
  bool should_evaluate(const cluster_task &task) const {
    return of_task(dist_cluster_should_evaluate, task) == 1;
  }
  int32_t worker_count(const char *task_type) const {
    return number([&](int32_t *out) { return dist_cluster_worker_count(handle_, task_type, out); });
  }
  std::string collective_leader(const cluster_task &task) const {
    return detail::text_in(DIST_MAX_ADDRESS_BYTES, [&](char *out, std::size_t room) {
      return dist_cluster_collective_leader(handle_, task.type_or_null(), task.id, out, room);
    });
  }
  std::string coordination_leader() const {
    return detail::text_in(DIST_MAX_ADDRESS_BYTES, [&](char *out, std::size_t room) {
      return dist_cluster_coordination_leader(handle_, out, room);
    });
  }

 private:
  template <class Make>
  static cluster_spec made(Make &&make) {
    dist_cluster_spec *handle = nullptr;
    check(make(&handle));
    return cluster_spec(handle);
  }
  template <class Ask>
  static int32_t number(Ask &&ask) {
    int32_t answer = 0;
    check(ask(&answer));
    return answer;
  }
  template <class Rule>
  int32_t of_task(Rule rule, const cluster_task &task) const {
    return number([&](int32_t *out) { return rule(handle_, task.type_or_null(), task.id, out); });
  }

  dist_cluster_spec *handle_ = nullptr;
};

// ---- Resolvers ---------------------------------------------------------------------------------------------

// A non-owning handle to a resolver.
class cluster_resolver_ref {
 public:
  cluster_resolver_ref() noexcept = default;
  explicit cluster_resolver_ref(dist_cluster_resolver *handle) noexcept : handle_(handle) {}

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  [[nodiscard]] dist_cluster_resolver *get() const noexcept { return handle_; }

  cluster_spec spec() const {
    dist_cluster_spec *found = nullptr;
    check(dist_cluster_resolver_spec(handle_, &found));
    return cluster_spec(found);
  }
  // The task that this process is.
  cluster_task task() const { return {text(dist_cluster_resolver_task_type), task_id()}; }
  int32_t task_id() const {
    int32_t id = DIST_TASK_UNSET;
    check(dist_cluster_resolver_task_id(handle_, &id));
    return id;
  }
  std::optional<std::string> rpc_layer() const { return text(dist_cluster_resolver_rpc_layer); }
  std::optional<std::string> environment() const { return text(dist_cluster_resolver_environment); }
  // The address to connect to. If rpc_layer is NULL, the resolver's layer is used.
  std::string master_address(const cluster_task &task = {}, const char *rpc_layer = nullptr) const {
    return detail::text_in(DIST_MAX_ADDRESS_BYTES, [&](char *out, std::size_t room) {
      return dist_cluster_resolver_master(handle_, task.type_or_null(), task.id, rpc_layer, out, room);
    });
  }
  int32_t num_accelerators(const cluster_task &task = {}) const {
    int32_t n = 0;
    check(dist_cluster_resolver_num_accelerators(handle_, task.type_or_null(), task.id, &n));
    return n;
  }
  std::string gpu_ids() const {
    return detail::text_in(DIST_MAX_ADDRESS_BYTES, [&](char *out, std::size_t room) {
      return dist_cluster_resolver_gpu_ids(handle_, out, room);
    });
  }
  std::string explain() const {
    return detail::text_of(
        [&](dist_text_fn fn, void *user_data) { return dist_cluster_explain(handle_, fn, user_data); });
  }

 protected:
  template <class Ask>
  std::optional<std::string> text(Ask ask) const {
    int32_t is_set = 0;
    std::string found = detail::text_in(DIST_MAX_ADDRESS_BYTES, [&](char *out, std::size_t room) {
      return ask(handle_, out, room, &is_set);
    });
    return is_set == 1 ? std::optional<std::string>(std::move(found)) : std::nullopt;
  }

  dist_cluster_resolver *handle_ = nullptr;
};

// Owns a resolver. Strategies and unions that use the resolver keep it.
class cluster_resolver : public cluster_resolver_ref {
 public:
  // Takes ownership.
  static cluster_resolver adopt(dist_cluster_resolver *handle) noexcept { return cluster_resolver(handle); }
  static cluster_resolver simple(const cluster_spec &spec,
                                 const dist_cluster_resolver_options *options = nullptr) {
    return made([&](dist_cluster_resolver **out) {
      return dist_cluster_resolver_create_simple(spec.get(), options, out);
    });
  }
  static cluster_resolver tf_config(const dist_cluster_resolver_options *options = nullptr) {
    return made(
        [&](dist_cluster_resolver **out) { return dist_cluster_resolver_create_tf_config(options, out); });
  }
  static cluster_resolver slurm(const dist_slurm_options *slurm = nullptr,
                                const dist_cluster_resolver_options *options = nullptr) {
    return made(
        [&](dist_cluster_resolver **out) { return dist_cluster_resolver_create_slurm(slurm, options, out); });
  }
  static cluster_resolver kubernetes(const dist_kubernetes_options *pods = nullptr,
                                     const dist_cluster_resolver_options *options = nullptr) {
    return made([&](dist_cluster_resolver **out) {
      return dist_cluster_resolver_create_kubernetes(pods, options, out);
    });
  }
  static cluster_resolver union_of(const std::vector<cluster_resolver_ref> &members,
                                   const dist_cluster_resolver_options *options = nullptr) {
    std::vector<dist_cluster_resolver *> handles;
    for (const cluster_resolver_ref &each : members) handles.push_back(each.get());
    return made([&](dist_cluster_resolver **out) {
      return dist_cluster_resolver_create_union(handles.data(), handles.size(), options, out);
    });
  }
  // Your own functions, in the form of the C API. They must not throw.
  static cluster_resolver host(const dist_cluster_resolver_functions &functions, void *user_data,
                               const dist_cluster_resolver_options *options = nullptr) {
    return made([&](dist_cluster_resolver **out) {
      return dist_cluster_resolver_create_host(&functions, user_data, options, out);
    });
  }
  ~cluster_resolver() { dist_cluster_resolver_destroy(handle_); }
  cluster_resolver(cluster_resolver &&other) noexcept
      : cluster_resolver_ref(std::exchange(other.handle_, nullptr)) {}
  cluster_resolver &operator=(cluster_resolver &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  cluster_resolver(const cluster_resolver &) = delete;
  cluster_resolver &operator=(const cluster_resolver &) = delete;

 private:
  explicit cluster_resolver(dist_cluster_resolver *handle) noexcept : cluster_resolver_ref(handle) {}
  template <class Make>
  static cluster_resolver made(Make &&make) {
    dist_cluster_resolver *handle = nullptr;
    check(make(&handle));
    return cluster_resolver(handle);
  }
};

// ---- Slurm's lists -----------------------------------------------------------------------------------------

// The hosts of a Slurm list, such as "n[01-03,7]".
inline std::vector<std::string> slurm_hosts(const char *host_list) {
  std::vector<std::string> hosts;
  std::string all = detail::text_of([&](dist_text_fn fn, void *user_data) {
    struct pieces {
      dist_text_fn fn;
      void *user_data;
    } each{fn, user_data};
    return dist_slurm_expand_host_list(
        host_list,
        [](const char *text, std::size_t size_bytes, void *to) {
          const pieces &out = *static_cast<pieces *>(to);
          out.fn(text, size_bytes, out.user_data);
          out.fn("\n", 1, out.user_data);
        },
        &each);
  });
  for (std::size_t at = 0, end = 0; (end = all.find('\n', at)) != std::string::npos; at = end + 1)
    hosts.push_back(all.substr(at, end - at));
  return hosts;
}

// The counts of a Slurm list: "2(x3),1" is 2, 2, 2, 1.
inline std::vector<int32_t> slurm_tasks_per_node(const char *list) {
  std::size_t n = 0;
  check(dist_slurm_expand_tasks_per_node(list, nullptr, 0, &n));
  std::vector<int32_t> tasks(n);
  check(dist_slurm_expand_tasks_per_node(list, tasks.data(), n, &n));
  return tasks;
}

}  // namespace dist

#endif  // DIST_HPP_CLUSTER_HPP
