// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/cross_device.hpp"

#include "core/base/names.hpp"
#include "core/base/os/cgroup.hpp"
#include "core/base/os/cpus.hpp"

namespace dist {
namespace {

Status check(const CrossDeviceOptions& options) noexcept {
  const char* const name = name_of(kCrossDeviceNames, options.kind);
  if (name == nullptr) {
    return invalid_argument("`kind` is `%d`: use one of `DIST_CROSS_DEVICE_...`", options.kind);
  }
  const bool one_device = options.kind == DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE;
  if (!one_device && (options.accumulate != nullptr || options.reduce_to_device != nullptr)) {
    return invalid_argument("%s does not use %s; only `DIST_CROSS_DEVICE_REDUCTION_TO_ONE_DEVICE` does", name,
                            options.accumulate != nullptr ? "an accumulate function" : "reduce_to_device");
  }
  if (options.accumulate_element_bytes != 0 && options.accumulate == nullptr) {
    return invalid_argument(
        "`accumulate_element_bytes` is %zu, but `accumulate` is `NULL`. Set both or neither.",
        options.accumulate_element_bytes);
  }
  if (options.kind == DIST_CROSS_DEVICE_HOST && options.host.reduce == nullptr) {
    return invalid_argument("`DIST_CROSS_DEVICE_HOST` needs functions, with at least `reduce`");
  }
  if (options.kind != DIST_CROSS_DEVICE_HOST && options.has_functions) {
    return invalid_argument("%s does not use host functions. Use `DIST_CROSS_DEVICE_HOST`.", name);
  }
  return kOk;
}

}  // namespace

CrossDevice::CrossDevice(Memory& memory, const CrossDeviceOptions& options, const DeviceName& device)
    : Counted(memory),
      kind_(options.kind),
      has_device_(options.reduce_to_device != nullptr),
      device_(device),
      accumulate_(options.accumulate),
      accumulate_user_data_(options.accumulate_user_data),
      element_bytes_(options.accumulate_element_bytes),
      host_(options.host),
      arena_(memory, usable_cpus(allowed_cpus(), cgroup_cpu_quota(""))) {}

Status CrossDevice::create(Memory& memory, const CrossDeviceOptions& options, Ref<CrossDevice>* out) {
  DIST_TRY(check(options));
  DeviceName device;
  if (options.reduce_to_device != nullptr) {
    DIST_TRY(DeviceName::parse(options.reduce_to_device, "reduce_to_device", &device));
  }
  *out = make_counted<CrossDevice>(memory, options, device);
  return kOk;
}

Status CrossDevice::check_elements(const dist_tensor& value, std::size_t bytes) const noexcept {
  const std::size_t of_dtype = dtype_size(value.dtype);
  if (element_bytes_ == 0 || (element_bytes_ % of_dtype == 0 && bytes % element_bytes_ == 0)) return kOk;
  char text[160];
  describe(value, text, sizeof text);
  return invalid_argument(
      "`accumulate_element_bytes` is %zu, but must be a multiple of %zu bytes, the size of an element, and "
      "must divide %s, which has %zu bytes",
      element_bytes_, of_dtype, text, bytes);
}

Status host_status(dist_status status, uint64_t failures_before, const char* what) noexcept {
  if (status == DIST_OK) return kOk;
  if (failures_on_this_thread() != failures_before && last_error().code == status) return Status(status);
  return fail(status, "the host's %s returned %s without a reason. Use `dist_fail()` to report one", what,
              status_name(status));
}

}  // namespace dist
