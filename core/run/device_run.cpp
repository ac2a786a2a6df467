// SPDX-License-Identifier: Apache-2.0
#include "core/run/device_run.hpp"

#include <memory_resource>
#include <new>
#include <vector>

#include "core/run/device_team.hpp"

namespace dist {
namespace {

// Counted, since a device that is past the run's deadline may still be inside.
class DevicesRun final : public Counted {
 public:
  DevicesRun(Memory& memory, const ValuesFunction& function, ValueRef args, ValueRef kwargs, int num_devices)
      : Counted(memory),
        function_(function),
        args_(std::move(args)),
        kwargs_(std::move(kwargs)),
        results_(static_cast<std::size_t>(num_devices), &memory) {}

  std::span<const ValueRef> results() const noexcept { return results_; }

  static void about_to_start(void* context) {
    auto* run = static_cast<DevicesRun*>(context);
    for (std::size_t i = 0; i < run->results_.size(); ++i) run->retain();
  }
  static dist_status call(Replica& device, const Body& self) {
    const auto run = Ref<DevicesRun>::adopt(static_cast<DevicesRun*>(self.context));
    try {
      return run->call(device).code();
    } catch (const std::bad_alloc&) {
      return out_of_memory().code();
    }
  }

 private:
  Status call(Replica& device) {
    ValueRef args;
    ValueRef kwargs;
    DIST_TRY(shard_of(memory(), args_.get(), device.id(), &args));
    DIST_TRY(shard_of(memory(), kwargs_.get(), device.id(), &kwargs));
    Value* result = nullptr;
    const dist_status status = function_.call(function_, device, args.get(), kwargs.get(), &result);
    results_[static_cast<std::size_t>(device.id())] = ValueRef::adopt(result);
    return Status(status);
  }

  const ValuesFunction function_;
  const ValueRef args_;
  const ValueRef kwargs_;
  std::pmr::vector<ValueRef> results_;
};

// The time in which a replica waits for its devices.
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
  DIST_TRY(replica.check_whole(call));
  *out = replica.pool().devices_of(replica.id());
  if (*out != nullptr) return kOk;
  return failed_precondition(
      "%s(): replicas of this strategy have no logical devices; DIST_STRATEGY_MESH makes them of some", call);
}

Status find_own_team(const Replica& device, const char* call, DeviceTeam** out) noexcept {
  DIST_TRY(device.check(call));
  *out = device.pool().team();
  if (*out != nullptr) return kOk;
  return failed_precondition(
      "%s() is for logical devices, and this is replica %d: call it inside dist_run_on_devices()'s function, "
      "with "
      "the handle that this gets",
      call, device.id());
}

Status run_on_devices(Replica& replica, const ValuesFunction& function, Value* args, Value* kwargs,
                      const RunLimits& limits, Joining joining, ValueRef* out) {
  DeviceTeam* team = nullptr;
  DIST_TRY(find_team(replica, "dist_run_on_devices", &team));
  DIST_TRY(check_arguments(args, kwargs));
  Memory& memory = replica.pool().memory();
  ValueRef own_args;
  ValueRef own_kwargs;
  DIST_TRY(component_of(memory, args, replica.id(), &own_args));
  DIST_TRY(component_of(memory, kwargs, replica.id(), &own_kwargs));
  joining.like = find_split(own_args.get());
  if (joining.like == nullptr) joining.like = find_split(own_kwargs.get());
  const auto run = make_counted<DevicesRun>(memory, function, own_args, own_kwargs, team->num_devices());
  {
    const OnDevices away(replica);
    const Body body{
        .call = DevicesRun::call, .context = run.get(), .about_to_start = DevicesRun::about_to_start};
    DIST_TRY(team->run(body, limits));
  }
  std::pmr::vector<Value*> results(&memory);
  results.reserve(run->results().size());
  for (const ValueRef& result : run->results()) results.push_back(result.get());
  return join(memory, replica.arena(), results, joining, out);
}

}  // namespace dist
