// SPDX-License-Identifier: Apache-2.0
// core/net/grpc: workers that end before they have met the others, and what a worker can meet at worker 0's
// address before worker 0 listens there.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "tests/unit/grpc_support.hpp"
#include "tests/unit/plain_error.hpp"

namespace dist {
namespace {

using End = Transfer::End;
constexpr int64_t kGuardNs = int64_t{60} * 1'000'000'000;  // a lease that no test lets expire

// One worker's network, which a thread can end.
struct Joined {
  Joined(const GrpcWorkers& workers, int worker, const std::function<void(GrpcOptions&)>& change = {}) {
    GrpcOptions options = workers.options(worker);
    options.lease_ns = kGuardNs;
    if (change) change(options);
    if (!GrpcNetwork::create({}, options, &network).ok() || !network->join(worker, &transport).ok()) {
      print_error("%s\n", last_message());
      assert_true(false);
    }
  }
  // Destroys the network, which waits until the others have learned of it.
  void end_aside() {
    transport->close();
    ending = std::thread([this] { network = Ref<GrpcNetwork>(); });
  }
  ~Joined() {
    if (ending.joinable()) ending.join();
    if (network) transport->close();
  }
  Ref<GrpcNetwork> network;
  Transport* transport = nullptr;
  std::thread ending;
};

// ---- Workers that end early ----

void a_worker_that_ends_before_another_starts_is_known_to_have_left(void**) {
  for (const bool sends : {false, true}) {
    for (const int early : {0, 1}) {
      const GrpcWorkers workers(2, 4096);
      Joined ends(workers, early);
      std::byte byte{};
      Transfer sent;
      if (sends) ends.transport->send(1 - early, {.number = 1}, &byte, 1, sent);
      ends.end_aside();
      Joined late(workers, 1 - early);
      Transfer receive;
      late.transport->receive(early, {.number = 2}, &byte, 1, receive);
      await([&] { return receive.over(); });
      assert_true(receive.end() == End::kLost && late.transport->left(early));
      assert_says(why(*late.transport, early), "has left");
      late.end_aside();
    }
  }
}

void all_learn_of_a_worker_that_ends_before_worker_0_starts(void**) {
  const GrpcWorkers workers(3, 4096);
  Joined ends(workers, 2);
  ends.end_aside();
  Joined other(workers, 1);
  Joined first(workers, 0);
  for (const Joined* const each : {&other, &first}) {
    await([&] { return each->transport->lost(2); });
    assert_true(each->transport->left(2));
  }
  assert_speak(*first.transport, *other.transport, 1);
  other.end_aside();
  first.end_aside();
}

void a_worker_that_forms_a_generation_before_it_has_met_worker_0_has_left(void**) {
  const GrpcWorkers workers(2, 4096);
  Joined before(workers, 1);
  const Parting known = before.network->leave();
  assert_false(known.met);
  Joined forming(workers, 1, [](GrpcOptions& options) { options.forms = true; });
  std::atomic<bool> cancelled{false};
  std::thread waits([&] {
    Forming wanted;
    wanted.cancelled = &cancelled;
    Formed formed;
    (void)forming.network->form(wanted, &formed);
  });
  Joined first(workers, 0);
  Transfer receive;
  std::byte byte{};
  first.transport->receive(1, {.number = 1}, &byte, 1, receive);
  await([&] { return receive.over(); });
  assert_true(receive.end() == End::kLost);
  assert_says(why(*first.transport, 1), "has left to re-form");
  await([&] { return first.network->has_newcomers(); });
  cancelled = true;
  waits.join();
  forming.end_aside();
  first.end_aside();
}

// ---- Other programs at worker 0's address ----

const auto kNew = [](GrpcOptions& options) { options.secret = "new"; };
const auto kOld = [](GrpcOptions& options) { options.secret = "old"; };

// Answers everything with bytes that are not HTTP/2.
struct Garbage {
  explicit Garbage(const std::string& address) : listens(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    const int on = 1;
    (void)setsockopt(listens, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_int_equal(bind(listens, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    assert_int_equal(listen(listens, 8), 0);
    answers = std::thread([this] {
      constexpr char kText[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
      for (int fd; (fd = accept(listens, nullptr, nullptr)) >= 0; ++answered) {
        (void)!::send(fd, kText, sizeof kText - 1, MSG_NOSIGNAL);
        ::close(fd);
      }
    });
  }
  ~Garbage() {
    shutdown(listens, SHUT_RDWR);
    answers.join();
    ::close(listens);
  }
  const int listens;
  std::atomic<int> answered{0};
  std::thread answers;
};

void nothing_unproven_ends_an_attempt_to_join(void**) {
  const GrpcWorkers workers(2, 4096);
  // An ending job with the same secret, but of another cluster.
  auto old = std::make_unique<Joined>(workers, 0, [](GrpcOptions& options) {
    options.secret = "new";
    options.digest = "another job";
    options.lease_ns = kLeastLeaseNs;
  });
  old->transport->close();
  Joined second(workers, 1, kNew);
  const auto has_met = [&](const char* words) {
    await([&] {
      return second.transport->lost(0) || why(*second.transport, 0).find(words) != std::string::npos;
    });
    if (second.transport->lost(0)) fail_msg("it has ended: %s", why(*second.transport, 0).c_str());
  };
  has_met("differs from the one");
  old = nullptr;
  {
    const Garbage garbage(workers.address(0));
    await([&] { return garbage.answered >= 5 || second.transport->lost(0); });
  }
  old = std::make_unique<Joined>(workers, 0, kOld);
  has_met("DIST_JOB_SECRET differs");
  // The report also lists the peers that were met earlier.
  has_met("differs from the one");
  (void)old->network->leave();
  old = nullptr;
  Joined first(workers, 0, kNew);
  assert_speak(*first.transport, *second.transport, 1);
  assert_speak(*second.transport, *first.transport, 2);
  assert_string_equal(why(*second.transport, 0).c_str(), "");
  second.end_aside();
  first.end_aside();
}

// A refusal by a proven worker 0 of this job is believed, and so is one in a job without a secret.
void a_proven_refusal_is_final(void**) {
  for (const char* const secret : {"the job's", static_cast<const char*>(nullptr)}) {
    const GrpcWorkers workers(2, 4096);
    const auto with = [&](const char* digest) {
      return [=](GrpcOptions& options) {
        options.secret = secret;
        options.digest = digest;
        options.lease_ns = kLeastLeaseNs;
      };
    };
    Joined first(workers, 0, with("2 replicas"));
    Joined second(workers, 1, with("3 replicas"));
    await([&] { return second.transport->lost(0); });
    assert_says(why(*second.transport, 0), "differs from the one");
  }
}

// A worker is started again and asks to join while the previous job ends. It belongs to the next job.
void a_worker_waits_for_the_job_after_the_one_that_ends(void**) {
  const GrpcWorkers workers(2, 4096);
  const std::string elsewhere = free_addresses(1)[0];
  auto old_first = std::make_unique<Joined>(workers, 0, kOld);
  auto old_second = std::make_unique<Joined>(workers, 1, kOld);
  assert_speak(*old_second->transport, *old_first->transport, 1);
  old_first->transport->close();
  await([&] { return old_second->transport->lost(0); });
  Joined second(workers, 1, [&](GrpcOptions& options) {
    options.secret = "old";
    options.bind_address = elsewhere.c_str();
  });
  await([&] { return second.transport->lost(0) || !why(*second.transport, 0).empty(); });
  assert_false(second.transport->lost(0));
  old_second = nullptr;
  old_first = nullptr;
  Joined first(workers, 0, kOld);
  Transfer send;
  std::byte byte{};
  second.transport->send(0, {.number = 1}, &byte, 1, send);
  await([&] { return send.over(); });
  assert_true(send.end() == End::kDone);
  second.end_aside();
  first.end_aside();
}

// ---- Workers and clients that end while they connect ----

std::size_t num_sockets() {
  std::size_t n = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(each, gone).string().starts_with("socket:")) ++n;
  }
  return n;
}

void a_worker_that_ends_while_it_connects_leaves_no_socket(void**) {
  const GrpcWorkers workers(2, 4096);
  Joined first(workers, 0);
  { (void)Joined(workers, 1).network->leave(); }
  const std::size_t before = num_sockets();
  for (int i = 0; i < 60; ++i) {
    Joined second(workers, 1);
    for (int k = 0; k < i % 6; ++k) std::this_thread::sleep_for(std::chrono::microseconds(200));
    (void)second.network->leave();
  }
  // Worker 0's ends of the connections are closed a moment later.
  await([&] { return num_sockets() <= before; });
  (void)first.network->leave();
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_worker_that_ends_before_another_starts_is_known_to_have_left),
      cmocka_unit_test(all_learn_of_a_worker_that_ends_before_worker_0_starts),
      cmocka_unit_test(a_worker_that_forms_a_generation_before_it_has_met_worker_0_has_left),
      cmocka_unit_test(nothing_unproven_ends_an_attempt_to_join),
      cmocka_unit_test(a_proven_refusal_is_final),
      cmocka_unit_test(a_worker_waits_for_the_job_after_the_one_that_ends),
      cmocka_unit_test(a_worker_that_ends_while_it_connects_leaves_no_socket),
  };
  return cmocka_run_group_tests_name("grpc_joining", tests, nullptr, nullptr);
}
