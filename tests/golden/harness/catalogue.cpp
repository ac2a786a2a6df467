// SPDX-License-Identifier: Apache-2.0
#include "catalogue.hpp"

#include <fnmatch.h>

namespace golden {
namespace {

constexpr Replayed kAreas[] = {
    {"reduce", replay_reduce},
    {"replica_context", replay_replica_context},
    {"extended", replay_extended},
    {"variables", replay_variables},
    {"run", replay_run},
    {"input", replay_input},
    {"input_misc", replay_input_misc},
    {"input_sharding", replay_input_sharding},
    {"options", replay_options},
    {"cluster", replay_cluster},
    {"tpu_device_assignment", replay_tpu_device_assignment},
    {"tpu_split", replay_tpu_split},
    {"partitioners", replay_partitioners},
    {"parameter_server", replay_parameter_server, "*"},
    {"multi_worker", replay_multi_worker, "failure/death*"},
};

}  // namespace

bool Replayed::is_by_grpc(const std::string& id) const noexcept {
  return *by_grpc != '\0' && fnmatch(by_grpc, id.c_str(), 0) == 0;
}

bool has_grpc() noexcept { return HAS_GRPC != 0; }

std::span<const Replayed> all_areas() noexcept { return kAreas; }

const Replayed* find_area(std::string_view name) noexcept {
  for (const Replayed& one : kAreas) {
    if (one.area == name) return &one;
  }
  return nullptr;
}

}  // namespace golden
