// SPDX-License-Identifier: Apache-2.0
// Creates the different kinds of resolvers. The options must have been checked.
#pragma once

#include <span>

#include "core/cluster/resolver.hpp"
#include "core/cluster/slurm.hpp"

namespace dist {

Status create_simple_resolver(Memory& memory, Ref<ClusterSpec> spec, const ResolverOptions& options,
                              Ref<ClusterResolver>* out);

// Reads TF_CONFIG for each question, unless the options contain it.
Status create_tf_config_resolver(Memory& memory, const ResolverOptions& options, Ref<ClusterResolver>* out);

// Reads Slurm's variables on creation.
Status create_slurm_resolver(Memory& memory, const SlurmOptions& slurm, const ResolverOptions& options,
                             Ref<ClusterResolver>* out);

// NULL and 0 mean that a member was not given.
struct KubernetesOptions {
  int32_t index = DIST_TASK_UNSET;
  int32_t num_workers = 0;
  int32_t first_index = 0;
  int32_t port = 0;
  const char* host_name = nullptr;
  const char* service = nullptr;
  const char* name_space = nullptr;
  const char* domain = nullptr;
};
Status create_kubernetes_resolver(Memory& memory, const KubernetesOptions& kubernetes,
                                  const ResolverOptions& options, Ref<ClusterResolver>* out);

Status create_union_resolver(Memory& memory, std::span<ClusterResolver* const> members,
                             const ResolverOptions& options, Ref<ClusterResolver>* out);

// A resolver defined by the host. cluster_resolver.h describes its functions. A dist_cluster_spec is a
// ClusterSpec with one reference.
struct HostResolver {
  dist_status (*spec)(dist_cluster_spec** out_spec, void* user_data) = nullptr;
  dist_status (*task_type)(char* out_text, std::size_t size_bytes, int32_t* out_is_set,
                           void* user_data) = nullptr;
  dist_status (*task_id)(int32_t* out_task_id, void* user_data) = nullptr;
  dist_status (*rpc_layer)(char* out_text, std::size_t size_bytes, int32_t* out_is_set,
                           void* user_data) = nullptr;
  dist_status (*environment)(char* out_text, std::size_t size_bytes, int32_t* out_is_set,
                             void* user_data) = nullptr;
  dist_status (*address)(const char* task_type, int32_t task_id, const char* rpc_layer, char* out_text,
                         std::size_t size_bytes, void* user_data) = nullptr;
  dist_status (*num_accelerators)(const char* task_type, int32_t task_id, int32_t* out_n,
                                  void* user_data) = nullptr;
  dist_release_fn release = nullptr;
  void* user_data = nullptr;
};
Status create_host_resolver(Memory& memory, const HostResolver& functions, const ResolverOptions& options,
                            Ref<ClusterResolver>* out);

}  // namespace dist
