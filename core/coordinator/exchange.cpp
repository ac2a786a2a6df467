// SPDX-License-Identifier: Apache-2.0
// The coordinator's thread: it alone speaks with the servers of closures, and takes what they answer.
#include <algorithm>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/os/park.hpp"
#include "core/base/text.hpp"
#include "core/coordinator/coordinator_parts.hpp"
#include "core/coordinator/task_server.hpp"
#include "core/ps/numbers.hpp"

namespace dist {
namespace {

constexpr int64_t kRetryNs = 500'000'000;
constexpr int64_t kMostEndNs = 5'000'000'000;

// What a worker says of a closure, or of a per-worker value.
struct WorkerAnswer {
  dist_status status;
  int32_t lost_server;
  std::size_t known;
  const char* text;
  Value* value;
};

Status read_answer(const Value& message, WorkerAnswer* out) noexcept {
  std::span<const int64_t> numbers;
  DIST_TRY(read_numbers(&message, 3, 2, &numbers));
  const char* const text = message.items()[1]->text();
  const auto status = static_cast<dist_status>(numbers[0]);
  if (text == nullptr || known_status_name(status) == nullptr || numbers[2] < 0) {
    return fail(DIST_DATA_LOSS, "an answer that a worker does not give");
  }
  *out = {status, static_cast<int32_t>(numbers[1]), static_cast<std::size_t>(numbers[2]), text,
          message.items()[2].get()};
  return kOk;
}

void put_aside(std::pmr::vector<Ref<Counted>>* trash, Counted* object) noexcept {
  if (object == nullptr) return;
  Ref<Counted> held = Ref<Counted>::adopt(object);
  try {
    trash->push_back(std::move(held));
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

// ---- Events ----

void Coordinator::Link::answered() noexcept {
  {
    const std::scoped_lock lock(owner_.events_mutex_);
    if (listed_) return;
    listed_ = true;
    previous_ = owner_.last_event_;
    (previous_ != nullptr ? previous_->next_ : owner_.first_event_) = this;
    owner_.last_event_ = this;
  }
  owner_.signal();
}

// Afterwards nothing comes from it any more.
void Coordinator::forget(Link& link) noexcept {
  if (link.call) link.call->cancel("the coordinator waits for it no longer");
  put_aside(&trash_, link.call.take());
  const std::scoped_lock lock(events_mutex_);
  if (!std::exchange(link.listed_, false)) return;
  (link.previous_ != nullptr ? link.previous_->next_ : first_event_) = link.next_;
  (link.next_ != nullptr ? link.next_->previous_ : last_event_) = link.previous_;
  link.next_ = link.previous_ = nullptr;
}

Coordinator::Link* Coordinator::next_event() noexcept {
  const std::scoped_lock lock(events_mutex_);
  Link* const link = first_event_;
  if (link == nullptr) return nullptr;
  first_event_ = link->next_;
  (first_event_ != nullptr ? first_event_->previous_ : last_event_) = nullptr;
  link->next_ = link->previous_ = nullptr;
  link->listed_ = false;
  return link;
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
        // What is not done yet is done in the next round.
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
  for (Server& each : servers_) {
    if (!each.ps && each.state == Server::State::kUp && !each.prepared.call &&
        each.num_prepared < per_worker_.size()) {
      prepare(each);
    }
  }
  // Closures need parameter servers, which have all heard of this job before any of them is sent.
  const bool complete = std::all_of(servers_.begin(), servers_.begin() + num_ps_,
                                    [](const Server& each) { return each.state == Server::State::kUp; });
  ClosureQueue::Assignment next{};
  while (complete && queue_.next(now, &next)) {
    send(next.id, servers_[static_cast<std::size_t>(num_ps_ + next.worker)]);
  }
}

// The end of all: who hears it ends too; others find out that this process is gone.
void Coordinator::say_end() noexcept {
  try {
    std::pmr::vector<Ref<RemoteValue>> said(&memory());
    ValueRef message;
    if (make_message(memory(), {epoch_}, {}, &message).ok()) {
      for (Server& each : servers_) {
        if (each.state == Server::State::kAway) continue;
        const int64_t patience = std::min(kMostEndNs, calls_->lease_ns());
        Ref<RemoteValue> call;
        if (each.client->begin("dist.end", message.get(), {patience, nullptr, nullptr}, &call).ok()) {
          said.push_back(std::move(call));
        }
      }
    }
    ValueRef ignored;
    for (const auto& each : said) (void)each->get(-1, &ignored);
  } catch (const std::bad_alloc&) {
  }
}

// ---- Servers ----

void Coordinator::say_hello(Server& server) {
  // Where memory is short below, it is tried again.
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
  // It waits for as long as the server takes to be there.
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
    if (said.code() == DIST_FAILED_PRECONDITION) {
      // It will say the same the next time.
      fatal_ = why;
      end_all(said.code(), why.message);
      return;
    }
    server.retry_ns = steady_now_ns() + kRetryNs;
    next_retry_ns_ = std::min(next_retry_ns_, server.retry_ns);
    return;
  }
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
  if (!server.ps) {
    server.state = Server::State::kPreparing;
    prepare(server);
  }
  changed_.notify_all();
}

// Its answer is the end of the server, for this coordinator.
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
    std::snprintf(
        text, sizeof text,
        "parameter server %d at %s is lost, and its variables with it: restore from a checkpoint (%s)",
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

// Per-worker values are made one after another; with all of them it is ready for closures.
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
      !make_message(memory(), {epoch_, static_cast<int64_t>(server.num_prepared), queue_.mark()},
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
    // Who made it is told so; of a worker that comes later, whoever uses it.
    if (!known_before) keep_error(last_error().code, last_error().message);
  }
  prepare(server);
}

// ---- Closures ----

void Coordinator::send(int64_t id, Server& server) {
  Flight& flight = flights_.find(id)->second;
  flight.server = &server;
  flight.sent_ns = steady_now_ns();
  Status sent = kOk;
  try {
    server.in_flight.push_back(id);
    const ValueRef name = Value::create_text(memory(), flight.function.c_str());
    ValueRef entries;
    ValueRef message;
    sent = directory_.write(server.known, &entries);
    if (sent.ok()) {
      sent = make_message(memory(), {epoch_, id, queue_.mark()},
                          {name.get(), flight.arguments.get(), entries.get()}, &message);
    }
    if (sent.ok()) {
      sent =
          server.client->begin("dist.closure", message.get(), {-1, nullptr, &flight.link}, &flight.link.call);
    }
  } catch (const std::bad_alloc&) {
    sent = out_of_memory();
  }
  if (sent.ok()) return;
  const ErrorRecord why = last_error();
  fail_closure(flight, sent.code(), why.message);
}

void Coordinator::heard_closure(Flight& flight) {
  Server& server = *flight.server;
  ValueRef message;
  const Status said = flight.link.call->get(0, &message);
  if (said.code() == DIST_UNAVAILABLE) {
    const ErrorRecord why = last_error();
    return give_back(flight, why.message);
  }
  WorkerAnswer answer{};
  const Status read = said.ok() ? read_answer(*message, &answer) : said;
  if (!read.ok()) {
    const ErrorRecord why = last_error();
    return fail_closure(flight, read.code(), why.message);
  }
  server.known = std::max(server.known, answer.known);
  if (answer.status == DIST_OK) {
    ++counts_.completed;
    queue_.done(flight.id);
    ValueRef value = ValueRef::share(answer.value);
    put_aside(&trash_, message.take());
    return settle(flight, DIST_OK, "", std::move(value));
  }
  if (answer.status == DIST_CANCELLED && flight.cancelled) {
    ++counts_.cancelled;
    queue_.done(flight.id);
    return settle(flight, DIST_CANCELLED, "another closure has failed", {});
  }
  // The parameter server is lost, as its own watch is about to say; or this worker alone cannot reach it.
  if (answer.lost_server >= 0) return give_back(flight, answer.text);
  fail_closure(flight, answer.status, answer.text);
}

void Coordinator::give_back(Flight& flight, const char* why) noexcept {
  Server& server = *flight.server;
  forget(flight.link);
  std::erase(server.in_flight, flight.id);
  try {
    if (queue_.lost(flight.id, steady_now_ns()) == ClosureQueue::Lost::kAgain) {
      flight.server = nullptr;
      return;
    }
  } catch (const std::bad_alloc&) {
    return fail_closure(flight, DIST_RESOURCE_EXHAUSTED, "out of memory");
  }
  char text[600];
  std::snprintf(text, sizeof text,
                "it was lost with as many workers as may be, the last of them this one: %s", why);
  fail_closure(flight, DIST_ABORTED, text);
}

// Its end, and that of what the coordinator knows of it.
void Coordinator::settle(Flight& flight, dist_status status, const char* text, ValueRef value) noexcept {
  forget(flight.link);
  const bool sent = flight.server != nullptr && flight.sent_ns != 0;
  Span span{.category = "closure", .id = flight.id, .status = status};
  span.row = sent ? flight.server->index : num_workers_;
  span.begin_ns = sent ? flight.sent_ns : flight.scheduled_ns;
  span.waited_ns = span.begin_ns - flight.scheduled_ns;
  span.end_ns = steady_now_ns();
  span.set_name(flight.function.c_str());
  spans_.add(span);
  if (flight.server != nullptr) std::erase(flight.server->in_flight, flight.id);
  flight.result->settle(status, text, std::move(value));
  put_aside(&trash_, flight.result.take());
  put_aside(&trash_, flight.arguments.take());
  flights_.erase(flight.id);
  changed_.notify_all();
}

void Coordinator::keep_error(dist_status status, const char* text) noexcept {
  if (error_.code == DIST_OK) {
    (void)fail(status, "%s", text);
    error_ = last_error();
  }
  changed_.notify_all();
}

void Coordinator::fail_closure(Flight& flight, dist_status status, const char* text) noexcept {
  char whole[1000];
  const int worker = flight.server != nullptr ? flight.server->index : -1;
  std::snprintf(whole, sizeof whole, "closure %lld (%s) on worker %d: %s", static_cast<long long>(flight.id),
                Shown(flight.function.c_str()).c_str(), worker, text);
  keep_error(status, whole);
  ++counts_.failed;
  queue_.done(flight.id);
  std::snprintf(whole, sizeof whole, "on worker %d: %s", worker, text);
  settle(flight, status, whole, {});
  cancel_rest();
}

// What waits at once; what runs is asked to end, and has its end.
void Coordinator::cancel_rest() noexcept {
  try {
    std::pmr::vector<int64_t> waiting(&memory());
    queue_.cancel_waiting(&waiting);
    for (const int64_t id : waiting) {
      ++counts_.cancelled;
      settle(flights_.find(id)->second, DIST_CANCELLED, "another closure has failed", {});
    }
    ValueRef message;
    if (!make_message(memory(), {epoch_}, {}, &message).ok()) return;
    for (Server& each : servers_) {
      Ref<RemoteValue> call;
      if (each.in_flight.empty()) continue;
      for (const int64_t id : each.in_flight) flights_.find(id)->second.cancelled = true;
      (void)each.client->begin("dist.cancel", message.get(), {-1, nullptr, nullptr}, &call);
      cancels_.push_back(std::move(call));
    }
  } catch (const std::bad_alloc&) {
    // They run to their ends.
  }
}

void Coordinator::end_all(dist_status status, const char* text) noexcept {
  if (fatal_.code == DIST_OK) {
    (void)fail(status, "%s", text);
    fatal_ = last_error();
  }
  while (!flights_.empty()) {
    Flight& flight = flights_.begin()->second;
    ++counts_.cancelled;
    (void)queue_.cancel(flight.id);
    queue_.done(flight.id);
    settle(flight, status, text, {});
  }
  changed_.notify_all();
}

}  // namespace dist
