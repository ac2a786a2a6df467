// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/worker_place.hpp"

#include <numeric>

#include "core/base/text.hpp"
#include "core/cluster/rules.hpp"

namespace dist {

ReplicaCount WorkerPlace::count() const noexcept {
  const auto mine = replicas.begin() + me;
  return {*mine, GlobalReplica{std::accumulate(replicas.begin(), mine, 0)},
          std::accumulate(replicas.begin(), replicas.end(), 0)};
}

Status find_place(ClusterResolver& resolver, WorkerPlace* out) {
  Ref<ClusterSpec> spec;
  DIST_TRY(resolver.spec(&spec));
  if (spec->jobs().empty()) return kOk;
  FoundNumber task;
  DIST_TRY(resolver.task_type(&out->job));
  DIST_TRY(resolver.task_id(&task));
  if (!out->job.is_set || task.number == DIST_TASK_UNSET) {
    return invalid_argument(
        "`cluster_resolver` has a cluster, but no task %s for this process. Set \"task\" in TF_CONFIG, or "
        "the "
        "options of the resolver.",
        out->job.is_set ? "id" : "type");
  }
  const char* const job = out->job.text;
  int32_t workers = 0;
  int32_t me = 0;
  DIST_TRY(worker_count(*spec, job, &workers));
  DIST_TRY(id_in_cluster(*spec, job, task.number, &me));
  if (me < 0 || me >= workers) {
    return invalid_argument("the task id is %d of job \"%s\", but the cluster has %s", task.number,
                            Shown(job).c_str(), CountText(workers, "worker").text);
  }
  DIST_TRY(is_chief(*spec, job, task.number, &out->is_chief));
  out->task = task.number;
  out->me = me;
  out->replicas.assign(static_cast<std::size_t>(workers), 1);
  return kOk;
}

Status set_replicas(std::span<const int32_t> given, int32_t own, WorkerPlace* place) {
  const auto me = static_cast<std::size_t>(place->me);
  if (given.empty()) {
    std::fill(place->replicas.begin(), place->replicas.end(), own);
  } else if (given.size() != place->replicas.size()) {
    return invalid_argument("`num_workers` is %zu, but the cluster has %s", given.size(),
                            CountText(place->num_workers(), "worker").text);
  } else if (own != 0 && given[me] != own) {
    return invalid_argument("`replicas_of_workers[%zu]` is %d, but this worker has %s", me, given[me],
                            CountText(own, "replica").text);
  } else {
    place->replicas.assign(given.begin(), given.end());
  }
  int64_t all = 0;
  for (std::size_t w = 0; w < place->replicas.size(); ++w) {
    if (place->replicas[w] < 1) {
      return invalid_argument("`replicas_of_workers[%zu]` is %d, but must be 1 or more", w,
                              place->replicas[w]);
    }
    all += place->replicas[w];
  }
  if (all > INT32_MAX) {
    return invalid_argument("the workers have %lld replicas together, but replica ids have 32 bits",
                            static_cast<long long>(all));
  }
  return kOk;
}

}  // namespace dist
