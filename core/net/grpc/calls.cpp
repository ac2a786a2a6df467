// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/calls.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/os/socket.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc/listening.hpp"

namespace dist::grpc_link {
namespace {

constexpr std::size_t kMostTextBytes = 1023;

// A text sent as the reason of a failed call.
class TextParts final : public CallParts {
 public:
  TextParts(Memory& memory, const std::string& text)
      : CallParts(memory), text_(text), part_(std::as_bytes(std::span(text_))) {}
  std::span<const std::span<const std::byte>> parts() const noexcept override { return {&part_, 1}; }
  std::size_t bytes() const noexcept override { return text_.size(); }

 private:
  ~TextParts() override = default;
  const std::string text_;
  const std::span<const std::byte> part_;
};

}  // namespace

// A call that has arrived. It may be answered even after its client has disconnected or its network has been
// destroyed.
class Calls::Served final : public IncomingCall {
 public:
  Served(Memory& memory, const std::shared_ptr<CallLine>& line, uint64_t id, Ref<CallMessage> request,
         int64_t timeout_ns)
      : IncomingCall(memory, std::move(request), timeout_ns),
        line_(line),
        client_host_(line->client_host),
        id_(id) {}

  int64_t silent_ns() const noexcept override {
    const std::shared_ptr<CallLine> line = line_.lock();
    return line == nullptr ? INT64_MAX : steady_now_ns() - line->heard_ns.load(std::memory_order_relaxed);
  }

  const char* client_host() const noexcept override { return client_host_.c_str(); }

  void answer(dist_status status, const char* text, Ref<CallParts> answer) noexcept override {
    const std::shared_ptr<CallLine> line = line_.lock();
    if (line == nullptr) return;
    Ref<IncomingCall> kept;
    LinkRef link;
    try {
      const std::scoped_lock lock(line->mutex);
      const auto found = line->calls.find(id_);
      if (found == line->calls.end()) return;
      kept = std::move(found->second);
      line->calls.erase(found);
      line->receiver.let_go(request().bytes());
      if (status != DIST_OK) {
        answer = Ref<CallParts>::adopt(
            make_counted<TextParts>(memory(), std::string(text).substr(0, kMostTextBytes)).take());
      }
      const uint64_t bytes = answer ? answer->bytes() : 0;
      line->sender.add(
          {.kind = FrameKind::kAnswer, .id = id_, .bytes = bytes, .offset = static_cast<uint64_t>(status)},
          FrameKind::kAnswerData, std::move(answer));
      link = line->link;
    } catch (const std::bad_alloc&) {
      // There is no memory for the answer. The link ends, because the client would otherwise wait for it.
      const std::scoped_lock lock(line->mutex);
      link = line->link;
      if (link != nullptr) link->refused = true;
    }
    if (link == nullptr) return;
    link->refused ? link->end("out of memory") : link->flush();
  }

 private:
  ~Served() override = default;
  const std::weak_ptr<CallLine> line_;
  const std::string client_host_;
  const uint64_t id_;
};

Calls::Calls(Memory& memory, Config config, const CallLimits& limits, CallHandler* handler)
    : LinkOwner(
          std::move(config),
          [this](int) {
            if (handler_ != nullptr) handler_->wrong_secret();
          },
          [](int) {},
          [this](uint64_t number, const std::string& cause, bool final) { probed(number, cause, final); }),
      memory_(memory),
      limits_(limits),
      pool_(make_counted<MessagePool>(memory)),
      handler_(handler) {}

Calls::~Calls() = default;

std::string Calls::start() {
  if (!random_bytes(incarnation_.data(), incarnation_.size())) return "the system provides no random numbers";
  if (handler_ != nullptr) {
    std::string why;
    const std::vector<std::string> addresses = listening_addresses(config_, &why);
    if (!addresses.empty()) why = listen_on(addresses);
    if (!why.empty()) return why;
  }
  return start_thread("dist-calls");
}

void Calls::stop() noexcept {
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(config_.lease_ns);
  stop_thread();
  std::vector<std::shared_ptr<CallLine>> lines;
  {
    const std::scoped_lock lock(mutex_);
    lines = lines_;
  }
  for (const auto& line : lines) {
    LinkRef link;
    {
      const std::scoped_lock lock(line->mutex);
      while (line->sender.put_chunk(line->queue)) {
      }
      link = line->link;
    }
    if (link != nullptr) link->end_after_writes("");
  }
  for (const LinkRef& link : unproven()) link->end("");
  (void)wait_for_links(until);
  for (const auto& line : lines) {
    LinkRef link;
    {
      const std::scoped_lock lock(line->mutex);
      link = line->link;
    }
    if (link != nullptr) link->end("");
  }
  lines.clear();
  stop_server();
  free_all();
}

std::string Calls::took(const LinkRef& link, std::span<const grpc::Slice> message) noexcept {
  if (link->stage != Link::Stage::kOpen) {
    std::byte whole[kMostBeginningBytes];
    std::span<const std::byte> given;
    if (!gather(message, whole, &given)) return "a message of an invalid size";
    switch (link->stage) {
      case Link::Stage::kHello: return took_hello(*link, given);
      case Link::Stage::kAnswer: return took_answer(*link, given);
      case Link::Stage::kProof: return took_proof(link, given);
      default: return took_admission(*link, given);
    }
  }
  const std::shared_ptr<CallLine> line = link->line;
  line->heard_ns.store(steady_now_ns(), std::memory_order_relaxed);
  std::vector<CallReceiver::Event> events;
  {
    const std::scoped_lock lock(line->mutex);
    if (line->link != link) return "";
    const char* why = nullptr;
    for (const grpc::Slice& each : message) {
      why = link->reader.feed(reinterpret_cast<const std::byte*>(each.begin()), each.size(), line->receiver);
      if (why != nullptr) return why;
    }
    if (!link->reader.between_frames()) return "a message that ends inside a frame";
    events = line->receiver.take_events();
    if (!line->serves) {
      for (CallReceiver::Event& each : events) answered(*line, each);
    }
  }
  if (line->serves) served(line, events);
  return "";
}

void Calls::served(const std::shared_ptr<CallLine>& line, std::vector<CallReceiver::Event>& events) noexcept {
  for (CallReceiver::Event& each : events) {
    if (each.what == CallReceiver::What::kRefused) {
      refuse(*line, each.id, DIST_RESOURCE_EXHAUSTED,
             "a request of " + std::to_string(each.word) +
                 " bytes exceeds the limit of the server for one client, or its memory");
      continue;
    }
    Ref<IncomingCall> call;
    bool full = false;
    try {
      const std::scoped_lock lock(line->mutex);
      if (each.what == CallReceiver::What::kTakenBack) {
        const auto found = line->calls.find(each.id);
        if (found == line->calls.end()) {
          // Once part of a message has been sent, the rest must follow, so that the client receives a
          // complete message.
          if (line->sender.waits(each.id)) line->sender.drop(each.id);
          continue;
        }
        call = std::move(found->second);
        line->calls.erase(found);
        line->receiver.let_go(call->request().bytes());
      } else {
        full = line->calls.size() >= limits_.calls;
        const std::size_t bytes = each.message->bytes();
        if (full) {
          line->receiver.let_go(bytes);
        } else {
          call =
              Ref<IncomingCall>::adopt(make_counted<Served>(memory_, line, each.id, std::move(each.message),
                                                            static_cast<int64_t>(each.word))
                                           .take());
          line->calls.emplace(each.id, call);
        }
      }
    } catch (const std::bad_alloc&) {
      full = true;
    }
    if (full) {
      refuse(*line, each.id, DIST_RESOURCE_EXHAUSTED, "this client has too many calls in progress");
    } else if (each.what == CallReceiver::What::kTakenBack) {
      handler_->given_up(*call);
    } else {
      handler_->called(std::move(call));
    }
  }
}

void Calls::refuse(CallLine& line, uint64_t id, dist_status code, const std::string& text) noexcept {
  LinkRef link;
  bool lost = false;
  {
    const std::scoped_lock lock(line.mutex);
    link = line.link;
    try {
      auto parts = make_counted<TextParts>(memory_, text.substr(0, kMostTextBytes));
      const uint64_t bytes = parts->bytes();
      line.sender.add(
          {.kind = FrameKind::kAnswer, .id = id, .bytes = bytes, .offset = static_cast<uint64_t>(code)},
          FrameKind::kAnswerData, Ref<CallParts>::adopt(parts.take()));
    } catch (const std::bad_alloc&) {
      lost = true;
    }
  }
  if (link == nullptr) return;
  lost ? link->end("out of memory") : link->flush();
}

bool Calls::more(Link& link) noexcept {
  const std::shared_ptr<CallLine> line = link.line;
  if (line == nullptr) return false;
  const std::scoped_lock lock(line->mutex);
  return line->link.get() == &link && line->sender.put_chunk(line->queue);
}

void Calls::over(const LinkRef& link, const std::string& why, const std::string& status) noexcept {
  proven(*link);
  const std::shared_ptr<CallLine> line = link->line;
  if (line == nullptr) return;
  line->serves ? in_over(line) : out_over(line, link, why, status);
}

// A client has disconnected.
void Calls::in_over(const std::shared_ptr<CallLine>& line) noexcept {
  std::unordered_map<uint64_t, Ref<IncomingCall>> calls;
  {
    const std::scoped_lock lock(line->mutex);
    line->link = nullptr;
    calls.swap(line->calls);
    line->sender.clear();
    line->queue.clear();
  }
  for (auto& [id, call] : calls) handler_->given_up(*call);
  const std::scoped_lock lock(mutex_);
  std::erase(lines_, line);
}

// Periodic work: heartbeats, leases and retries.
int64_t Calls::look(const Turn& turn) noexcept {
  const int64_t now = turn.now_ns;
  int64_t next = INT64_MAX;
  std::vector<std::shared_ptr<CallLine>> lines;
  {
    const std::scoped_lock lock(mutex_);
    lines = lines_;
  }
  for (const auto& line : lines) {
    LinkRef link;
    bool again = false;
    bool ask = false;
    {
      const std::scoped_lock lock(line->mutex);
      again = line->retry_ns != 0 && (turn.named || now >= line->retry_ns);
      if (line->retry_ns != 0 && !again) next = std::min(next, line->retry_ns);
      if (line->link != nullptr && line->link->stage == Link::Stage::kOpen) link = line->link;
      const bool tries = line->link != nullptr && line->link->stage == Link::Stage::kAnswer;
      if (tries && !line->serves && !line->closed) {
        const int64_t due = std::max(line->link->born_ns + kProbeAfterNs, line->probe_ns);
        ask = now >= due;
        if (ask) line->probe_ns = now + kProbeAgainNs;
        next = std::min(next, ask ? line->probe_ns : due);
      }
      if (link != nullptr && turn.beats) line->queue.put({.kind = FrameKind::kBeat});
    }
    if (again) connect(line);
    if (ask) prober_.ask(line->number, line->address);
    if (link == nullptr) continue;
    if (turn.paused) line->heard_ns.store(now, std::memory_order_relaxed);
    const int64_t until = line->heard_ns.load(std::memory_order_relaxed) + config_.lease_ns;
    next = std::min(next, until);
    if (now >= until) {
      silent(*line, *link);
    } else if (turn.beats) {
      link->flush();
    }
  }
  return next;
}

void Calls::silent(CallLine& line, Link& link) noexcept {
  {
    const std::scoped_lock lock(line.mutex);
    line.silent = true;
  }
  const DurationText lease(config_.lease_ns);
  link.end(std::string("sent no heartbeat for ") + lease.text);
}

}  // namespace dist::grpc_link
