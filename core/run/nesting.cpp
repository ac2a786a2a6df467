// SPDX-License-Identifier: Apache-2.0
#include "core/run/nesting.hpp"

namespace dist {

void Nesting::cancel(const char* reason) noexcept {
  if (NestedRuns* const runs = inner(); runs != nullptr) runs->cancel(reason);
  for (DeviceRuns* const each : devices_) each->cancel(reason);
  if (lent_ != nullptr) lent_->cancel(reason);
}

// The inner run of a merge function has the deadline of the outer one, so it needs no report of it.
void Nesting::condemn(const ErrorRecord& why) noexcept {
  for (DeviceRuns* const each : devices_) each->condemn(why);
  if (lent_ != nullptr) lent_->condemn(why);
}

void Nesting::condemn_others(int rank, const ErrorRecord& why) noexcept {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (static_cast<int>(i) != rank) devices_[i]->condemn(why);
  }
}

// Nested runs may have been abandoned at their own deadlines.
bool Nesting::is_inside(const Sight& of) const noexcept {
  for (const DeviceRuns* const each : devices_) {
    if (each->is_inside(of)) return true;
  }
  if (lent_ != nullptr && lent_->is_inside(of)) return true;
  const NestedRuns* const runs = inner();
  return runs != nullptr && runs->is_inside(of);
}

Status Nesting::check_idle(const char* call, const char* advice) noexcept {
  if (NestedRuns* const runs = inner(); runs != nullptr) DIST_TRY(runs->check_idle(call, advice));
  for (DeviceRuns* const each : devices_) DIST_TRY(each->check_idle(call, advice));
  return kOk;
}

void Nesting::refuse_runs(const char* call) noexcept {
  if (NestedRuns* const runs = inner(); runs != nullptr) runs->refuse_runs(call);
  for (DeviceRuns* const each : devices_) each->refuse_runs(call);
}

void Nesting::shut_down(int64_t deadline_ns, std::span<char> inside, const char* call) noexcept {
  if (NestedRuns* const runs = inner(); runs != nullptr) runs->shut_down(deadline_ns, inside, call);
  for (DeviceRuns* const each : devices_) each->shut_down(deadline_ns, inside, call);
}

}  // namespace dist
