// SPDX-License-Identifier: Apache-2.0
// The rules for what each task of a cluster does, as in tensorflow/python/distribute/multi_worker_util.py. A
// NULL type and the id DIST_TASK_UNSET mean unspecified.
#pragma once

#include "core/cluster/cluster_spec.hpp"

namespace dist {

Status validate(const ClusterSpec& spec, const char* type, int32_t id) noexcept;
Status is_chief(const ClusterSpec& spec, const char* type, int32_t id, bool* out) noexcept;
// Returns the name of the leader, or "".
Status collective_leader(const ClusterSpec& spec, const char* type, int32_t id, const char** out) noexcept;
Status coordination_leader(const ClusterSpec& spec, const char** out) noexcept;
Status worker_count(const ClusterSpec& spec, const char* type, int32_t* out) noexcept;
Status id_in_cluster(const ClusterSpec& spec, const char* type, int32_t id, int32_t* out) noexcept;
// Whether the task saves checkpoints and summaries.
Status should_save(const ClusterSpec& spec, const char* type, int32_t id, bool* out) noexcept;
Status should_evaluate(const ClusterSpec& spec, const char* type, int32_t id, bool* out) noexcept;

}  // namespace dist
