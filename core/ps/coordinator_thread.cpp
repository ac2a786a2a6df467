// SPDX-License-Identifier: Apache-2.0
// Coordinator: the thread that communicates with the servers and handles their answers. Answers about
// closures are handled in flights.cpp.
#include <algorithm>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/os/park.hpp"
#include "core/base/text.hpp"
#include "core/ps/coordinator_parts.hpp"
#include "core/ps/numbers.hpp"
#include "core/ps/task_server.hpp"

namespace dist {
namespace {

constexpr int64_t kRetryNs = 500'000'000;
constexpr int64_t kMostEndNs = 5'000'000'000;
constexpr int64_t kMostGreetingNs = 2'000'000'000;  // gRPC retries within a second

// Whether a server that answers a greeting with this status would give the same answer again. A server that cannot be
// reached, or is ending, may be another one the next time.
bool is_final(dist_status answer) noexcept {
  return answer == DIST_FAILED_PRECONDITION || answer == DIST_ALREADY_EXISTS ||
         answer == DIST_INVALID_ARGUMENT;
}

}  // namespace

// ---- Events ----

void Coordinator::Link::answered() noexcept {
  {
    const std::scoped_lock lock(owner_.events_mutex_);
    if (linked()) return;
    owner_.events_.push_back(*this);
  }
  owner_.signal();
}

// Afterwards no event comes from this link.
void Coordinator::forget(Link& link) noexcept {
  if (link.call) link.call->cancel("the coordinator no longer waits for it");
  put_aside(&trash_, link.call.take());
  const std::scoped_lock lock(events_mutex_);
  if (link.linked()) events_.remove(link);
}

Coordinator::Link* Coordinator::next_event() noexcept {
  const std::scoped_lock lock(events_mutex_);
  return events_.pop_front();
}

void Coordinator::signal() noexcept {
  signal_.fetch_add(1);
  if (asleep_.load()) unpark_all(signal_);
}

// ---- The loop ----

void* Coordinator::exchange_main(void* self) {
  block_async_signals();
  static_cast<Coordinator*>(self)->exchange();
  return nullptr;
}

void Coordinator::exchange() noexcept {
  std::pmr::vector<Ref<Counted>> trash(&memory());
  bool first = true;
  for (;;) {
    const uint32_t seen = signal_.load();
    int64_t next = INT64_MAX;
    bool stopping = false;
    {
      const std::scoped_lock lock(mutex_);
      stopping = stopping_;
      const int64_t now = steady_now_ns();
      try {
        if (std::exchange(first, false)) {
          for (Server& each : servers_) say_hello(each);
        }
        if (!stopping) look(now);
      } catch (const std::bad_alloc&) {
        // The rest is done in the next round.
        next_retry_ns_ = std::min(next_retry_ns_, now + kRetryNs);
      }
      next = std::min(next_retry_ns_, queue_.ask_again_ns(now));
      trash.swap(trash_);
    }
    trash.clear();
    if (stopping) break;
    asleep_.store(true);
    if (signal_.load() == seen)
      park(signal_, seen, next == INT64_MAX ? -1 : std::max<int64_t>(next - steady_now_ns(), 0));
    asleep_.store(false);
  }
  say_end();
}

void Coordinator::look(int64_t now) {
  while (Link* const link = next_event()) {
    if (!link->call) continue;
    switch (link->what) {
      case Link::What::kHello: heard_hello(*link->server); break;
      case Link::What::kWatch: heard_watch(*link->server); break;
      case Link::What::kPrepared: heard_prepared(*link->server); break;
      case Link::What::kClosure: heard_closure(*link->flight); break;
    }
  }
  std::erase_if(cancels_, [](const Ref<RemoteValue>& each) { return each->ready(); });
  if (fatal_.code != DIST_OK) return;
  if (now >= next_retry_ns_) {
    next_retry_ns_ = INT64_MAX;
    for (Server& each : servers_) {
      if (each.retry_ns == 0) continue;
      if (each.retry_ns <= now) {
        each.retry_ns = 0;
        say_hello(each);
      } else {
        next_retry_ns_ = std::min(next_retry_ns_, each.retry_ns);
      }
    }
  }
  if (more_per_worker_) {
    for (Server& each : servers_) {
      if (!each.ps && each.state == Server::State::kUp && !each.prepared.call) prepare(each);
    }
    more_per_worker_ = false;
  }
  // Closures need parameter servers. All of these know this job before any closure is sent.
  ClosureQueue::Assignment next{};
  while (all_ps_up_ && queue_.next(now, &next)) {
    send(next.id, servers_[static_cast<std::size_t>(num_ps_) + static_cast<std::size_t>(next.worker)]);
  }
}

// Tells all servers to end; unreachable ones detect that this process is gone. Waits for servers that have
// just started or returned, because these would wait for their coordinator.
void Coordinator::say_end() noexcept {
  const int64_t greeted = steady_now_ns() + std::min(kMostGreetingNs, calls_->lease_ns());
  const int64_t patience = std::min(kMostEndNs, calls_->lease_ns());
  try {
    std::pmr::vector<Ref<RemoteValue>> said(&memory());
    ValueRef message;
    ValueRef ignored;
    if (make_message(memory(), {epoch_}, {}, &message).ok()) {
      for (const bool away : {false, true}) {
        for (Server& each : servers_) {
          if ((each.state == Server::State::kAway) != away) continue;
          if (away &&
              (!each.hello.call ||
               !each.hello.call->get(std::max<int64_t>(greeted - steady_now_ns(), 0), &ignored).ok())) {
            continue;
          }
          Ref<RemoteValue> call;
          if (each.client->begin("dist.end", message.get(), {patience, nullptr, nullptr}, &call).ok()) {
            said.push_back(std::move(call));
          }
        }
      }
    }
    for (const auto& each : said) (void)each->get(-1, &ignored);
  } catch (const std::bad_alloc&) {
  }
}

// ---- Servers ----

void Coordinator::say_hello(Server& server) {
  // If there is no memory below, this is retried.
  server.retry_ns = steady_now_ns() + kRetryNs;
  next_retry_ns_ = std::min(next_retry_ns_, server.retry_ns);
  const ValueRef job = Value::create_text(memory(), server.ps ? kPsJob : kWorkerJob);
  std::pmr::vector<ValueRef> texts(&memory());
  std::pmr::vector<Value*> plain(&memory());
  for (std::size_t i = 0; i < variables_.num_servers(); ++i) {
    texts.push_back(Value::create_text(memory(), variables_.server(i).address()));
    plain.push_back(texts.back().get());
  }
  ValueRef addresses;
  ValueRef message;
  // The call waits until the server has started.
  if (Value::create(memory(), DIST_VALUE_TUPLE, plain, &addresses).ok() &&
      make_message(memory(), {epoch_, server.index}, {job.get(), addresses.get()}, &message).ok() &&
      server.client->begin("dist.hello", message.get(), {-1, nullptr, &server.hello}, &server.hello.call)
          .ok()) {
    server.retry_ns = 0;
    return;
  }
  server.why = last_error().message;
}

void Coordinator::heard_hello(Server& server) {
  ValueRef ignored;
  const Status said = server.hello.call->get(0, &ignored);
  const ErrorRecord why = last_error();
  forget(server.hello);
  if (!said.ok()) {
    server.why = why.message;
    // A server that has ended may be about to make room for its successor at this address.
    const int64_t now = steady_now_ns();
    if (said.code() != DIST_ABORTED) {
      server.ended_since_ns = 0;
    } else if (server.ended_since_ns == 0) {
      server.ended_since_ns = now;
    }
    const bool stays = server.ended_since_ns != 0 && now - server.ended_since_ns >= calls_->lease_ns();
    if (stays || is_final(said.code())) {
      (void)fail(DIST_FAILED_PRECONDITION, "/job:%s/task:%d at %s: %s", server.ps ? kPsJob : kWorkerJob,
                 server.index, server.client->address(), why.message);
      fatal_ = last_error();
      end_all(fatal_.code, fatal_.message);
      return;
    }
    server.retry_ns = now + kRetryNs;
    next_retry_ns_ = std::min(next_retry_ns_, server.retry_ns);
    return;
  }
  server.ended_since_ns = 0;
  ValueRef message;
  if (!make_message(memory(), {epoch_}, {}, &message).ok() ||
      !server.client->begin("dist.watch", message.get(), {-1, nullptr, &server.watch}, &server.watch.call)
           .ok()) {
    lost(server, last_error().message);
    return;
  }
  server.why.clear();
  server.num_prepared = 0;
  server.known = 0;
  server.state = Server::State::kUp;
  if (server.ps) {
    all_ps_up_ = std::all_of(servers_.begin(), servers_.begin() + num_ps_,
                             [](const Server& each) { return each.state == Server::State::kUp; });
  } else {
    server.state = Server::State::kPreparing;
    prepare(server);
  }
  changed_.notify_all();
}

// The answer means that the server has ended for this coordinator.
void Coordinator::heard_watch(Server& server) {
  ValueRef ignored;
  const Status said = server.watch.call->get(0, &ignored);
  const ErrorRecord why = last_error();
  lost(server, said.ok() ? "it has ended" : why.message);
}

void Coordinator::lost(Server& server, const char* why) {
  forget(server.watch);
  forget(server.prepared);
  server.state = Server::State::kAway;
  server.why = why;
  changed_.notify_all();
  if (server.ps) {
    char text[900];
    std::snprintf(text, sizeof text,
                  "parameter server %d at %s is lost with its variables (%s). Restore from a checkpoint.",
                  server.index, server.client->address(), why);
    (void)fail(DIST_ABORTED, "%s", text);
    if (fatal_.code == DIST_OK) fatal_ = last_error();
    return end_all(DIST_ABORTED, text);
  }
  queue_.worker_down(server.index);
  while (!server.in_flight.empty()) give_back(flights_.find(server.in_flight.back())->second, why);
  server.retry_ns = steady_now_ns();
  next_retry_ns_ = std::min(next_retry_ns_, server.retry_ns);
}

// Per-worker values are created one after the other. With all of them, the worker is ready for closures.
void Coordinator::prepare(Server& server) {
  while (server.num_prepared < per_worker_.size() && per_worker_[server.num_prepared].failed)
    ++server.num_prepared;
  if (server.num_prepared == per_worker_.size()) {
    if (server.state == Server::State::kPreparing) {
      server.state = Server::State::kUp;
      queue_.worker_up(server.index);
    }
    changed_.notify_all();
    return;
  }
  const PerWorker& next = per_worker_[server.num_prepared];
  const ValueRef name = Value::create_text(memory(), next.name.c_str());
  const ValueRef function = Value::create_text(memory(), next.function.c_str());
  ValueRef entries;
  ValueRef message;
  if (!directory_.write(server.known, &entries).ok() ||
      !make_message(memory(), {epoch_, static_cast<int64_t>(server.num_prepared), queue_.watermark()},
                    {name.get(), function.get(), next.arguments.get(), entries.get()}, &message)
           .ok() ||
      !server.client
           ->begin("dist.per_worker", message.get(), {-1, nullptr, &server.prepared}, &server.prepared.call)
           .ok()) {
    lost(server, last_error().message);
  }
}

void Coordinator::heard_prepared(Server& server) {
  ValueRef message;
  const Status said = server.prepared.call->get(0, &message);
  const ErrorRecord why = last_error();
  forget(server.prepared);
  WorkerAnswer answer{};
  if (said.code() == DIST_UNAVAILABLE) return lost(server, why.message);
  ErrorRecord& error = per_worker_[server.num_prepared].error;
  const bool known_before = server.state == Server::State::kUp;
  ++server.num_prepared;
  Status read = said.ok() ? read_answer(*message, &answer) : fail(why);
  if (read.ok()) {
    server.known = std::max(server.known, answer.known);
    if (answer.status != DIST_OK) {
      read = fail(answer.status, "worker %d: per-worker value \"%s\": %s", server.index,
                  Shown(per_worker_[server.num_prepared - 1].name.c_str()).c_str(), answer.text);
    }
  }
  if (!read.ok()) {
    if (error.code == DIST_OK) error = last_error();
    // The creator receives the error. If the worker joined later, the user of the value does.
    if (!known_before) keep_error(last_error().code, last_error().message);
  }
  prepare(server);
}

}  // namespace dist
