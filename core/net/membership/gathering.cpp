// SPDX-License-Identifier: Apache-2.0
#include "core/net/membership/gathering.hpp"

#include <algorithm>
#include <string_view>

#include "core/base/os/clock.hpp"
#include "core/base/os/park.hpp"
#include "core/base/text.hpp"
#include "core/cluster/link_security.hpp"

namespace dist {
namespace {

constexpr std::size_t kMostRejections = 4;  // rejections that messages describe
constexpr std::size_t kMostMissing = 8;     // missing ranks that messages name
// A worker receives the list of missing ranks this long before its own deadline expires.
constexpr int64_t kMostAheadNs = 1'000'000'000;

std::string_view name_or_none(std::string_view job) noexcept { return job.empty() ? "without a name" : job; }

bool is_loopback(std::string_view host) noexcept { return HostAndPort{host, 0}.is_loopback(); }

}  // namespace

Gathering::Gathering(Memory& memory, const char* address, const Registration& own)
    : memory_(memory), own_(own), address_(address, &memory), places_(&memory), rejections_(&memory) {
  places_.reserve(static_cast<std::size_t>(own.size));
  for (int32_t i = 0; i < own.size; ++i) places_.push_back({{}, std::pmr::string(&memory), 0});
  places_[0].address = address_text(memory, own.host, own.port);
}

// ---- On threads of the network ----

void Gathering::called(Ref<IncomingCall> call) noexcept {
  dist_status code = DIST_RESOURCE_EXHAUSTED;
  char text[sizeof ErrorRecord::message] = "worker 0 is out of memory";
  try {
    const Status taken = take(call);
    if (taken.ok()) return wake();
    code = taken.code();
    copy_text(text, last_error().message);
    const std::scoped_lock lock(mutex_);
    if (static_cast<std::size_t>(num_rejected_++) < kMostRejections)
      rejections_.append(rejections_.empty() ? "" : "; ").append(text);
  } catch (const std::bad_alloc&) {
  }
  call->answer(code, text, {});
}

Status Gathering::take(const Ref<IncomingCall>& call) {
  Registration given(memory_);
  CallMessage& request = call->request();
  DIST_TRY(given.read(memory_, {request.data(), request.bytes()}));
  const std::pmr::string address = address_text(memory_, host_of(given, *call), given.port);
  const std::scoped_lock lock(mutex_);
  // The rendezvous is complete. After this server has closed the connection, the worker registers with the
  // next rendezvous at this address.
  if (over_) return kOk;
  DIST_TRY(check(given, address));
  Place& place = places_[static_cast<std::size_t>(given.rank)];
  place.address = address;
  place.call = call;
  const int64_t timeout_ns = call->timeout_ns();
  place.answer_by_ns =
      timeout_ns == 0 ? INT64_MAX : steady_now_ns() + timeout_ns - std::min(kMostAheadNs, timeout_ns / 8);
  return kOk;
}

Status Gathering::check(const Registration& given, const std::pmr::string& address) const {
  if (given.job != own_.job) {
    return failed_precondition(
        "worker %d at %s belongs to another job (%s) than worker 0 (%s), which waits at %s. Give each job an "
        "address of its own, or set the same DIST_JOB_NAME for all workers of this one.",
        given.rank, Shown(address.c_str()).c_str(), Shown(name_or_none(given.job)).c_str(),
        Shown(name_or_none(own_.job)).c_str(), address_.c_str());
  }
  if (given.size != own_.size) {
    return failed_precondition(
        "worker %d at %s has a job of %s, but worker 0, which waits at %s, has one of %s. Set the same size "
        "for all of them.",
        given.rank, Shown(address.c_str()).c_str(), CountText(given.size, "worker").text, address_.c_str(),
        CountText(own_.size, "worker").text);
  }
  const Place& place = places_[static_cast<std::size_t>(given.rank)];
  if (given.rank != 0 && !place.call) return kOk;
  return failed_precondition(
      "rank %d is used twice: %s has registered it, and %s tries to. Give each worker a rank of its own.",
      given.rank, Shown(place.address.c_str()).c_str(), Shown(address.c_str()).c_str());
}

// The host at which other workers reach this one.
std::pmr::string Gathering::host_of(const Registration& given, const IncomingCall& call) const {
  if (!given.host.empty()) return given.host;
  const std::string_view seen = call.client_host();
  // A worker that connects over loopback runs on this machine, whose name may resolve to another address
  // elsewhere.
  return std::pmr::string(is_loopback(seen) ? std::string_view(own_.host) : seen, &memory_);
}

void Gathering::given_up(IncomingCall& call) noexcept {
  Ref<IncomingCall> kept;
  const std::scoped_lock lock(mutex_);
  for (Place& each : places_) {
    if (each.call.get() != &call) continue;
    kept = std::move(each.call);
    each.call = {};
    each.address.clear();
  }
}

void Gathering::wrong_secret() noexcept {
  const std::scoped_lock lock(mutex_);
  ++num_strangers_;
}

void Gathering::cancelled(const char* reason) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    cancelled_ = true;
    copy_text(reason_, reason);
  }
  wake();
}

void Gathering::wake() noexcept {
  changes_.fetch_add(1, std::memory_order_release);
  unpark_all(changes_);
}

// ---- On the thread of worker 0 ----

void Gathering::set_address(std::string_view address) {
  const std::scoped_lock lock(mutex_);
  address_ = address;
}

std::size_t Gathering::num_missing() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(places_.begin() + 1, places_.end(), [](const Place& each) { return !each.call; }));
}

// "rank 3 of 4 has not registered at 127.0.0.1:29500"
std::pmr::string Gathering::describe_missing() const {
  std::pmr::string text(&memory_);
  const std::size_t missing = num_missing();
  std::size_t named = 0;
  text += missing == 1 ? "rank " : "ranks ";
  for (std::size_t rank = 1; rank < places_.size() && named < kMostMissing; ++rank) {
    if (places_[rank].call) continue;
    if (named++ > 0) text += ", ";
    text += std::to_string(rank);
  }
  if (named < missing) text.append(" and ").append(std::to_string(missing - named)).append(" others");
  text.append(" of ").append(std::to_string(places_.size()));
  text.append(missing == 1 ? " has" : " have").append(" not registered at ").append(address_);
  if (num_strangers_ > 0) {
    text +=
        ". A process with another DIST_JOB_SECRET has tried to connect; set the same secret for all workers";
  }
  if (num_rejected_ > 0) text.append(". Rejected: ").append(rejections_);
  return text;
}

int64_t Gathering::take_late(int64_t now, std::pmr::vector<Ref<IncomingCall>>* out) {
  int64_t next = INT64_MAX;
  for (Place& each : places_) {
    if (!each.call) continue;
    if (now < each.answer_by_ns) {
      next = std::min(next, each.answer_by_ns);
    } else {
      out->push_back(std::move(each.call));
      each.call = {};
    }
  }
  return next;
}

void Gathering::take_all(std::pmr::vector<Ref<IncomingCall>>* out) {
  over_ = true;
  for (Place& each : places_) {
    if (each.call) out->push_back(std::move(each.call));
    each.call = {};
  }
}

Status Gathering::gather(int64_t until_ns, Cancel* cancel, Ref<ClusterSpec>* out) {
  const CancelScope scope(cancel, *this);
  if (scope.late()) cancelled(cancel->reason());
  std::pmr::vector<Ref<IncomingCall>> calls(&memory_);
  calls.reserve(places_.size());
  for (;;) {
    const uint32_t seen = changes_.load(std::memory_order_acquire);
    std::pmr::string text(&memory_);
    dist_status code = DIST_OK;
    bool complete = false;
    int64_t next = until_ns;
    {
      const std::scoped_lock lock(mutex_);
      const int64_t now = steady_now_ns();
      complete = num_missing() == 0;
      if (cancelled_) {
        code = DIST_CANCELLED;
        text.append("worker 0 has cancelled the rendezvous: ").append(reason_);
      } else if (!complete) {
        text = describe_missing();
        if (now >= until_ns) code = DIST_DEADLINE_EXCEEDED;
      }
      if (code != DIST_OK || complete) {
        take_all(&calls);
      } else {
        next = std::min(next, take_late(now, &calls));
      }
    }
    if (code == DIST_OK && complete) break;
    for (const auto& each : calls)
      each->answer(code == DIST_OK ? DIST_DEADLINE_EXCEEDED : code, text.c_str(), {});
    if (code != DIST_OK) return fail(code, "%s", code == DIST_CANCELLED ? reason_ : text.c_str());
    calls.clear();
    park(changes_, seen, next == INT64_MAX ? -1 : std::max<int64_t>(next - steady_now_ns(), 0));
  }
  DIST_TRY(finish(out));
  for (const auto& each : calls) each->answer(DIST_OK, "", make_text(memory_, (*out)->json()));
  return kOk;
}

Status Gathering::finish(Ref<ClusterSpec>* out) {
  SpecBuilder builder(memory_);
  DIST_TRY(builder.begin_job("worker"));
  for (std::size_t i = 0; i < places_.size(); ++i)
    DIST_TRY(builder.add_task(static_cast<int32_t>(i), places_[i].address));
  return builder.finish(out);
}

}  // namespace dist
