// SPDX-License-Identifier: Apache-2.0
// The client side of calls: a line to a server, which connects when a call needs it.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "core/base/os/clock.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc/calls.hpp"
#include "core/net/grpc/channels.hpp"

namespace dist::grpc_link {
namespace {

constexpr char kEnded[] = "the client has been closed";

// Puts the cause before what gRPC reports, which is less exact.
std::string unreachable(const CallLine& line) {
  const std::string attempts = line.failed_attempts.text();
  const std::string cause = line.causes.empty() ? line.early_cause : line.causes.text();
  const bool known = !cause.empty() && attempts.find(cause) == std::string::npos;
  if (attempts.empty()) return line.name + " cannot be reached: " + cause;
  return line.name +
         " cannot be reached: " + (known ? cause + ". Attempts to connect: " + attempts : attempts);
}

}  // namespace

class Calls::Channel final : public CallChannel {
 public:
  Channel(Calls& owner, std::shared_ptr<CallLine> line) noexcept : owner_(owner), line_(std::move(line)) {}

  void begin(OutgoingCall& call, Ref<CallParts> request, int64_t timeout_ns) noexcept override {
    const std::size_t bytes = request->bytes();
    LinkRef link;
    bool connect = false;
    {
      const std::scoped_lock lock(line_->mutex);
      if (line_->closed) return call.answered(DIST_CANCELLED, kEnded, {});
      if (bytes > owner_.limits_.message_bytes) {
        const std::string text = "a request of " + std::to_string(bytes) + " bytes exceeds the limit of " +
                                 std::to_string(owner_.limits_.message_bytes);
        return call.answered(DIST_RESOURCE_EXHAUSTED, text.c_str(), {});
      }
      const uint64_t id = call.id = ++line_->last_id;
      const auto timeout =
          static_cast<uint64_t>(std::clamp<int64_t>(timeout_ns, 0, static_cast<int64_t>(kMostMessageBytes)));
      try {
        line_->waiting.emplace(id, &call);
        line_->receiver.expect(id);
        line_->sender.add({.kind = FrameKind::kCall, .id = id, .bytes = bytes, .offset = timeout},
                          FrameKind::kCallData, std::move(request));
      } catch (const std::bad_alloc&) {
        line_->waiting.erase(id);
        line_->receiver.forget(id);
        return call.answered(DIST_RESOURCE_EXHAUSTED, "out of memory", {});
      }
      link = line_->link;
      connect = link == nullptr && line_->retry_ns == 0 && !line_->connecting;
    }
    if (link != nullptr) link->flush();
    if (connect) owner_.connect(line_);
  }

  void take_back(OutgoingCall& call) noexcept override {
    LinkRef link;
    {
      const std::scoped_lock lock(line_->mutex);
      const auto found = line_->waiting.find(call.id);
      if (found == line_->waiting.end() || found->second != &call) return;
      line_->waiting.erase(found);
      const bool begun = !line_->sender.waits(call.id);
      line_->sender.drop(call.id);
      line_->receiver.forget(call.id);
      link = line_->link;
      if (begun && link != nullptr) line_->queue.put({.kind = FrameKind::kTakeBack, .id = call.id});
    }
    if (link != nullptr) link->flush();
  }

  void why_not(char* text, std::size_t size) const noexcept override {
    const std::scoped_lock lock(line_->mutex);
    copy_shown(text, size, line_->why.c_str(), Keep::kMarks);
  }

  bool rejected() const noexcept override {
    const std::scoped_lock lock(line_->mutex);
    return line_->rejected;
  }

  void end() noexcept override {
    LinkRef link;
    std::shared_ptr<grpc::Channel> channel;
    {
      const std::scoped_lock lock(line_->mutex);
      if (std::exchange(line_->closed, true)) return;
      channel = std::move(line_->route.channel);
      line_->retry_ns = 0;
      owner_.fail_all(*line_, false, DIST_CANCELLED, kEnded);
      link = line_->link;
    }
    {
      const std::scoped_lock lock(owner_.mutex_);
      std::erase(owner_.lines_, line_);
    }
    if (link != nullptr) link->end("");
    owner_.retire(std::move(channel));
  }

 private:
  Calls& owner_;
  const std::shared_ptr<CallLine> line_;
};

CallChannel* Calls::open(const char* address) noexcept {
  try {
    auto line = std::make_shared<CallLine>(memory_, false, limits_, pool_.get());
    line->address = address;
    line->name = std::string("server ") + address;
    auto channel = std::make_unique<Channel>(*this, line);
    const std::scoped_lock lock(mutex_);
    line->number = ++last_line_;
    lines_.push_back(std::move(line));
    return channel.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void Calls::close(CallChannel* channel) noexcept {
  auto* const own = static_cast<Channel*>(channel);
  own->end();
  delete own;
}

// No lock may be held while gRPC is called: gRPC may report the end of other links on this thread.
void Calls::connect(const std::shared_ptr<CallLine>& line) noexcept {
  Route route;
  std::shared_ptr<grpc::Channel> replaced;
  const HostAddresses found = names_.ask(host_of(line->address));
  std::vector<std::string> hosts = sorted(found.list);
  {
    const std::scoped_lock line_lock(line->mutex);
    line->retry_ns = 0;
    if (line->closed || line->link != nullptr || line->connecting || line->waiting.empty()) return;
    if (hosts.empty()) {
      if (!found.why.empty())
        line->why = line->name + " cannot be reached: its host name does not resolve: " + found.why;
      line->retry_ns = steady_now_ns() + kRetryNs;
      return wake();
    }
    if (!begin_link()) return;
    line->connecting = true;
    if (line->route.hosts != hosts) replaced = std::move(line->route.channel);
    route = {line->route.channel, std::move(hosts)};
  }
  retire(std::move(replaced));
  if (route.channel == nullptr) route.channel = make_channel(config_, line->address, found.list);
  const auto link = std::make_shared<ClientLink>(*this, route.channel);
  link->host = host_of(line->address);
  link->hosts = route.hosts;
  link->purpose = Purpose::kCalls;
  link->stage = Link::Stage::kAnswer;
  link->born_ns = steady_now_ns();
  link->line = line;
  link->prepare();
  say_hello(*link);
  keep_unproven(link);
  bool closed = false;
  {
    const std::scoped_lock line_lock(line->mutex);
    line->connecting = false;
    line->link = link;
    closed = line->closed;
    if (!closed) line->route = route;
  }
  link->start();
  if (!closed) return;
  link->end("");
  retire(std::move(route.channel));
}

// The line's lock must be held.
void Calls::answered(CallLine& line, CallReceiver::Event& event) noexcept {
  const auto found = line.waiting.find(event.id);
  if (found == line.waiting.end()) return;
  OutgoingCall& call = *found->second;
  line.waiting.erase(found);
  if (event.what == CallReceiver::What::kRefused) {
    const std::string text =
        "an answer of " + std::to_string(event.word) + " bytes exceeds the limit of the client";
    return call.answered(DIST_RESOURCE_EXHAUSTED, text.c_str(), {});
  }
  line.receiver.let_go(event.message->bytes());
  const auto status = static_cast<dist_status>(event.word);
  if (status == DIST_OK) return call.answered(DIST_OK, "", std::move(event.message));
  const std::string text(reinterpret_cast<const char*>(event.message->data()), event.message->bytes());
  call.answered(status, text.c_str(), {});
}

// The line's lock must be held. Calls that have not been sent yet may use the next link.
void Calls::fail_all(CallLine& line, bool begun_alone, dist_status code, const std::string& text) noexcept {
  for (auto at = line.waiting.begin(); at != line.waiting.end();) {
    if (begun_alone && line.sender.waits(at->first)) {
      ++at;
      continue;
    }
    OutgoingCall& call = *at->second;
    line.sender.drop(at->first);
    at = line.waiting.erase(at);
    call.answered(code, text.c_str(), {});
  }
}

void Calls::out_over(const std::shared_ptr<CallLine>& line, const LinkRef& link, const std::string& why,
                     const std::string& status) noexcept {
  const bool opened = link->stage >= Link::Stage::kAdmission;
  bool ask = false;
  {
    const std::scoped_lock lock(line->mutex);
    if (line->link != link) return;
    line->link = nullptr;
    line->queue.clear();
    std::string text;
    if (link->refused) {
      line->rejected = true;
      text = line->name + " rejected this client: " + why;
    } else if (!opened) {
      line->failed_attempts.add(why.empty() ? status : why);
      text = unreachable(*line);
      ask = !nobody_listens(status);
    } else if (why.empty()) {
      text = line->name + " has ended or its connection broke";
    } else {
      text = line->name + (line->silent ? " " : " violated the protocol: ") + why;
    }
    line->silent = false;
    if (opened || link->refused) {
      line->causes.clear();
      line->early_cause.clear();
    }
    // Calls that have not been sent fail only if the server has proven that it knows the secret. Otherwise
    // another server may listen at its address next.
    fail_all(*line, !link->refused, DIST_UNAVAILABLE, text);
    line->why = std::move(text);
    line->sender.begin_anew();
    line->receiver.begin_anew();
    for (const auto& [id, call] : line->waiting) line->receiver.expect(id);
    if (!line->waiting.empty()) line->retry_ns = steady_now_ns() + (opened ? 0 : kRetryNs);
    const int64_t now = steady_now_ns();
    ask = ask && !line->waiting.empty() && now >= line->probe_ns;
    if (ask) line->probe_ns = now + kProbeAgainNs;
  }
  if (ask) prober_.ask(line->number, line->address);
  wake();
}

// A probe has found out why connections to a server fail.
void Calls::probed(uint64_t number, const std::string& cause, bool final) noexcept {
  std::shared_ptr<CallLine> line;
  {
    const std::scoped_lock lock(mutex_);
    const auto found =
        std::find_if(lines_.begin(), lines_.end(), [&](const auto& each) { return each->number == number; });
    if (found == lines_.end()) return;
    line = *found;
  }
  const std::scoped_lock lock(line->mutex);
  const bool tries = line->link != nullptr && line->link->stage == Link::Stage::kAnswer;
  if (line->closed || !(tries || !line->failed_attempts.empty())) return;
  line->early_cause = final ? "" : cause;
  // A probe that finds nothing, for example because the server has ended, does not disprove an earlier one.
  if (final && !cause.empty()) line->causes.add(cause);
  if (!line->causes.empty() || !line->early_cause.empty() || !line->failed_attempts.empty())
    line->why = unreachable(*line);
}

}  // namespace dist::grpc_link
