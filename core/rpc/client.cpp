// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/client.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/os/clock.hpp"
#include "core/base/os/park.hpp"
#include "core/base/text.hpp"
#include "core/rpc/job_calls.hpp"
#include "core/rpc/message.hpp"

namespace dist {
namespace {

constexpr int64_t kNever = INT64_MAX;

}  // namespace

Status RpcClient::create(Memory& memory, const char* address, int64_t timeout_ns, Ref<RpcClient>* out) {
  Ref<RpcClient> made = make_counted<RpcClient>(memory, address, timeout_ns);
  DIST_TRY(create_job_calls(memory, {}, &made->calls_));
  DIST_TRY(made->calls_->open("a client of methods", made->address(), &made->channel_));
  *out = std::move(made);
  return kOk;
}

RpcClient::RpcClient(Memory& memory, const char* address, int64_t timeout_ns)
    : Counted(memory),
      address_(address, &memory),
      timeout_ns_(timeout_ns == 0 ? kDefaultTimeoutNs : timeout_ns) {}

RpcClient::~RpcClient() {
  if (channel_ != nullptr) calls_->close(channel_);
}

Status RpcClient::begin(std::string_view method, Value* arguments, const RpcCallOptions& options,
                        Ref<RemoteValue>* out) {
  if (memory().forked()) {
    return failed_precondition("this is a forked child, in which the client has no threads");
  }
  if (method.empty() || method.size() > kMostMethodBytes) {
    return invalid_argument("the name of a method has 1 to %zu bytes; this one has %zu", kMostMethodBytes,
                            method.size());
  }
  Ref<CallParts> request;
  DIST_TRY(write_message(memory(), method, arguments, &request));
  const int64_t timeout_ns = options.timeout_ns == 0 ? timeout_ns_ : options.timeout_ns;
  const int64_t now = steady_now_ns();
  const int64_t until = timeout_ns < 0 || timeout_ns > kNever - now ? kNever : now + timeout_ns;
  Ref<RemoteValue> made = make_counted<RemoteValue>(memory(), *this, method, options.cancel, until);
  if (options.cancel != nullptr) {
    made->linked_ = options.cancel->add(*made);
    if (!made->linked_) return fail(DIST_CANCELLED, "%s", options.cancel->reason());
  }
  channel_->begin(*made, std::move(request), std::max<int64_t>(timeout_ns, 0));
  // A signal that came before it had begun had nothing to take back.
  if (made->over()) channel_->take_back(*made);
  *out = std::move(made);
  return kOk;
}

RemoteValue::RemoteValue(Memory& memory, RpcClient& client, std::string_view method, Cancel* cancel,
                         int64_t until_ns)
    : Counted(memory),
      client_(Ref<RpcClient>::share(&client)),
      method_(method, &memory),
      cancel_(Ref<Cancel>::share(cancel)),
      until_ns_(until_ns) {}

RemoteValue::~RemoteValue() {
  if (memory().forked()) return;
  if (linked_) cancel_->remove(*this);
  client_->channel_->take_back(*this);
}

void RemoteValue::answered(dist_status status, const char* text, Ref<CallMessage> answer) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (over()) return;
    status_ = status;
    copy_text(text_, text);
    message_ = std::move(answer);
    over_.store(1, std::memory_order_release);
  }
  unpark_all(over_);
}

void RemoteValue::cancel(const char* reason) noexcept {
  if (memory().forked()) return;
  client_->channel_->take_back(*this);
  answered(DIST_CANCELLED, reason, {});
}

// The call's deadline has passed.
void RemoteValue::expire() noexcept {
  client_->channel_->take_back(*this);
  char why[400] = "";
  client_->channel_->why_not(why, sizeof why);
  char text[512];
  std::snprintf(text, sizeof text, "no answer in time%s%s", *why != '\0' ? ": " : "", why);
  answered(DIST_DEADLINE_EXCEEDED, text, {});
}

bool RemoteValue::ready() noexcept {
  if (memory().forked()) return true;
  if (!over() && steady_now_ns() >= until_ns_) expire();
  return over();
}

Status RemoteValue::get(int64_t timeout_ns, ValueRef* out) {
  if (memory().forked()) {
    return failed_precondition("this is a forked child, in which the client has no threads");
  }
  const int64_t begin = steady_now_ns();
  const int64_t until =
      timeout_ns < 0 || timeout_ns > kNever - begin ? until_ns_ : std::min(until_ns_, begin + timeout_ns);
  while (!over()) {
    const int64_t now = steady_now_ns();
    if (now >= until_ns_) {
      expire();
    } else if (now >= until) {
      return fail(DIST_DEADLINE_EXCEEDED, "%s at %s has not answered yet; the call goes on",
                  Shown(method_.c_str()).c_str(), client_->address());
    } else {
      park(over_, 0, until == kNever ? -1 : until - now);
    }
  }
  const std::scoped_lock lock(mutex_);
  if (status_ == DIST_OK && message_) {
    std::string_view method;
    const Status read = read_message(memory(), message_, &method, &value_);
    message_ = {};
    if (!read.ok()) {
      status_ = read.code();
      copy_text(text_, last_error().message);
    }
  }
  if (status_ != DIST_OK) {
    return fail(status_, "%s at %s: %s", Shown(method_.c_str()).c_str(), client_->address(), text_);
  }
  *out = value_;
  return kOk;
}

}  // namespace dist
