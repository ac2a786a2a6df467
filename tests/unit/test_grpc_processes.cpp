// SPDX-License-Identifier: Apache-2.0
// core/net/grpc: worker processes, one of which is killed or suspended. This program starts itself again
// for the other workers:
//
//     test_grpc_processes worker NUMBER LEASE_NS ADDRESS...
//
// Worker 1 waits for a message that is never sent, until it is killed. Worker 2 prints what it has learned
// about worker 1.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "tests/unit/grpc_support.hpp"
#include "tests/unit/plain_error.hpp"

namespace dist {
namespace {

using End = Transfer::End;
constexpr std::size_t kTextBytes = 256;

// ---- Started workers ----

int worker_main(int argc, char** argv) {
  const int me = std::atoi(argv[2]);
  GrpcOptions options;
  options.addresses = {argv + 4, static_cast<std::size_t>(argc - 4)};
  options.me = me;
  options.lease_ns = std::atoll(argv[3]);
  options.credit = 4096;
  use_module(options);
  Ref<GrpcNetwork> network;
  Transport* transport = nullptr;
  if (!GrpcNetwork::create({}, options, &network).ok() || !network->join(me, &transport).ok()) {
    std::fprintf(stderr, "%s\n", last_message());
    return 2;
  }
  std::byte hello{7};
  Transfer sent[2];
  Transfer waiting[2];
  std::byte got;
  const int others[2] = {me == 0 ? 1 : 0, me == 2 ? 1 : 2};
  for (int i = 0; i < 2; ++i) {
    transport->send(others[i], {.number = 1}, &hello, 1, sent[i]);
    transport->receive(others[i], {.number = 9}, &got, 1, waiting[i]);
  }
  if (me != 2) {  // it is killed, or loses all others
    await([&] { return waiting[0].over() && waiting[1].over(); });
    return waiting[0].end() == End::kLost && waiting[1].end() == End::kLost ? 0 : 3;
  }
  await([&] { return transport->lost(0) || transport->lost(1); });
  const int victim = transport->lost(0) ? 0 : 1;
  char text[kTextBytes] = "";
  transport->why_lost(victim, text, sizeof text);
  Transfer report;
  transport->send(1 - victim, {.number = 2}, reinterpret_cast<const std::byte*>(text), sizeof text, report);
  await([&] { return report.over(); });
  transport->close();
  return report.end() == End::kDone ? 0 : 4;
}

// ---- The test's side ----

// The process of one worker.
struct Process {
  Process(const GrpcWorkers& workers, int worker, int64_t lease_ns) {
    const std::string number = std::to_string(worker);
    const std::string lease = std::to_string(lease_ns);
    std::vector<char*> arguments;
    for (const char* const each : {"test_grpc_processes", "worker", number.c_str(), lease.c_str()}) {
      arguments.push_back(const_cast<char*>(each));
    }
    for (int w = 0; w < 3; ++w) arguments.push_back(const_cast<char*>(workers.address(w).c_str()));
    arguments.push_back(nullptr);
    pid = fork();
    if (pid == 0) {
      execv("/proc/self/exe", arguments.data());
      _exit(99);
    }
    assert_true(pid > 0);
  }
  ~Process() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  int wait() {
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    pid = 0;
    return status;
  }
  pid_t pid = 0;
};

// This process is worker `me`; the other two are started processes. After all have exchanged messages, the
// test kills or stops the victim.
struct Scene {
  Scene(int me, int victim, int64_t lease_ns) : workers(3, 4096), other(2) {
    victim_process = std::make_unique<Process>(workers, victim, lease_ns);
    witness = std::make_unique<Process>(workers, other, lease_ns);
    own = &workers.join_with(me, [&](GrpcOptions& options) { options.lease_ns = lease_ns; });
    for (const int w : {victim, other}) {
      Transfer receive;
      std::byte got;
      own->receive(w, {.number = 1}, &got, 1, receive);
      await([&] { return receive.over(); });
      assert_true(receive.end() == End::kDone);
    }
  }
  // Returns what the witness has learned.
  std::string report() {
    char text[kTextBytes];
    Transfer receive;
    own->receive(other, {.number = 2}, reinterpret_cast<std::byte*>(text), sizeof text, receive);
    await([&] { return receive.over(); });
    assert_true(receive.end() == End::kDone);
    assert_int_equal(witness->wait(), 0);
    return text;
  }
  GrpcWorkers workers;
  const int other;
  std::unique_ptr<Process> victim_process;
  std::unique_ptr<Process> witness;
  Transport* own = nullptr;
};

void who_is_killed_is_lost_to_all(void**) {
  // The lease is long, so the end of its connections is what shows that it was killed.
  Scene scene(0, 1, int64_t{3600} * 1'000'000'000);
  Transfer receive;
  std::byte got;
  scene.own->receive(1, {.number = 5}, &got, 1, receive);
  ::kill(scene.victim_process->pid, SIGKILL);
  await([&] { return receive.over(); });
  assert_true(receive.end() == End::kLost);
  const std::string said = "worker 1 (" + scene.workers.address(1) + ") was killed or its connection broke";
  assert_string_equal(why(*scene.own, 1).c_str(), said.c_str());
  assert_string_equal(scene.report().c_str(), said.c_str());
  scene.own->close();
}

void who_is_stopped_past_the_lease_is_lost_to_all(void**) {
  Scene scene(0, 1, 1'000'000'000);
  Transfer receive;
  std::byte got;
  scene.own->receive(1, {.number = 5}, &got, 1, receive);
  ::kill(scene.victim_process->pid, SIGSTOP);
  await([&] { return receive.over(); });
  assert_true(receive.end() == End::kLost);
  const std::string said = "worker 1 (" + scene.workers.address(1) + ") sent no heartbeat for 1 s";
  assert_string_equal(why(*scene.own, 1).c_str(), said.c_str());
  assert_string_equal(scene.report().c_str(), said.c_str());
  // It stays lost. When it continues, it finds that all others are lost to it.
  ::kill(scene.victim_process->pid, SIGCONT);
  assert_int_equal(scene.victim_process->wait(), 0);
  assert_true(scene.own->lost(1));
  scene.own->close();
}

void who_loses_worker_0_loses_it_alone(void**) {
  Scene scene(1, 0, int64_t{3600} * 1'000'000'000);
  ::kill(scene.victim_process->pid, SIGKILL);
  await([&] { return scene.own->lost(0); });
  const std::string said = "worker 0 (" + scene.workers.address(0) + ") was killed or its connection broke";
  assert_string_equal(why(*scene.own, 0).c_str(), said.c_str());
  assert_string_equal(scene.report().c_str(), said.c_str());
  // A worker that leaves afterwards is known to have left, although worker 0 cannot announce it.
  await([&] { return scene.own->lost(2); });
  assert_string_equal(why(*scene.own, 2).c_str(),
                      ("worker 2 (" + scene.workers.address(2) + ") has left").c_str());
  scene.own->close();
}

// A forked child has the network's memory but none of its threads.
void a_forked_child_leaves_it_alone(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join(0);
  Transport& second = workers.join(1);
  const pid_t child = fork();
  if (child == 0) {
    Transfer send;
    std::byte byte{};
    first.send(1, {}, &byte, 1, send);
    const bool lost = send.end() == End::kLost;
    first.receive(1, {}, &byte, 1, send);
    first.cancel(send);
    first.forget(0, 1);
    first.listen(nullptr);
    first.close();
    workers.end(0);
    _exit(lost && send.end() == End::kLost ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  uint64_t got = 0;
  const uint64_t sent = 3;
  Transfer send;
  Transfer receive;
  first.send(1, {}, reinterpret_cast<const std::byte*>(&sent), sizeof sent, send);
  second.receive(0, {}, reinterpret_cast<std::byte*>(&got), sizeof got, receive);
  await([&] { return receive.over(); });
  assert_true(receive.end() == End::kDone && got == sent);
  first.close();
  second.close();
}

}  // namespace
}  // namespace dist

int main(int argc, char** argv) {
  using namespace dist;
  if (argc > 4 && std::strcmp(argv[1], "worker") == 0) return worker_main(argc, argv);
  const CMUnitTest tests[] = {
      cmocka_unit_test(who_is_killed_is_lost_to_all),
      cmocka_unit_test(who_is_stopped_past_the_lease_is_lost_to_all),
      cmocka_unit_test(who_loses_worker_0_loses_it_alone),
      cmocka_unit_test(a_forked_child_leaves_it_alone),
  };
  return cmocka_run_group_tests_name("grpc_processes", tests, nullptr, nullptr);
}
