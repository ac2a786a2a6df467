// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/info_cluster.hpp"

#include <dist/dist.h>

#include <cstdlib>
#include <memory>

#include "capi/tools/info_text.hpp"
#include "core/base/memory.hpp"
#include "core/net/membership/launcher.hpp"

namespace dist::info {
namespace {

struct Destroy {
  void operator()(dist_cluster_resolver* each) const { dist_cluster_resolver_destroy(each); }
  void operator()(dist_cluster_spec* each) const { dist_cluster_spec_destroy(each); }
};
template <class Handle>
using Owned = std::unique_ptr<Handle, Destroy>;

bool is_set(const char* name) {
  const char* const text = getenv(name);
  return text != nullptr && *text != '\0';
}

bool add_job(const dist_cluster_spec* spec, const char* job, Cluster* out) {
  int32_t count = 0;
  if (dist_cluster_spec_num_tasks(spec, job, &count) != DIST_OK) return false;
  std::vector<int32_t> indices(static_cast<std::size_t>(count));
  std::size_t n = 0;
  if (dist_cluster_spec_task_indices(spec, job, indices.data(), indices.size(), &n) != DIST_OK) return false;
  for (const int32_t index : indices) {
    const char* address = nullptr;
    if (dist_cluster_spec_task_address(spec, job, index, &address) != DIST_OK) return false;
    out->tasks.push_back({one_line(job) + " " + std::to_string(index), address});
  }
  return true;
}

// Finds this process in the cluster. Returns false after an error of the C API.
bool find_self(const dist_cluster_resolver* resolver, const dist_cluster_spec* spec, Cluster* out) {
  char type[DIST_MAX_ADDRESS_BYTES] = "";
  int32_t has_type = 0;
  int32_t id = DIST_TASK_UNSET;
  if (dist_cluster_resolver_task_type(resolver, type, sizeof type, &has_type) != DIST_OK ||
      dist_cluster_resolver_task_id(resolver, &id) != DIST_OK) {
    return false;
  }
  if (out->tasks.empty()) return true;
  if (has_type == 0 || id == DIST_TASK_UNSET) {
    out->error = "the cluster has " + count_of(static_cast<long long>(out->tasks.size()), "task") +
                 ", but the task " + (has_type == 0 ? "type" : "index") +
                 " of this process is not set. Set \"task\" in TF_CONFIG to {\"type\": \"worker\", "
                 "\"index\": 0}, with the values of this process.";
    return true;
  }
  if (dist_cluster_validate(spec, type, id) != DIST_OK) return false;
  out->self = one_line(type) + " " + std::to_string(id);
  for (std::size_t i = 0; i < out->tasks.size(); ++i) {
    if (out->tasks[i].name == out->self) out->own = static_cast<int>(i);
  }
  return true;
}

bool read_resolver(const dist_cluster_resolver* resolver, Cluster* out) {
  dist_cluster_spec* found = nullptr;
  if (dist_cluster_resolver_spec(resolver, &found) != DIST_OK) return false;
  const Owned<dist_cluster_spec> spec(found);
  for (std::size_t i = 0; i < dist_cluster_spec_num_jobs(spec.get()); ++i) {
    if (!add_job(spec.get(), dist_cluster_spec_job(spec.get(), i), out)) return false;
  }
  out->num_tasks = out->tasks.size();
  return find_self(resolver, spec.get(), out);
}

void read_from(dist_status created, dist_cluster_resolver* made, Cluster* out) {
  const Owned<dist_cluster_resolver> resolver(made);
  if (created != DIST_OK || !read_resolver(resolver.get(), out)) out->error = api_error();
}

void read_rendezvous(Cluster* out) {
  Ref<Memory> memory;
  Status status = create_memory({}, "allocator", &memory);
  if (!status.ok()) {
    out->error = core_error();
    return;
  }
  RendezvousPlace place(*memory);
  status = find_rendezvous_place(*memory, {}, &place);
  if (!status.ok()) {
    out->error = core_error();
    return;
  }
  out->num_tasks = static_cast<std::size_t>(place.size);
  out->self = "worker " + std::to_string(place.rank);
  if (!place.address.empty()) out->tasks.push_back({"worker 0", std::string(place.address)});
  if (place.rank == 0 && !out->tasks.empty()) out->own = 0;
}

}  // namespace

std::string Cluster::text() const {
  if (source.empty()) return "none; a strategy in this process has no peers";
  if (!error.empty()) return source + ": " + error;
  return source + ": " + count_of(static_cast<long long>(num_tasks), "task") +
         (self.empty() ? "" : "; this process is " + self);
}

Cluster find_cluster() {
  Cluster found;
  dist_cluster_resolver* resolver = nullptr;
  // Without the address of a rendezvous, an empty TF_CONFIG is an error.
  if (is_set("TF_CONFIG") || (getenv("TF_CONFIG") != nullptr && !is_set("DIST_RENDEZVOUS"))) {
    found.source = "TF_CONFIG";
    const dist_status status = dist_cluster_resolver_create_tf_config(nullptr, &resolver);
    read_from(status, resolver, &found);
  } else if (is_set("DIST_RENDEZVOUS") || (is_set("MASTER_ADDR") && is_set("MASTER_PORT"))) {
    found.source = is_set("DIST_RENDEZVOUS") ? "DIST_RENDEZVOUS" : "MASTER_ADDR";
    read_rendezvous(&found);
  } else if (is_set("SLURM_STEP_NODELIST")) {
    found.source = "SLURM_STEP_NODELIST";
    const dist_status status = dist_cluster_resolver_create_slurm(nullptr, nullptr, &resolver);
    read_from(status, resolver, &found);
  }
  return found;
}

}  // namespace dist::info
