// SPDX-License-Identifier: Apache-2.0
// Handle conversions for cluster.h and cluster_resolver.h.
#pragma once

#include "capi/guard.hpp"
#include "core/cluster/resolver.hpp"

namespace dist::capi {

inline ClusterSpec* unwrap(dist_cluster_spec* handle) noexcept {
  return reinterpret_cast<ClusterSpec*>(handle);
}
inline const ClusterSpec* unwrap(const dist_cluster_spec* handle) noexcept {
  return reinterpret_cast<const ClusterSpec*>(handle);
}
inline dist_cluster_spec* wrap(ClusterSpec* spec) noexcept {
  return reinterpret_cast<dist_cluster_spec*>(spec);
}
inline ClusterResolver* unwrap(dist_cluster_resolver* handle) noexcept {
  return reinterpret_cast<ClusterResolver*>(handle);
}
inline const ClusterResolver* unwrap(const dist_cluster_resolver* handle) noexcept {
  return reinterpret_cast<const ClusterResolver*>(handle);
}
inline dist_cluster_resolver* wrap(ClusterResolver* resolver) noexcept {
  return reinterpret_cast<dist_cluster_resolver*>(resolver);
}

// Checks the host's list of jobs as far as is needed to read it; addresses too if `with_addresses` is set.
Status check_jobs(const dist_cluster_job* jobs, std::size_t num_jobs, bool with_addresses,
                  const char* call) noexcept;

}  // namespace dist::capi
