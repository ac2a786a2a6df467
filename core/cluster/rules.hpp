// SPDX-License-Identifier: Apache-2.0
// The rules of a cluster: what each of its tasks does, as tensorflow/python/distribute/multi_worker_util.py
// has them. A type of NULL and an id of DIST_TASK_UNSET are not set.
#pragma once

#include "core/cluster/cluster_spec.hpp"

namespace dist {

Status validate(const ClusterSpec& spec, const char* type, int32_t id) noexcept;
Status is_chief(const ClusterSpec& spec, const char* type, int32_t id, bool* out) noexcept;
// The name of who leads, or "".
Status collective_leader(const ClusterSpec& spec, const char* type, int32_t id, const char** out) noexcept;
Status coordination_leader(const ClusterSpec& spec, const char** out) noexcept;
Status worker_count(const ClusterSpec& spec, const char* type, int32_t* out) noexcept;
Status id_in_cluster(const ClusterSpec& spec, const char* type, int32_t id, int32_t* out) noexcept;
// Checkpoints and summaries.
Status should_save(const ClusterSpec& spec, const char* type, int32_t id, bool* out) noexcept;
Status should_evaluate(const ClusterSpec& spec, const char* type, int32_t id, bool* out) noexcept;

}  // namespace dist
