// SPDX-License-Identifier: Apache-2.0
#include "core/net/rpc/client.hpp"

#include <algorithm>
#include <cstdio>

#include "core/base/os/clock.hpp"
#include "core/base/text.hpp"
#include "core/net/rpc/message.hpp"

namespace dist {
namespace {

constexpr int64_t kNoEnd = INT64_MAX;

}  // namespace

Status RpcClient::create(Memory& memory, const Ref<GrpcCalls>& calls, const char* address, int64_t timeout_ns,
                         Ref<RpcClient>* out) {
  Ref<RpcClient> made = make_counted<RpcClient>(memory, address, timeout_ns);
  made->calls_ = calls;
  DIST_TRY(made->calls_->open("the RPC client cannot be created", made->address(), &made->channel_));
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
    return failed_precondition(
        "this is a forked child, in which the client has no threads. Create another one in the child.");
  }
  if (method.empty() || method.size() > kMostMethodBytes) {
    return invalid_argument("the name of a method must have 1 to %zu bytes, but this one has %zu",
                            kMostMethodBytes, method.size());
  }
  Ref<CallParts> request;
  DIST_TRY(write_message(memory(), method, arguments, &request));
  const int64_t timeout_ns = options.timeout_ns == 0 ? timeout_ns_ : options.timeout_ns;
  const int64_t now = steady_now_ns();
  const int64_t until = timeout_ns < 0 || timeout_ns > kNoEnd - now ? kNoEnd : now + timeout_ns;
  Ref<RpcCall> made = make_counted<RpcCall>(memory(), *this, method, options, until);
  if (options.cancel != nullptr) {
    made->linked_ = options.cancel->add(*made);
    if (!made->linked_) return fail(DIST_CANCELLED, "%s", options.cancel->reason());
  }
  bytes_sent_.fetch_add(request->bytes(), std::memory_order_relaxed);
  channel_->begin(*made, std::move(request), std::max<int64_t>(timeout_ns, 0));
  // If the signal arrived before the call had begun, it could not take the call back.
  if (made->over()) channel_->take_back(*made);
  *out = Ref<RemoteValue>::adopt(made.take());
  return kOk;
}

RpcCall::RpcCall(Memory& memory, RpcClient& client, std::string_view method, const RpcCallOptions& options,
                 int64_t until_ns)
    : RemoteValue(memory, until_ns),
      client_(Ref<RpcClient>::share(&client)),
      method_(method, &memory),
      cancel_(Ref<Cancel>::share(options.cancel)),
      observer_(options.observer) {}

RpcCall::~RpcCall() {
  if (memory().forked()) return;
  if (linked_) cancel_->remove(*this);
  client_->channel_->take_back(*this);
}

void RpcCall::answered(dist_status status, const char* text, Ref<CallMessage> answer) noexcept {
  if (answer) client_->bytes_received_.fetch_add(answer->bytes(), std::memory_order_relaxed);
  message_ = std::move(answer);
  if (settle(status, text) && observer_ != nullptr) observer_->answered();
}

void RpcCall::cancel(const char* reason) noexcept {
  if (memory().forked()) return;
  client_->channel_->take_back(*this);
  settle(DIST_CANCELLED, reason);
}

void RpcCall::expire() noexcept {
  client_->channel_->take_back(*this);
  char why[sizeof ErrorRecord::message] = "";
  client_->channel_->why_not(why, sizeof why);
  char text[sizeof why + 32];
  std::snprintf(text, sizeof text, "no answer in time%s%s", *why != '\0' ? ": " : "", why);
  settle(DIST_DEADLINE_EXCEEDED, text);
}

void RpcCall::describe(char* text, std::size_t size) const noexcept {
  std::snprintf(text, size, "%s at %s", Shown(method_.c_str()).c_str(), client_->address());
}

Status RpcCall::read(ValueRef* out) {
  std::string_view method;
  const Ref<CallMessage> message = std::move(message_);
  return read_message(memory(), message, &method, out);
}

}  // namespace dist
