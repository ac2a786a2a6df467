// SPDX-License-Identifier: Apache-2.0
// Coordinator: unfinished closures: sending them, returning them to the queue, and ending them.
#include <algorithm>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/text.hpp"
#include "core/ps/coordinator_parts.hpp"
#include "core/ps/numbers.hpp"

namespace dist {

Status read_answer(const Value& message, WorkerAnswer* out) noexcept {
  std::span<const int64_t> numbers;
  DIST_TRY(read_numbers(&message, 3, 2, &numbers));
  const char* const text = message.items()[1]->text();
  const auto status = static_cast<dist_status>(numbers[0]);
  if (text == nullptr || known_status_name(status) == nullptr || numbers[2] < 0) {
    return fail(DIST_DATA_LOSS, "the answer of the worker is invalid");
  }
  *out = {status, static_cast<int32_t>(numbers[1]), static_cast<std::size_t>(numbers[2]), text,
          message.items()[2].get()};
  return kOk;
}

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
      sent = make_message(memory(), {epoch_, id, queue_.watermark()},
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
  // Either the parameter server is lost, which its own watch will report soon, or only this worker cannot
  // reach it.
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
                "workers that ran it were lost more often than max_losses allows. The last loss: %s", why);
  fail_closure(flight, DIST_ABORTED, text);
}

// Ends a closure and removes it from the coordinator's records.
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

// Cancels waiting closures immediately, and asks running ones to end.
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
    // They run to completion.
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
