// SPDX-License-Identifier: Apache-2.0
#include "core/collective/worker_schedule.hpp"

namespace dist {
namespace {

constexpr TaskList::Ranks kNone{0, 0};

constexpr bool has(TaskList::Ranks ranks, int rank) noexcept {
  return rank >= ranks.begin && rank < ranks.end;
}

}  // namespace

WorkerSchedule::WorkerSchedule(const Call& call, const TaskList& tasks,
                               const CallDescriptor* const* descriptors, std::span<const int> firsts) noexcept
    : call_(call), tasks_(tasks), descriptors_(descriptors), firsts_(firsts) {
  if (folds() && to_all()) units_ = units_in({{0, 1}, kNone, {0, SIZE_MAX}});
}

WorkerSchedule::Lane WorkerSchedule::owned(int worker) const noexcept {
  Lane lane{{0, 1}, kNone, {0, 0}};
  const CollectiveTraits& traits = call_.traits();
  if (to_all()) {
    lane.units = part_of(units_, static_cast<std::size_t>(workers()), static_cast<std::size_t>(worker));
    return lane;
  }
  if (traits.destinations == Ends::kMember) lane.tasks = members(worker);
  if (traits.destinations == Ends::kRoot && !has(members(worker), call_.root)) return lane;
  lane.units.end = units_in(lane);
  return lane;
}

WorkerSchedule::Lane WorkerSchedule::between(int from, int to) const noexcept {
  const CollectiveTraits& traits = call_.traits();
  Lane lane{{0, 1}, members(from), {0, 0}};
  if (traits.sources == Ends::kRoot && !has(members(from), call_.root)) return lane;
  if (traits.destinations == Ends::kRoot && !has(members(to), call_.root)) return lane;
  if (traits.destinations == Ends::kMember) {
    lane.tasks = members(to);
  } else if (traits.sources == Ends::kMember) {
    lane.tasks = members(from);
  }
  lane.units.end = units_in(lane);
  return lane;
}

std::size_t WorkerSchedule::units_in(const Lane& lane) const noexcept {
  Cursor cursor = begin(lane);
  for_flows(lane, {0, SIZE_MAX}, cursor, [](const Flow&, std::size_t, std::size_t) {});
  return cursor.unit;
}

WorkerSchedule::Cursor WorkerSchedule::begin(const Lane& lane) const noexcept {
  Cursor cursor;
  cursor.task = lane.tasks.begin;
  cursor.from = lane.from.begin;
  if (lane.tasks.begin == lane.tasks.end) cursor.t = call_.n;
  if (cursor.t < call_.n) cursor.before = before(lane, 0, cursor.task);
  return cursor;
}

// The total size along the axis of the parts in front of a task's first flow in the lane.
int64_t WorkerSchedule::before(const Lane& lane, std::size_t t, int task) const noexcept {
  int64_t sum = 0;
  if (call_.traits().swaps()) {
    for (int p = 0; p < lane.from.begin; ++p) sum += tasks_.split(p, task, t);
  } else if (call_.cuts() || call_.joins()) {
    for (int p = 0; p < task; ++p) sum += tasks_.part(p, t);
  }
  return sum;
}

void WorkerSchedule::advance(const Lane& lane, Cursor& cursor) const noexcept {
  if (call_.traits().swaps()) {
    cursor.before += tasks_.split(cursor.from, cursor.task, cursor.t);
    if (++cursor.from < lane.from.end) return;
    cursor.from = lane.from.begin;
    if (++cursor.task < lane.tasks.end) {
      cursor.before = before(lane, cursor.t, cursor.task);
      return;
    }
  } else {
    if (call_.cuts() || call_.joins()) cursor.before += tasks_.part(cursor.task, cursor.t);
    if (++cursor.task < lane.tasks.end) return;
  }
  cursor.task = lane.tasks.begin;
  if (++cursor.t < call_.n) cursor.before = before(lane, cursor.t, cursor.task);
}

WorkerSchedule::Flow WorkerSchedule::flow_at(const Lane& lane, const Cursor& cursor) const noexcept {
  const CollectiveTraits& traits = call_.traits();
  Flow flow;
  flow.t = cursor.t;
  if (traits.destinations != Ends::kAll)
    flow.to = traits.destinations == Ends::kRoot ? call_.root : cursor.task;
  if (traits.swaps()) {
    flow.from = cursor.from;
    flow.src_at = tasks_.split_begin(cursor.from, cursor.task, flow.t);
    flow.dst_at = cursor.before;
    flow.along = tasks_.split(cursor.from, cursor.task, flow.t);
  } else {
    if (!folds()) {
      // A member without a source receives nothing.
      const Ranks from = tasks_.sources(cursor.task);
      if (from.begin == from.end || !has(lane.from, from.begin)) return flow;
      flow.from = from.begin;
    }
    if (call_.cuts()) flow.src_at = cursor.before;
    if (call_.joins()) flow.dst_at = cursor.before;
    if (call_.cuts() || call_.joins()) flow.along = tasks_.part(cursor.task, flow.t);
  }
  flow.elements = call_.cuts() || call_.joins()
                      ? static_cast<std::size_t>(flow.along) * tasks_.around(flow.t)
                      : elements_of(call_.in != nullptr ? call_.in[flow.t] : call_.out[flow.t]);
  return flow;
}

std::size_t WorkerSchedule::slice(std::size_t most_bytes) const noexcept {
  const auto count = static_cast<std::size_t>(workers());
  // The staging memory of a piece, in units for each unit of every lane.
  std::size_t most = 2 * count;
  if (folds()) {
    // A result may be larger than its inputs.
    std::size_t grows = 1;
    for (std::size_t t = 0; call_.op == DIST_REDUCE_MEAN && t < call_.n; ++t) {
      const dist_dtype dtype = tasks_.dtype_of(t);
      grows = std::max(grows, dtype_size(call_.out_dtype(dtype)) / dtype_size(dtype));
    }
    const auto results = [&](Ranks ranks) {
      return call_.traits().prefixes ? grows * static_cast<std::size_t>(ranks.end - ranks.begin) : grows;
    };
    std::size_t all = 0;
    std::size_t beyond = 0;
    for (int w = 0; w < workers(); ++w) {
      const Ranks ranks = members(w);
      std::size_t own = 0;
      for (int p = ranks.begin; p < ranks.end; ++p) own += descriptors_[p]->contributions;
      all += own;
      beyond = std::max(beyond, own + (to_all() ? results(ranks) : 0));
    }
    most = all + results({0, firsts_.back()}) + (count - 1) * beyond;
  }
  return std::max<std::size_t>(1, most_bytes / (most * tasks_.unit_bytes()));
}

std::size_t WorkerSchedule::pieces(std::size_t slice) const noexcept {
  std::size_t most = 0;
  const auto look = [&](const Lane& lane) { most = std::max(most, lane.units.end - lane.units.begin); };
  for (int w = 0; w < workers(); ++w) {
    if (folds()) {
      look(owned(w));
    } else if (to_all()) {
      look(between(w, w));
    } else {
      for (int to = 0; to < workers(); ++to) look(between(w, to));
    }
  }
  return most / slice + (most % slice != 0 ? 1 : 0);
}

}  // namespace dist
