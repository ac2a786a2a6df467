// SPDX-License-Identifier: Apache-2.0
#include "core/run/device_run.hpp"

#include <memory_resource>
#include <vector>

#include "core/run/device_team.hpp"

namespace dist {
namespace {

// Marks the replica as waiting for its devices.
class OnDevices {
 public:
  explicit OnDevices(Replica& replica) noexcept : replica_(replica) {
    replica_.set_away(Replica::Away::kOnDevices);
  }
  ~OnDevices() { replica_.set_away(Replica::Away::kNo); }
  OnDevices(const OnDevices&) = delete;
  OnDevices& operator=(const OnDevices&) = delete;

 private:
  Replica& replica_;
};

}  // namespace

Status find_team(const Replica& replica, const char* call, DeviceTeam** out) noexcept {
  DIST_TRY(replica.is_device() ? replica.check_whole(call) : replica.check_own(call));
  *out = replica.pool().devices_of(replica.local());
  if (*out != nullptr) return kOk;
  return failed_precondition(
      "`%s()`: replicas of this strategy have no logical devices. Use `DIST_STRATEGY_MESH`.", call);
}

Status find_own_team(const Replica& device, const char* call, DeviceTeam** out) noexcept {
  DIST_TRY(device.check(call));
  *out = device.pool().team();
  if (*out != nullptr) return kOk;
  return failed_precondition(
      "`%s()` is for logical devices, but this is replica %d. Call it inside the function of "
      "`dist_run_on_devices()`, with the handle that it gets.",
      call, device.name().number());
}

Status complete_result(int32_t num_devices, Partition* out) noexcept {
  static constexpr int64_t kUnknown[DIST_MAX_NDIM] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                                      -1, -1, -1, -1, -1, -1, -1, -1};
  if (out->dimensions.size() > DIST_MAX_NDIM) {
    return invalid_argument("`options->results`: a partition has %zu dimensions; it may have at most %d",
                            out->dimensions.size(), DIST_MAX_NDIM);
  }
  out->shape = {kUnknown, out->dimensions.size()};
  out->num_logical_devices = num_devices;
  return out->check();
}

Status run_on_devices(Replica& replica, const ValuesFunction& function, Value* args, Value* kwargs,
                      const RunLimits& limits, Joining joining, ValueRef* out) {
  DeviceTeam* team = nullptr;
  DIST_TRY(find_team(replica, "dist_run_on_devices", &team));
  Memory& memory = replica.pool().memory();
  ValueRef list;
  DIST_TRY(read_arguments(memory, args, kwargs, &list));
  ValueRef own_args;
  ValueRef own_kwargs;
  DIST_TRY(component_of(memory, list.get(), replica.local(), &own_args));
  DIST_TRY(component_of(memory, kwargs, replica.local(), &own_kwargs));
  joining.like = find_split(own_args.get());
  if (joining.like == nullptr) joining.like = find_split(own_kwargs.get());
  const auto run = make_counted<ValuesRun>(memory, function, shard_of, own_args.get(), own_kwargs.get(),
                                           team->num_devices());
  {
    const OnDevices away(replica);
    DIST_TRY(team->run(run->body(), limits));
  }
  const std::pmr::vector<Value*> results = run->results();
  return join(memory, replica.arena(), results, joining, out);
}

}  // namespace dist
