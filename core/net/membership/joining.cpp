// SPDX-License-Identifier: Apache-2.0
#include "core/net/membership/joining.hpp"

#include <algorithm>
#include <cstdio>

#include "core/base/os/clock.hpp"
#include "core/base/os/park.hpp"

namespace dist {
namespace {

constexpr int64_t kRetryNs = 100'000'000;

}  // namespace

Joining::~Joining() {
  if (channel_ != nullptr) network_.close(channel_);
}

Status Joining::open() { return network_.open("the rendezvous cannot begin", address_, &channel_); }

void Joining::answered(dist_status status, const char* text, Ref<CallMessage> answer) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    answered_ = true;
    status_ = status;
    copy_text(text_, text);
    answer_ = std::move(answer);
  }
  changes_.fetch_add(1, std::memory_order_release);
  unpark_all(changes_);
}

void Joining::cancelled(const char* reason) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    cancelled_ = true;
    copy_text(reason_, reason);
  }
  changes_.fetch_add(1, std::memory_order_release);
  unpark_all(changes_);
}

bool Joining::is_cancelled() const noexcept {
  const std::scoped_lock lock(mutex_);
  return cancelled_;
}

dist_status Joining::try_once(int64_t until_ns) {
  std::pmr::string message(&memory_);
  own_.write(&message);
  {
    const std::scoped_lock lock(mutex_);
    answered_ = false;
  }
  const int64_t left = until_ns == INT64_MAX ? 0 : std::max<int64_t>(until_ns - steady_now_ns(), 1);
  channel_->begin(*this, make_text(memory_, message), left);
  for (;;) {
    const uint32_t seen = changes_.load(std::memory_order_acquire);
    {
      const std::scoped_lock lock(mutex_);
      if (answered_) return status_;
      if (cancelled_) break;
    }
    const int64_t now = steady_now_ns();
    if (now >= until_ns) break;
    park(changes_, seen, until_ns == INT64_MAX ? -1 : until_ns - now);
  }
  channel_->take_back(*this);
  const std::scoped_lock lock(mutex_);
  if (answered_) return status_;
  if (cancelled_) return DIST_CANCELLED;
  channel_->why_not(text_, sizeof text_);
  if (*text_ == '\0') std::snprintf(text_, sizeof text_, "worker 0 at %s has not answered", address_);
  return DIST_DEADLINE_EXCEEDED;
}

Status Joining::join(int64_t until_ns, Cancel* cancel, Ref<ClusterSpec>* out) {
  const CancelScope scope(cancel, *this);
  if (scope.late()) return fail(DIST_CANCELLED, "%s", cancel->reason());
  for (;;) {
    const dist_status code = try_once(until_ns);
    if (is_cancelled()) return fail(DIST_CANCELLED, "%s", reason_);
    if (code == DIST_OK) break;
    const bool again = code == DIST_UNAVAILABLE && !channel_->rejected();
    if (!again) return fail(code, "%s", text_);
    for (const int64_t retry_at = steady_now_ns() + kRetryNs;;) {
      const uint32_t seen = changes_.load(std::memory_order_acquire);
      const int64_t now = steady_now_ns();
      if (is_cancelled() || now >= std::min(retry_at, until_ns)) break;
      park(changes_, seen, std::min(retry_at, until_ns) - now);
    }
    if (steady_now_ns() >= until_ns) return fail(DIST_DEADLINE_EXCEEDED, "%s", text_);
  }
  return read_cluster(memory_, {answer_->data(), answer_->bytes()}, own_.rank, own_.size, own_.port, out);
}

}  // namespace dist
