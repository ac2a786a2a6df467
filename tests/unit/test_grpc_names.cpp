// SPDX-License-Identifier: Apache-2.0
// core/net/grpc: how host names become addresses, and how workers and clients find a peer whose name changes.
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/os/addresses.hpp"
#include "core/net/grpc/calls.hpp"
#include "core/net/grpc/endpoint.hpp"
#include "core/net/grpc/names.hpp"
#include "core/net/grpc/reasons.hpp"
#include "tests/unit/grpc_support.hpp"

namespace dist {
namespace {

using namespace grpc_link;

// The names that the system can resolve.
struct Book {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::vector<std::string>> known;
  std::map<std::string, int> begun;   // number of lookups
  std::map<std::string, int> inside;  // number of lookups in progress
  bool silent = false;                // lookups do not return
};

// Not destroyed: a lookup may return after the last test.
Book& book() {
  static auto* const only = new Book;
  return *only;
}

HostAddresses look_up_in_book(const std::string& host) {
  std::unique_lock lock(book().mutex);
  ++book().begun[host];
  ++book().inside[host];
  book().changed.notify_all();
  book().changed.wait(lock, [] { return !book().silent; });
  --book().inside[host];
  const auto found = book().known.find(host);
  if (found == book().known.end()) return {{}, "no such name"};
  return {found->second, ""};
}

// Replaces the system's name lookup during a test. Each test uses different names, because a lookup may
// outlive its test.
struct System {
  System() { Names::look_up_with(look_up_in_book); }
  ~System() { be_silent(false); }
  std::string name(const char* of) const { return of + std::to_string(number); }
  void set(const std::string& host, std::vector<std::string> addresses) {
    const std::scoped_lock lock(book().mutex);
    book().known[host] = std::move(addresses);
  }
  void forget(const std::string& host) {
    const std::scoped_lock lock(book().mutex);
    book().known.erase(host);
  }
  void be_silent(bool silent) {
    const std::scoped_lock lock(book().mutex);
    book().silent = silent;
    book().changed.notify_all();
  }
  void await_lookups(const std::string& host, int n) {
    std::unique_lock lock(book().mutex);
    book().changed.wait(lock, [&] { return book().begun[host] >= n; });
  }
  int lookups(const std::string& host) {
    const std::scoped_lock lock(book().mutex);
    return book().begun[host];
  }
  int in_progress(const std::string& host) {
    const std::scoped_lock lock(book().mutex);
    return book().inside[host];
  }

 private:
  static inline int last = 0;
  const int number = ++last;
};

HostAddresses await_answer(Names& names, const std::string& host) {
  HostAddresses answer;
  await([&] {
    answer = names.ask(host);
    return !answer.list.empty() || !answer.why.empty();
  });
  return answer;
}

// ---- Names ----

void an_ip_address_needs_no_lookup(void**) {
  System system;
  Names names([] {});
  for (const char* const each : {"10.0.0.7", "fd00::7", "127.0.0.1"}) {
    assert_true(names.ask(each).list == std::vector<std::string>{each});
    assert_int_equal(system.lookups(each), 0);
  }
}

void a_name_is_known_when_its_lookup_ends(void**) {
  System system;
  const std::string w0 = system.name("w");
  system.set(w0, {"10.0.0.7", "fd00::7"});
  std::atomic<int> answered{0};
  Names names([&] { ++answered; });
  assert_true(names.ask(w0).list.empty());
  await([&] { return answered == 1; });
  const HostAddresses answer = names.ask(w0);
  assert_true(answer.list == (std::vector<std::string>{"10.0.0.7", "fd00::7"}));
  assert_false(names.moved(w0, {"10.0.0.7", "fd00::7"}));
  assert_true(names.moved(w0, {"10.0.0.8"}));
}

void a_changed_answer_replaces_the_last_one_and_a_failure_does_not(void**) {
  System system;
  const std::string w0 = system.name("w");
  Names names([] {});
  assert_string_equal(await_answer(names, w0).why.c_str(), "no such name");
  system.set(w0, {"10.0.0.7"});
  await([&] { return !names.ask(w0).list.empty(); });
  system.set(w0, {"10.0.0.8"});
  await([&] { return names.ask(w0).list.front() == "10.0.0.8"; });
  system.forget(w0);
  const int before = system.lookups(w0);
  await([&] {
    (void)names.ask(w0);
    return system.lookups(w0) >= before + 2;
  });
  assert_string_equal(names.ask(w0).list.front().c_str(), "10.0.0.8");
}

void there_is_one_lookup_of_a_name_at_a_time(void**) {
  System system;
  const std::string w0 = system.name("w");
  system.set(w0, {"10.0.0.7"});
  system.be_silent(true);
  std::atomic<int> answered{0};
  const auto count = [&] { ++answered; };
  Names first(count);
  Names second(count);
  (void)first.ask(w0);
  system.await_lookups(w0, 1);
  // Longer than a lookup waits for the previous one.
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(2 * Names::kAgainNs);
  while (std::chrono::steady_clock::now() < until) {
    for (Names* const each : {&first, &second}) assert_true(each->ask(w0).list.empty());
    std::this_thread::yield();
  }
  assert_int_equal(system.lookups(w0), 1);
  system.be_silent(false);
  await([&] { return answered == 2; });
  for (Names* const each : {&first, &second})
    assert_string_equal(each->ask(w0).list.front().c_str(), "10.0.0.7");
}

void one_that_asked_can_end_during_its_lookup(void**) {
  System system;
  const std::string w0 = system.name("w");
  system.be_silent(true);
  std::atomic<int> answered{0};
  {
    Names names([&] { ++answered; });
    (void)names.ask(w0);
    system.await_lookups(w0, 1);
  }
  assert_int_equal(system.in_progress(w0), 1);
  system.be_silent(false);
  await([&] { return system.in_progress(w0) == 0; });
  Names again([] {});
  assert_string_equal(await_answer(again, w0).why.c_str(), "no such name");
  assert_int_equal(answered, 0);
}

void the_system_is_asked(void**) {
  const HostAddresses here = look_up("localhost");
  assert_false(here.list.empty());
  for (const std::string& each : here.list) assert_true(HostAndPort{each}.is_loopback());
  const HostAddresses nowhere = look_up("not..a.name");
  assert_true(nowhere.list.empty() && !nowhere.why.empty());
  assert_string_equal(address_towards("127.0.0.1").c_str(), "127.0.0.1");
  assert_string_equal(address_towards("not..a.name").c_str(), "");
}

void targets_have_addresses_only(void**) {
  assert_string_equal(target_of({"10.0.0.7"}, "1").c_str(), "ipv4:10.0.0.7:1");
  assert_string_equal(target_of({"10.0.0.7", "10.0.0.8"}, "1").c_str(), "ipv4:10.0.0.7:1,10.0.0.8:1");
  assert_string_equal(target_of({"fd00::7", "10.0.0.7"}, "1").c_str(),
                      "ipv6:%5Bfd00::7%5D:1,%5B::ffff:10.0.0.7%5D:1");
  assert_string_equal(target_of({"fe80::7%eth0"}, "1").c_str(), "ipv6:%5Bfe80::7%25eth0%5D:1");
  assert_string_equal(host_of_peer("ipv4:10.0.0.7:1").c_str(), "10.0.0.7");
  assert_string_equal(host_of_peer("ipv6:%5Bfe80::7%25eth0%5D:1").c_str(), "fe80::7%eth0");
  assert_string_equal(host_of_peer("ipv6:[::1]:1").c_str(), "::1");
  assert_string_equal(host_of_peer("unix:/tmp/1").c_str(), "");
}

// ---- Workers ----

struct Worker {
  Worker(int me, const std::vector<std::string>& addresses, const std::string& bind_address,
         int64_t lease_ns = 10'000'000'000) {
    Config config;
    config.addresses = addresses;
    config.me = me;
    config.bind_address = bind_address;
    config.version = "test";
    config.lease_ns = lease_ns;
    config.credit = 4096;
    endpoint = std::make_unique<Endpoint>(*memory, std::move(config));
    assert_string_equal(endpoint->start().c_str(), "");
  }
  ~Worker() { endpoint->stop(); }
  CountingMemory memory;
  std::unique_ptr<Endpoint> endpoint;
};

std::string port_at(int i) {
  static const std::vector<std::string> addresses = free_addresses(16);
  return port_of(addresses[static_cast<std::size_t>(i)]);
}

// Two workers with the names "first" and "second". Worker 0 is started later.
struct Two {
  explicit Two(const System& system, int number, int64_t lease_ns = 10'000'000'000)
      : ports{port_at(2 * number), port_at(2 * number + 1)},
        addresses{system.name("first") + ":" + ports[0], system.name("second") + ":" + ports[1]} {
    second = std::make_unique<Worker>(1, addresses, "127.0.0.1:" + ports[1], lease_ns);
  }
  void begin_first() { first = std::make_unique<Worker>(0, addresses, "127.0.0.1:" + ports[0]); }
  // Messages in both directions, so that both names are used.
  void meet() {
    assert_speak(*second->endpoint, *first->endpoint, 1);
    assert_speak(*first->endpoint, *second->endpoint, 2);
    first->endpoint->close();
    second->endpoint->close();
    std::thread other([&] { first.reset(); });
    second.reset();
    other.join();
  }
  std::string ports[2];
  std::vector<std::string> addresses;
  std::unique_ptr<Worker> first, second;
};

void addresses_in_reasons_are_shown_as_addresses(void**) {
  Reasons reasons;
  reasons.add(
      "failed to connect to all addresses; last error: UNKNOWN: ipv6:%5Bfe80::1%25eth0%5D:5000: refused");
  assert_string_equal(reasons.text().c_str(), "UNKNOWN: [fe80::1%eth0]:5000: refused");
  reasons.clear();
  reasons.add("ipv4:127.0.0.1:5000: refused");
  assert_string_equal(reasons.text().c_str(), "127.0.0.1:5000: refused");
}

// Worker 0 need not connect to a worker that has not joined.
void worker_0_reports_a_name_that_does_not_resolve(void**) {
  System system;
  Two two(system, 4);
  two.second.reset();
  two.begin_first();
  await([&] { return why(*two.first->endpoint, 1).find("does not resolve") != std::string::npos; });
  assert_says(why(*two.first->endpoint, 1), "cannot be reached: its host name does not resolve: ");
}

void workers_meet_when_their_names_become_known(void**) {
  System system;
  Two two(system, 0);
  await([&] { return why(*two.second->endpoint, 0).find("does not resolve") != std::string::npos; });
  assert_says(why(*two.second->endpoint, 0), "its host name does not resolve: no such name");
  two.begin_first();
  system.set(system.name("first"), {"127.0.0.1"});
  system.set(system.name("second"), {"127.0.0.1"});
  two.meet();
}

// Accepts connections into its backlog and never answers.
struct Mute {
  explicit Mute(const std::string& port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<uint16_t>(std::stoi(port)));
    assert_int_equal(inet_pton(AF_INET, "127.0.0.2", &at.sin_addr), 1);
    assert_int_equal(bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    assert_int_equal(listen(fd, 16), 0);
  }
  ~Mute() { ::close(fd); }
  // Waits for a client.
  void accept_one() const { ::close(accept(fd, nullptr, nullptr)); }
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

void a_worker_that_returns_at_another_address_is_found(void**) {
  System system;
  const std::string port = port_at(2);
  const Mute before(port);
  system.set(system.name("first"), {"127.0.0.2"});
  system.set(system.name("second"), {"127.0.0.1"});
  Two two(system, 1);
  before.accept_one();
  system.set(system.name("first"), {"127.0.0.1"});
  two.begin_first();
  two.meet();
}

void all_addresses_of_a_name_are_tried(void**) {
  System system;
  // Nobody listens on the others.
  system.set(system.name("first"), {"::1", "127.0.0.3", "127.0.0.1"});
  system.set(system.name("second"), {"127.0.0.3", "127.0.0.1"});
  Two two(system, 2);
  two.begin_first();
  two.meet();
}

void a_worker_ends_during_a_lookup(void**) {
  System system;
  system.be_silent(true);
  // It never meets worker 0, and waits for it until the lease expires.
  Two two(system, 3, 100'000'000);
  system.await_lookups(system.name("first"), 1);
  two.second.reset();
  assert_int_equal(system.in_progress(system.name("first")), 1);
}

// ---- Calls ----

struct Call final : OutgoingCall {
  void answered(dist_status with, const char* why, Ref<CallMessage>) noexcept override {
    const std::scoped_lock lock(mutex);
    status = with;
    text = why;
    done = true;
  }
  bool over() {
    const std::scoped_lock lock(mutex);
    return done;
  }
  std::mutex mutex;
  bool done = false;
  dist_status status = -1;
  std::string text;
};

struct Nothing final : CallParts {
  explicit Nothing(Memory& memory) : CallParts(memory) {}
  std::span<const std::span<const std::byte>> parts() const noexcept override { return {}; }
  std::size_t bytes() const noexcept override { return 0; }
};

struct Answerer final : CallHandler {
  void called(Ref<IncomingCall> call) noexcept override {
    call->answer(DIST_OK, "", Ref<CallParts>::adopt(make_counted<Nothing>(call->memory()).take()));
  }
  void given_up(IncomingCall&) noexcept override {}
};

struct Caller {
  explicit Caller(const std::string& bind_address = "", CallHandler* handler = nullptr) {
    Config config;
    config.bind_address = bind_address;
    config.version = "test";
    config.lease_ns = 10'000'000'000;
    calls = std::make_unique<Calls>(*memory, std::move(config), CallLimits{}, handler);
    assert_string_equal(calls->start().c_str(), "");
  }
  ~Caller() { calls->stop(); }
  CountingMemory memory;
  std::unique_ptr<Calls> calls;
};

Ref<CallParts> nothing(Memory& memory) { return Ref<CallParts>::adopt(make_counted<Nothing>(memory).take()); }

void a_call_waits_for_the_name_of_its_server(void**) {
  System system;
  Answerer answerer;
  const Caller server("127.0.0.1:0", &answerer);
  Caller client;
  CallChannel* const channel =
      client.calls->open((system.name("server") + ":" + std::to_string(server.calls->port())).c_str());
  Call call;
  channel->begin(call, nothing(*client.memory), 0);
  char text[512] = "";
  await([&] {
    channel->why_not(text, sizeof text);
    return text[0] != '\0';
  });
  assert_says(std::string(text), "its host name does not resolve: no such name");
  assert_false(call.over());
  system.set(system.name("server"), {"127.0.0.1"});
  await([&] { return call.over(); });
  assert_int_equal(call.status, DIST_OK);
  client.calls->close(channel);
}

void a_client_ends_during_a_lookup(void**) {
  System system;
  system.be_silent(true);
  const std::string server = system.name("server");
  Call call;
  {
    Caller client;
    CallChannel* const channel = client.calls->open((server + ":1").c_str());
    channel->begin(call, nothing(*client.memory), 0);
    system.await_lookups(server, 1);
    client.calls->close(channel);
  }
  assert_int_equal(call.status, DIST_CANCELLED);
  assert_int_equal(system.in_progress(server), 1);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(an_ip_address_needs_no_lookup),
      cmocka_unit_test(a_name_is_known_when_its_lookup_ends),
      cmocka_unit_test(a_changed_answer_replaces_the_last_one_and_a_failure_does_not),
      cmocka_unit_test(there_is_one_lookup_of_a_name_at_a_time),
      cmocka_unit_test(one_that_asked_can_end_during_its_lookup),
      cmocka_unit_test(the_system_is_asked),
      cmocka_unit_test(targets_have_addresses_only),
      cmocka_unit_test(addresses_in_reasons_are_shown_as_addresses),
      cmocka_unit_test(worker_0_reports_a_name_that_does_not_resolve),
      cmocka_unit_test(workers_meet_when_their_names_become_known),
      cmocka_unit_test(a_worker_that_returns_at_another_address_is_found),
      cmocka_unit_test(all_addresses_of_a_name_are_tried),
      cmocka_unit_test(a_worker_ends_during_a_lookup),
      cmocka_unit_test(a_call_waits_for_the_name_of_its_server),
      cmocka_unit_test(a_client_ends_during_a_lookup),
  };
  return cmocka_run_group_tests_name("grpc_names", tests, nullptr, nullptr);
}
