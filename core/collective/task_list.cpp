// SPDX-License-Identifier: Apache-2.0
#include "core/collective/task_list.hpp"

namespace dist {

TaskList::TaskList(const Call& call, int size, const CallDescriptor* const* descriptors, Ranks local) noexcept
    : call_(call),
      descriptors_(descriptors),
      size_(size),
      local_(local),
      some_remote_(local.end - local.begin != size),
      cuts_or_joins_(call.cuts() || call.joins()),
      unit_bytes_(unit_bytes_for(call.element_bytes)) {
  if (call.traits().tasks == Tasks::kMembers) parts_ = static_cast<std::size_t>(size);
  if (cuts_or_joins_ && call.n != 0) first_ = steps_of(0);
  tasks_ = call.n * parts_;
  if (!cuts_or_joins_ && parts_ == 1 && !some_remote_ && unit_bytes_ == kUnitBytes) {
    const dist_tensor* const tensors = call.in != nullptr ? call.in : call.out;
    for (std::size_t t = 0; t < call.n; ++t)
      units_ += dist::units_of(elements_of(tensors[t]) * dtype_size(tensors[t].dtype));
    return;
  }
  for (std::size_t k = 0; k < tasks_; ++k) units_ += units_of(elements(k) * element_bytes(k), unit_bytes_);
}

int64_t TaskList::split_begin(int p, int r, std::size_t t) const noexcept {
  const int64_t* const offsets = descriptors_[p]->offsets;
  return offsets != nullptr ? offsets[r] : part(p, t) / size_ * r;
}

TaskList::Steps TaskList::steps_of(std::size_t t) const noexcept {
  const dist_tensor& tensor = like(t);
  const int32_t axis = call_.axis_of(t);
  Steps steps{1, 1};
  for (int32_t i = axis + 1; i < tensor.ndim; ++i) steps.inner *= static_cast<std::size_t>(tensor.shape[i]);
  steps.around = steps.inner;
  for (int32_t i = 0; i < axis; ++i) steps.around *= static_cast<std::size_t>(tensor.shape[i]);
  return steps;
}

TaskList::Region TaskList::region(const Cursor& at) const noexcept {
  Region region;
  const std::size_t t = tensor_of(at.task);
  const int member = member_of(at.task);
  const std::size_t step = inner(t);
  region.run = region.src_step = region.dst_step = static_cast<std::size_t>(part(member, t)) * step;
  const int with_whole = call_.cuts() ? sources(member).begin : destinations(member).begin;
  const std::size_t row = static_cast<std::size_t>(whole(with_whole, t)) * step;
  const std::size_t first = static_cast<std::size_t>(at.before) * step;
  if (call_.cuts()) {
    region.src_step = row;
    region.src_first = first;
    region.src_offset = at.before;
  } else {
    region.dst_step = row;
    region.dst_first = first;
    region.dst_offset = at.before;
  }
  return region;
}

TaskList::Region TaskList::region_from(const Cursor& at, int p, int64_t before) const noexcept {
  const std::size_t t = tensor_of(at.task);
  const int r = member_of(at.task);
  const std::size_t step = inner(t);
  Region region;
  region.run = static_cast<std::size_t>(split(p, r, t)) * step;
  region.src_step = static_cast<std::size_t>(part(p, t)) * step;
  region.dst_step = static_cast<std::size_t>(whole(r, t)) * step;
  region.src_offset = split_begin(p, r, t);
  region.dst_offset = before;
  region.src_first = static_cast<std::size_t>(region.src_offset) * step;
  region.dst_first = static_cast<std::size_t>(before) * step;
  return region;
}

}  // namespace dist
