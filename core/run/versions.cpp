// SPDX-License-Identifier: Apache-2.0
#include "core/run/versions.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "core/base/host_call.hpp"
#include "core/base/os/clock.hpp"
#include "core/base/text.hpp"

namespace dist {

void Unseen::let_go(Version& version) noexcept {
  // acq_rel: the effects of all users come before the release.
  if (version.uses_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  version.next_unseen_ = std::exchange(first_, &version);
}

void Unseen::take(Unseen& other) noexcept {
  while (other.first_ != nullptr) {
    Version* const one = std::exchange(other.first_, other.first_->next_unseen_);
    one->next_unseen_ = std::exchange(first_, one);
  }
}

void Unseen::release() noexcept {
  while (first_ != nullptr) {
    Version& one = *std::exchange(first_, first_->next_unseen_);
    if (one.release_ != nullptr) (void)survived([&] { one.release_(one.content_, one.user_data_); });
    const auto series = Ref<Versions>::share(&one.series());
    series->forget(one);
    one.Counted::release();
  }
}

void Versions::publish(void* content, Version::Release ending, void* user_data, int64_t* out_number) {
  Version* const made = make_counted<Version>(memory(), *this, content, ending, user_data).take();
  Unseen unseen;
  const std::lock_guard lock(mutex_);
  made->number_ = number_.load(std::memory_order_relaxed) + 1;
  unreleased_.push_back(*made);
  Version* const before = std::exchange(latest_, made);
  number_.store(made->number_, std::memory_order_release);
  if (out_number != nullptr) *out_number = made->number_;
  if (before != nullptr) unseen.let_go(*before);
}

Version* Versions::see_latest() noexcept {
  const std::lock_guard lock(mutex_);
  // relaxed: the version is in use because it is the latest.
  if (latest_ != nullptr) latest_->uses_.fetch_add(1, std::memory_order_relaxed);
  return latest_;
}

void Versions::forget(Version& version) noexcept {
  const std::lock_guard lock(mutex_);
  unreleased_.remove(version);
  released_.advance();
}

Status Versions::await(int64_t number, int64_t timeout_ns) noexcept {
  const int64_t start = steady_now_ns();
  for (;;) {
    // The acquire keeps this load before the check, so a later release ends the wait.
    const uint32_t seen = released_.value.load(std::memory_order_acquire);
    {
      const std::lock_guard lock(mutex_);
      if (unreleased_.empty() || unreleased_.first()->number_ >= number) return kOk;
    }
    const int64_t left = timeout_ns < 0 ? -1 : timeout_ns - (steady_now_ns() - start);
    if (timeout_ns >= 0 && left <= 0) return still_seen(number, timeout_ns);
    const auto changed = [&] { return released_.value.load(std::memory_order_seq_cst) != seen; };
    if (!spin_until(WaitPolicy{}, changed)) released_.sleep(seen, left, WaitPolicy{}, changed);
  }
}

// Lists for example "version 1 (2 runs), version 3 (its release has not returned)".
Status Versions::still_seen(int64_t number, int64_t timeout_ns) noexcept {
  char list[512] = "";
  std::size_t used = 0;
  const auto add = [&](const char* format, auto... what) {
    const int length = std::snprintf(list + used, sizeof list - used, format, what...);
    used = std::min(sizeof list - 1, used + static_cast<std::size_t>(std::max(0, length)));
  };
  {
    const std::lock_guard lock(mutex_);
    constexpr int kMostListed = 8;
    int listed = 0;
    for (const Version& each : unreleased_) {
      if (each.number_ >= number) break;
      if (++listed > kMostListed) continue;
      add("%sversion %lld ", listed == 1 ? "" : ", ", static_cast<long long>(each.number_));
      const int64_t runs = each.uses_.load(std::memory_order_relaxed);
      if (runs == 0) {
        add("%s", "(its release has not returned)");
      } else {
        add("(%lld run%s)", static_cast<long long>(runs), runs == 1 ? "" : "s");
      }
    }
    if (listed > kMostListed) add(", and %d more", listed - kMostListed);
    // The last of them has been released just now.
    if (listed == 0) return kOk;
  }
  return fail(DIST_DEADLINE_EXCEEDED,
              "`dist_versions_await()`: versions before %lld were not released within %s: %s",
              static_cast<long long>(number), DurationText(timeout_ns).text, list);
}

void Versions::close() noexcept {
  Unseen unseen;
  const std::lock_guard lock(mutex_);
  if (Version* const last = std::exchange(latest_, nullptr); last != nullptr) unseen.let_go(*last);
}

}  // namespace dist
