// SPDX-License-Identifier: Apache-2.0
#include "core/ps/closure_queue.hpp"

#include <algorithm>

namespace dist {

ClosureQueue::ClosureQueue(Memory& memory, int num_workers, int per_worker, int max_losses)
    : per_worker_(per_worker),
      max_losses_(max_losses),
      workers_(static_cast<std::size_t>(num_workers), &memory),
      free_(memory, static_cast<std::size_t>(num_workers) * static_cast<std::size_t>(per_worker)),
      fresh_(&memory),
      back_(&memory),
      in_flight_(&memory),
      ended_(&memory) {}

void ClosureQueue::Places::remove(std::size_t i) noexcept {
  for (; i != 0; --i) ring_[index(i)] = ring_[index(i - 1)];
  first_ = index(1);
  --size_;
}

void ClosureQueue::Places::remove_all_of(int worker) noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    if (at(i) != worker) ring_[index(kept++)] = at(i);
  }
  size_ = kept;
}

int64_t ClosureQueue::schedule() {
  ended_.push_back(false);
  try {
    fresh_.push_back(next_id_);
  } catch (...) {
    ended_.pop_back();
    throw;
  }
  return next_id_++;
}

void ClosureQueue::worker_up(int worker) {
  Worker& each = workers_[static_cast<std::size_t>(worker)];
  if (each.up) return;
  for (int i = each.busy; i < per_worker_; ++i) free_.add(worker);
  each.up = true;
  ++num_up_;
}

void ClosureQueue::worker_down(int worker) noexcept {
  Worker& each = workers_[static_cast<std::size_t>(worker)];
  if (!each.up) return;
  each.up = false;
  --num_up_;
  free_.remove_all_of(worker);
}

void ClosureQueue::ended(int64_t id) noexcept {
  if (id < watermark_) return;
  ended_[static_cast<std::size_t>(id - watermark_)] = true;
  while (!ended_.empty() && ended_.front()) {
    ended_.pop_front();
    ++watermark_;
  }
}

void ClosureQueue::done(int64_t id) noexcept {
  const auto found = in_flight_.find(id);
  if (found == in_flight_.end()) return;
  leave(found->second.worker);
  in_flight_.erase(found);
  ended(id);
}

void ClosureQueue::leave(int worker) noexcept {
  Worker& each = workers_[static_cast<std::size_t>(worker)];
  --each.busy;
  if (each.up) free_.add(worker);
}

ClosureQueue::Lost ClosureQueue::lost(int64_t id, int64_t now_ns) {
  const auto found = in_flight_.find(id);
  if (found == in_flight_.end()) return Lost::kAgain;
  const Closure closure = found->second;
  const int losses = closure.losses + 1;
  ++num_losses_;
  if (losses > max_losses_) {
    done(id);
    return Lost::kTooOften;
  }
  const int64_t pause = std::min(kFirstPauseNs << std::min(losses - 1, 20), kLongestPauseNs);
  back_.emplace(id, Back{losses, closure.worker, now_ns + pause, now_ns + kPatience * pause});
  in_flight_.erase(found);
  leave(closure.worker);
  return Lost::kAgain;
}

void ClosureQueue::cancel_waiting(std::pmr::vector<int64_t>* out) {
  out->reserve(out->size() + num_waiting());
  for (const auto& [id, back] : back_) out->push_back(id);
  out->insert(out->end(), fresh_.begin(), fresh_.end());
  for (const int64_t id : *out) ended(id);
  back_.clear();
  fresh_.clear();
}

bool ClosureQueue::cancel(int64_t id) noexcept {
  if (back_.erase(id) == 0) {
    const auto found = std::lower_bound(fresh_.begin(), fresh_.end(), id);
    if (found == fresh_.end() || *found != id) return false;
    fresh_.erase(found);
  }
  ended(id);
  return true;
}

void ClosureQueue::resume(int64_t next) noexcept {
  watermark_ = next_id_ = next;
  ended_.clear();
}

void ClosureQueue::take(std::size_t place, int64_t id, int losses) {
  const int worker = free_.at(place);
  in_flight_.emplace(id, Closure{worker, losses});
  ++workers_[static_cast<std::size_t>(worker)].busy;
  free_.remove(place);
}

bool ClosureQueue::next(int64_t now_ns, Assignment* out) {
  if (free_.size() == 0) return false;
  // Lost closures go before new ones, because the host has waited for them for longer.
  for (auto at = back_.begin(); at != back_.end(); ++at) {
    const Back& back = at->second;
    if (back.due_ns > now_ns) continue;
    const bool any = back.patient_ns <= now_ns || num_up_ == (is_up(back.avoid) ? 1 : 0);
    std::size_t place = 0;
    while (place != free_.size() && !any && free_.at(place) == back.avoid) ++place;
    if (place == free_.size()) continue;
    *out = {at->first, free_.at(place)};
    take(place, out->id, back.losses);
    back_.erase(at);
    return true;
  }
  if (fresh_.empty()) return false;
  *out = {fresh_.front(), free_.at(0)};
  take(0, out->id, 0);
  fresh_.pop_front();
  return true;
}

int64_t ClosureQueue::ask_again_ns(int64_t now_ns) const noexcept {
  int64_t next = INT64_MAX;
  if (free_.size() == 0) return next;
  for (const auto& [id, back] : back_) {
    if (back.due_ns > now_ns) {
      next = std::min(next, back.due_ns);
    } else if (back.patient_ns > now_ns) {
      next = std::min(next, back.patient_ns);
    }
  }
  return next;
}

}  // namespace dist
