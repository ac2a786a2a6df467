// SPDX-License-Identifier: Apache-2.0
// Support for the replays of area "cluster": specs, resolvers, and their answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/golden/harness/replay.hpp"

namespace golden {

using ClusterSpec = Handle<dist_cluster_spec, dist_cluster_spec_destroy>;
using ClusterResolver = Handle<dist_cluster_resolver, dist_cluster_resolver_destroy>;

// Converts a Python object to JSON. {"dict": [[key, value], ...]} is a dictionary with keys that are not
// strings, and {"bytes": ...} is a string.
Json plain(Replay& replay, const Json& recorded);

// ClusterSpec(cluster), made from JSON text and from arrays.
ClusterSpec spec_from_text(Replay& replay, const Json& recorded);
ClusterSpec spec_from_arrays(Replay& replay, const Json& recorded);

// spec.as_dict()
Json as_dict(Replay& replay, const dist_cluster_spec* spec);
Json spec_of(Replay& replay, const ClusterResolver& resolver);

// Properties of a resolver; null if they are not set.
Json task_type(Replay& replay, const ClusterResolver& resolver);
Json task_id(Replay& replay, const ClusterResolver& resolver);
Json rpc_layer(Replay& replay, const ClusterResolver& resolver);
Json environment(Replay& replay, const ClusterResolver& resolver);
Json master(Replay& replay, const ClusterResolver& resolver, const char* type = nullptr,
            int32_t id = DIST_TASK_UNSET, const char* layer = nullptr);
// {"GPU": n}. If there are none, Python returns {}, but Slurm's resolver returns {"GPU": 0}.
Json num_accelerators(Replay& replay, const ClusterResolver& resolver, bool zero_too = false);

// Keyword arguments of a resolver as options. This object owns their texts.
class ResolverArguments {
 public:
  // Returns false if the C compiler would reject an argument.
  bool read(const Json& kwargs);
  const dist_cluster_resolver_options* options() const noexcept { return &options_; }

 private:
  const char* keep(const Json& text);

  dist_cluster_resolver_options options_ = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  std::vector<std::unique_ptr<std::string>> texts_;
};

// Sets or unsets (nullopt) an environment variable of this process, which plays one case at a time.
void set_environment(const char* name, const std::optional<std::string>& value);

// The topics "slurm" and "multi_worker_util".
void replay_slurm(Replay& replay);
void replay_multi_worker_util(Replay& replay);

}  // namespace golden
