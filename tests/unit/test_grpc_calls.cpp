// SPDX-License-Identifier: Apache-2.0
// core/net/calls.hpp over gRPC: requests and answers of any size, and peers that are late, leave, abandon
// calls or do not belong to the job.
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/net/grpc/call_frames.hpp"
#include "core/net/grpc_calls.hpp"
#include "tests/unit/grpc_support.hpp"
#include "tests/unit/plain_error.hpp"

namespace dist {
namespace {

using namespace grpc_link;

Ref<Memory> some_memory() { return Ref<Memory>::adopt(Memory::create({})); }

class Bytes final : public CallParts {
 public:
  Bytes(Memory& memory, std::vector<std::vector<std::byte>> data)
      : CallParts(memory), data_(std::move(data)) {
    for (const auto& each : data_) parts_.emplace_back(each);
    bytes_ = std::accumulate(data_.begin(), data_.end(), std::size_t{0},
                             [](std::size_t sum, const auto& each) { return sum + each.size(); });
  }
  std::span<const std::span<const std::byte>> parts() const noexcept override { return parts_; }
  std::size_t bytes() const noexcept override { return bytes_; }

 private:
  const std::vector<std::vector<std::byte>> data_;
  std::vector<std::span<const std::byte>> parts_;
  std::size_t bytes_ = 0;
};

Ref<CallParts> bytes_of(Memory& memory, std::vector<std::vector<std::byte>> data) {
  return Ref<CallParts>::adopt(make_counted<Bytes>(memory, std::move(data)).take());
}

// Byte i of a message with this seed.
std::byte pattern(std::size_t i, unsigned seed) { return static_cast<std::byte>(i * 7 + i / 251 + seed); }
std::vector<std::byte> patterned(std::size_t bytes, unsigned seed, std::size_t from = 0) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = pattern(from + i, seed);
  return data;
}

struct Call final : OutgoingCall {
  void answered(dist_status with, const char* why, Ref<CallMessage> message) noexcept override {
    status = with;
    text = why;
    answer = std::move(message);
    assert_int_equal(times.fetch_add(1), 0);
  }
  dist_status await_answer() {
    await([&] { return times != 0; });
    return status;
  }
  std::string body() const { return {reinterpret_cast<const char*>(answer->data()), answer->bytes()}; }

  dist_status status = -1;
  std::string text;
  Ref<CallMessage> answer;
  std::atomic<int> times{0};
};

// Queues incoming calls until the test answers them, or echoes each at once.
struct Handler final : CallHandler {
  void called(Ref<IncomingCall> call) noexcept override {
    if (echoes) {
      const std::byte* const data = call->request().data();
      return call->answer(DIST_OK, "", bytes_of(call->memory(), {{data, data + call->request().bytes()}}));
    }
    const std::scoped_lock lock(mutex);
    calls.push_back(std::move(call));
  }
  void given_up(IncomingCall& call) noexcept override {
    const std::scoped_lock lock(mutex);
    gone.push_back(&call);
  }
  std::size_t size() {
    const std::scoped_lock lock(mutex);
    return calls.size();
  }
  Ref<IncomingCall> next() {
    await([&] { return size() != 0; });
    const std::scoped_lock lock(mutex);
    Ref<IncomingCall> call = std::move(calls.front());
    calls.pop_front();
    return call;
  }
  void await_gone(std::size_t n) {
    await([&] {
      const std::scoped_lock lock(mutex);
      return gone.size() == n;
    });
  }

  std::atomic<bool> echoes{true};
  std::mutex mutex;
  std::deque<Ref<IncomingCall>> calls;
  std::vector<IncomingCall*> gone;
};

Ref<GrpcCalls> make(GrpcCallOptions options) {
  options.module_folder = MODULE_FOLDER;
  Ref<GrpcCalls> made;
  const Ref<Memory> memory = some_memory();
  if (!GrpcCalls::create(*memory, options, &made).ok()) fail_msg("%s", last_message());
  return made;
}

// A server and a client of this server.
struct Pair {
  explicit Pair(const GrpcCallOptions& with = {}, bool serves = true) : options(with) {
    address = free_addresses(1)[0];
    if (serves) serve();
    GrpcCallOptions calls = options;
    client = make(calls);
    assert_true(client->open("test", address.c_str(), &channel).ok());
  }
  ~Pair() {
    client->close(channel);
    client = {};
    server = {};
  }
  void serve() {
    GrpcCallOptions listens = options;
    listens.bind_address = address.c_str();
    listens.handler = &handler;
    server = make(listens);
  }
  void begin(Call& call, std::vector<std::vector<std::byte>> parts, int64_t timeout_ns = 0) {
    channel->begin(call, bytes_of(client->memory(), std::move(parts)), timeout_ns);
  }

  GrpcCallOptions options;
  std::string address;
  Handler handler;
  Ref<GrpcCalls> server, client;
  CallChannel* channel = nullptr;
};

// ---- Over the wire ----

void a_message_of_any_size_comes_back(void**) {
  Pair pair;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, kChunkBytes - 1,
                                  kChunkBytes, kChunkBytes + 1, std::size_t{5'000'000}}) {
    Call call;
    // In parts, some of which are empty.
    pair.begin(call, {{}, patterned(bytes / 3, 1), {}, patterned(bytes - bytes / 3, 1, bytes / 3), {}});
    assert_int_equal(call.await_answer(), DIST_OK);
    assert_int_equal(call.answer->bytes(), bytes);
    assert_int_equal(reinterpret_cast<uintptr_t>(call.answer->data()) % CallMessage::kAlign, 0);
    for (std::size_t i = 0; i < bytes; ++i) assert_true(call.answer->data()[i] == pattern(i, 1));
  }
}

void a_thousand_calls_are_in_flight(void**) {
  Pair pair;
  pair.handler.echoes = false;
  std::vector<Call> calls(1000);
  for (unsigned i = 0; i < calls.size(); ++i) pair.begin(calls[i], {patterned(100, i)}, 5 + i);
  await([&] { return pair.handler.size() == calls.size(); });
  // Answered in reverse order.
  for (std::size_t i = calls.size(); i-- > 0;) {
    Ref<IncomingCall> call;
    {
      const std::scoped_lock lock(pair.handler.mutex);
      call = pair.handler.calls[i];
    }
    assert_int_equal(call->timeout_ns(), 5 + i);
    call->answer(DIST_OK, "",
                 bytes_of(call->memory(), {{call->request().data(), call->request().data() + 100}}));
    // A second answer has no effect.
    call->answer(DIST_INTERNAL, "again", {});
  }
  for (unsigned i = 0; i < calls.size(); ++i) {
    assert_int_equal(calls[i].await_answer(), DIST_OK);
    assert_true(calls[i].answer->data()[99] == pattern(99, i));
  }
}

void a_large_message_holds_up_no_small_one(void**) {
  Pair pair;
  pair.handler.echoes = false;
  Call large;
  Call small;
  pair.begin(large, {patterned(std::size_t{64} << 20, 0)});
  pair.begin(small, {patterned(4, 0)});
  // The small request began later, but arrives completely first.
  assert_int_equal(pair.handler.next()->request().bytes(), 4);
  pair.channel->take_back(large);
  pair.channel->take_back(small);
}

void a_failure_comes_with_its_words(void**) {
  Pair pair;
  pair.handler.echoes = false;
  Call call;
  pair.begin(call, {});
  pair.handler.next()->answer(DIST_NOT_FOUND, "no such method", {});
  assert_int_equal(call.await_answer(), DIST_NOT_FOUND);
  assert_string_equal(call.text.c_str(), "no such method");
}

void who_is_taken_back_is_given_up(void**) {
  Pair pair;
  pair.handler.echoes = false;
  Call call;
  pair.begin(call, {patterned(4, 0)});
  const Ref<IncomingCall> came = pair.handler.next();
  pair.channel->take_back(call);
  pair.handler.await_gone(1);
  came->answer(DIST_OK, "", bytes_of(came->memory(), {patterned(4, 0)}));
  pair.channel->take_back(call);
  // The connection is still usable.
  Call next;
  pair.begin(next, {patterned(4, 0)});
  pair.handler.next()->answer(DIST_OK, "", {});
  assert_int_equal(next.await_answer(), DIST_OK);
  assert_int_equal(call.times, 0);
}

void half_a_request_that_is_taken_back_leaves_nothing(void**) {
  Pair pair;
  pair.handler.echoes = false;
  for (unsigned i = 0; i < 50; ++i) {
    Call call;
    pair.begin(call, {patterned(std::size_t{4} << 20, i)});
    pair.channel->take_back(call);
    assert_int_equal(call.times, 0);
  }
  pair.handler.echoes = true;
  Call call;
  pair.begin(call, {patterned(100, 3)});
  assert_int_equal(call.await_answer(), DIST_OK);
}

void a_server_may_come_late_and_come_again(void**) {
  Pair pair({}, false);
  Call call;
  pair.begin(call, {patterned(4, 0)});
  char why[256] = "";
  await([&] {
    pair.channel->why_not(why, sizeof why);
    return why[0] != '\0';
  });
  assert_says(std::string(why), "cannot be reached");
  assert_int_equal(call.times, 0);
  pair.serve();
  assert_int_equal(call.await_answer(), DIST_OK);
  // If the server ends after it has received a call, the call fails. The next call waits until the server is
  // started again.
  pair.handler.echoes = false;
  Call begun;
  pair.begin(begun, {patterned(4, 0)});
  const Ref<IncomingCall> came = pair.handler.next();
  pair.server = {};
  assert_int_equal(begun.await_answer(), DIST_UNAVAILABLE);
  assert_says(begun.text, "server " + pair.address + " has ended or its connection broke");
  came->answer(DIST_OK, "", {});
  Call again;
  pair.begin(again, {patterned(4, 0)});
  pair.handler.echoes = true;
  pair.serve();
  assert_int_equal(again.await_answer(), DIST_OK);
}

void answers_that_were_given_go_before_the_end(void**) {
  Pair pair;
  pair.handler.echoes = false;
  Call call;
  pair.begin(call, {patterned(4, 0)});
  pair.handler.next()->answer(DIST_OK, "", bytes_of(*some_memory(), {patterned(std::size_t{20} << 20, 2)}));
  pair.server = {};
  assert_int_equal(call.await_answer(), DIST_OK);
  assert_int_equal(call.answer->bytes(), std::size_t{20} << 20);
}

void a_client_that_ends_gives_up(void**) {
  Pair pair;
  pair.handler.echoes = false;
  CallChannel* other = nullptr;
  assert_true(pair.client->open("test", pair.address.c_str(), &other).ok());
  Call call;
  other->begin(call, bytes_of(pair.client->memory(), {patterned(4, 0)}), 0);
  (void)pair.handler.next();
  pair.client->close(other);
  assert_int_equal(call.status, DIST_CANCELLED);
  pair.handler.await_gone(1);
}

// ---- Limits and strangers ----

void what_is_too_much_is_refused_and_the_rest_goes_on(void**) {
  GrpcCallOptions options;
  options.limits = {.message_bytes = 1000, .bytes = 1500, .calls = 2, .clients = 1};
  Pair pair(options);
  Call large;
  pair.begin(large, {patterned(1001, 0)});
  assert_int_equal(large.await_answer(), DIST_RESOURCE_EXHAUSTED);
  // A client with larger limits meets those of the server.
  GrpcCallOptions free;
  pair.client->close(pair.channel);
  await([&] {
    const Ref<GrpcCalls> client = make(free);
    CallChannel* channel = nullptr;
    assert_true(client->open("test", pair.address.c_str(), &channel).ok());
    Call call;
    channel->begin(call, bytes_of(client->memory(), {patterned(1001, 0)}), 0);
    const bool refused = call.await_answer() == DIST_RESOURCE_EXHAUSTED;
    if (!refused) assert_says(call.text, "the server already has 1 clients, which is the limit");
    client->close(channel);
    return refused;
  });
  pair.client = make(free);
  assert_true(pair.client->open("test", pair.address.c_str(), &pair.channel).ok());
  Call first;
  await([&] {
    Call call;
    pair.begin(call, {patterned(4, 0)});
    return call.await_answer() == DIST_OK;
  });
  pair.handler.echoes = false;
  Call calls[3];
  pair.begin(first, {patterned(900, 0)});
  pair.begin(calls[0], {patterned(900, 0)});
  assert_int_equal(calls[0].await_answer(), DIST_RESOURCE_EXHAUSTED);
  pair.begin(calls[1], {patterned(10, 0)});
  pair.begin(calls[2], {patterned(10, 0)});
  assert_int_equal(calls[2].await_answer(), DIST_RESOURCE_EXHAUSTED);
  assert_says(calls[2].text, "too many calls in progress");
  pair.handler.next()->answer(DIST_OK, "", {});
  pair.handler.next()->answer(DIST_OK, "", {});
  assert_int_equal(first.await_answer(), DIST_OK);
  assert_int_equal(calls[1].await_answer(), DIST_OK);
}

std::size_t num_sockets() {
  std::size_t n = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(each, gone).string().starts_with("socket:")) ++n;
  }
  return n;
}

void a_client_that_ends_while_it_connects_leaves_no_socket(void**) {
  Pair pair;
  Call first;
  pair.begin(first, {patterned(4, 0)});
  assert_int_equal(first.await_answer(), DIST_OK);
  const std::size_t before = num_sockets();
  for (int i = 0; i < 100; ++i) {
    const Ref<GrpcCalls> client = make({});
    CallChannel* channel = nullptr;
    assert_true(client->open("test", pair.address.c_str(), &channel).ok());
    Call call;
    channel->begin(call, bytes_of(client->memory(), {patterned(4, 0)}), 0);
    for (int k = 0; k < i % 5; ++k) std::this_thread::yield();
    channel->take_back(call);
    client->close(channel);
  }
  // The server's ends of the connections are closed a moment later.
  await([&] { return num_sockets() <= before; });
}

void who_does_not_know_the_secret_is_refused(void**) {
  GrpcCallOptions options;
  options.secret = "one";
  Pair pair(options);
  for (const char* const secret : {"another", static_cast<const char*>(nullptr)}) {
    GrpcCallOptions other;
    other.secret = secret;
    const Ref<GrpcCalls> client = make(other);
    CallChannel* channel = nullptr;
    assert_true(client->open("test", pair.address.c_str(), &channel).ok());
    Call call;
    channel->begin(call, bytes_of(client->memory(), {patterned(4, 0)}), 0);
    // The peer has not proven anything, so the client keeps trying.
    char why[400] = "";
    await([&] {
      channel->why_not(why, sizeof why);
      return *why != '\0';
    });
    assert_says(std::string(why), "its DIST_JOB_SECRET differs");
    client->close(channel);
    assert_int_equal(call.await_answer(), DIST_CANCELLED);
  }
  Call call;
  pair.begin(call, {patterned(4, 0)});
  assert_int_equal(call.await_answer(), DIST_OK);
}

void a_worker_is_no_server(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& worker = workers.join(0);
  const Ref<GrpcCalls> client = make({});
  CallChannel* channel = nullptr;
  assert_true(client->open("test", workers.address(0).c_str(), &channel).ok());
  Call call;
  channel->begin(call, bytes_of(client->memory(), {patterned(4, 0)}), 0);
  assert_int_equal(call.await_answer(), DIST_UNAVAILABLE);
  assert_says(call.text, "this is a worker, not a server for calls");
  client->close(channel);
  worker.close();
}

void addresses_and_exposure_are_checked(void**) {
  GrpcCallOptions options;
  options.module_folder = MODULE_FOLDER;
  const Ref<Memory> memory = some_memory();
  Handler handler;
  options.handler = &handler;
  Ref<GrpcCalls> made;
  for (const char* const address : {"", "host", "host:", "host:65536", "a/b:1", "host:-1"}) {
    options.bind_address = address;
    assert_int_equal(GrpcCalls::create(*memory, options, &made).code(), DIST_INVALID_ARGUMENT);
  }
  options.bind_address = "0.0.0.0:0";
  assert_int_equal(GrpcCalls::create(*memory, options, &made).code(), DIST_FAILED_PRECONDITION);
  options.allow_plaintext = true;
  assert_int_equal(GrpcCalls::create(*memory, options, &made).code(), DIST_FAILED_PRECONDITION);
  assert_says(std::string(last_message()), "DIST_JOB_SECRET");
  options.secret = "known";
  assert_true(GrpcCalls::create(*memory, options, &made).ok());
  assert_true(made->port() > 0);
  CallChannel* channel = nullptr;
  assert_int_equal(made->open("test", "host:0", &channel).code(), DIST_INVALID_ARGUMENT);
}

void heartbeats_keep_a_quiet_line(void**) {
  GrpcCallOptions options;
  options.lease_ns = kLeastLeaseNs;
  Pair pair(options);
  pair.handler.echoes = false;
  Call call;
  pair.begin(call, {patterned(4, 0)});
  (void)pair.handler.next();
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(10 * kLeastLeaseNs);
  await([&] { return std::chrono::steady_clock::now() > until || call.times != 0; });
  assert_int_equal(call.times, 0);
  pair.channel->take_back(call);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_message_of_any_size_comes_back),
      cmocka_unit_test(a_thousand_calls_are_in_flight),
      cmocka_unit_test(a_large_message_holds_up_no_small_one),
      cmocka_unit_test(a_failure_comes_with_its_words),
      cmocka_unit_test(who_is_taken_back_is_given_up),
      cmocka_unit_test(half_a_request_that_is_taken_back_leaves_nothing),
      cmocka_unit_test(a_server_may_come_late_and_come_again),
      cmocka_unit_test(answers_that_were_given_go_before_the_end),
      cmocka_unit_test(a_client_that_ends_gives_up),
      cmocka_unit_test(what_is_too_much_is_refused_and_the_rest_goes_on),
      cmocka_unit_test(a_client_that_ends_while_it_connects_leaves_no_socket),
      cmocka_unit_test(who_does_not_know_the_secret_is_refused),
      cmocka_unit_test(a_worker_is_no_server),
      cmocka_unit_test(addresses_and_exposure_are_checked),
      cmocka_unit_test(heartbeats_keep_a_quiet_line),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
