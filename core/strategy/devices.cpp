// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/devices.hpp"

#include <algorithm>
#include <cstdio>

#include "core/base/text.hpp"
#include "dist/types.h"

namespace dist {

Status Devices::set(int32_t kind, std::span<const char* const> names, int32_t num_replicas,
                    const char* parameter) {
  central_ = kind == DIST_STRATEGY_CENTRAL_STORAGE;
  if (!central_ && parameter != nullptr) {
    return invalid_argument(
        "`parameter_device` is \"%s\", but only central storage has a device for variables",
        Shown(parameter).c_str());
  }
  if (kind == DIST_STRATEGY_DEFAULT) {
    if (names.empty()) return kOk;
    return invalid_argument(
        "devices is set, but the default strategy has no devices. Use `DIST_STRATEGY_ONE_DEVICE`.");
  }
  workers_.reserve(static_cast<std::size_t>(num_replicas));
  if (parameter != nullptr) DIST_TRY(DeviceName::parse(parameter, "parameter_device", &parameter_));
  if (names.empty()) {
    for (int32_t r = 0; r < num_replicas; ++r) workers_.emplace_back("CPU", r);
    return kOk;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    char what[32];
    std::snprintf(what, sizeof what, "devices[%zu]", i);
    DeviceName device;
    DIST_TRY(DeviceName::parse(names[i], what, &device));
    const auto twin = std::find(workers_.begin(), workers_.end(), device);
    if (twin != workers_.end()) {
      return invalid_argument("devices[%td] and %s are both %s. Every replica needs its own device.",
                              twin - workers_.begin(), what, device.c_str());
    }
    workers_.push_back(device);
  }
  return kOk;
}

void Devices::belong_to(const char* job, int32_t task) noexcept {
  for (DeviceName& each : workers_) each = each.of_task(job, task);
  parameter_ = parameter_.of_task(job, task);
}

Status Devices::name(std::span<const DeviceName> devices, int32_t index, const char* what,
                     const char** out) noexcept {
  if (devices.empty()) {
    return failed_precondition("the default strategy has no devices. Use `DIST_STRATEGY_ONE_DEVICE`.");
  }
  if (index < 0 || static_cast<std::size_t>(index) >= devices.size()) {
    return invalid_argument("`%s` is %d, but the strategy has devices 0 to %zu", what, index,
                            devices.size() - 1);
  }
  *out = devices[static_cast<std::size_t>(index)].c_str();
  return kOk;
}

std::span<const DeviceName> Devices::parameters() const noexcept {
  return central_ ? std::span<const DeviceName>(&parameter_, 1) : workers();
}

}  // namespace dist
