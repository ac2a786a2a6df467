// SPDX-License-Identifier: Apache-2.0
// core/net/shm: workers that are processes and share memory, in surroundings that make that difficult. Each
// test forks all of its workers. gRPC is started only in them.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/net/shm/shm_transport.hpp"
#include "tests/skip.h"
#include "tests/unit/grpc_support.hpp"

namespace dist {
namespace {

using End = Transfer::End;
constexpr std::size_t kLarge = std::size_t{16} << 20;
constexpr int64_t kSecond = 1'000'000'000;

// Memory that the processes of a test share.
struct Page {
  std::atomic<int> received{0};
  std::atomic<int> child{0};
  char how[2][512];
  char why[2][512];
};

// A worker's side of the test.
struct Worker {
  Page& page;
  int me;
  ShmTransport& transport;
  int other() const { return 1 - me; }
  End wait(Transfer& transfer) {
    while (!transfer.over()) {
      transport.progress();
      std::this_thread::yield();
    }
    return transfer.end();
  }
  // Exchanges one message in each direction.
  bool exchange(std::size_t bytes, uint64_t number) {
    std::vector<std::byte> sent(bytes), got(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      sent[i] = static_cast<std::byte>(i * 7 + number + static_cast<unsigned>(me));
    Transfer send, receive;
    transport.receive(other(), {.number = number}, got.data(), bytes, receive);
    transport.send(other(), {.number = number}, sent.data(), bytes, send);
    if (wait(receive) != End::kDone || wait(send) != End::kDone) return false;
    for (std::size_t i = 0; i < bytes; ++i) {
      if (got[i] != static_cast<std::byte>(i * 7 + number + static_cast<unsigned>(other()))) return false;
    }
    return true;
  }
  bool exchange_some() {
    for (uint64_t i = 0; i < 20; ++i) {
      if (!exchange(i % 4 == 3 ? kLarge / 4 : i * 1000, i)) return false;
    }
    transport.describe(page.how[me], sizeof page.how[me]);
    return true;
  }
};

struct Setup {
  std::function<bool(Worker&)> play;
  // Called in the process with the worker's number: at its start, when gRPC listens, and when the transport's
  // thread has started. They return false if the system does not allow what they do.
  std::function<bool(int)> before = [](int) { return true; };
  std::function<bool(int)> between = [](int) { return true; };
  std::function<bool(int)> after = [](int) { return true; };
  int64_t lease_ns = 3600 * kSecond;
  bool reads = true;
};

void keep_line(dist_log_level, const char* line, void* place) {
  Page& page = *static_cast<Page*>(place);
  std::snprintf(page.why[0], sizeof page.why[0], "%s", line);
}

int be_worker(Page& page, const Setup& setup, const std::vector<std::string>& addresses, int me) {
  if (!setup.before(me)) return 77;
  std::vector<const char*> texts;
  for (const std::string& each : addresses) texts.push_back(each.c_str());
  GrpcOptions options;
  options.addresses = texts;
  options.me = me;
  options.lease_ns = setup.lease_ns;
  use_module(options);
  CountingMemory memory;
  Ref<GrpcNetwork> below;
  if (!GrpcNetwork::create({}, options, &below).ok()) return 2;
  Transport* sockets = nullptr;
  if (!below->join(me, &sockets).ok()) return 3;
  if (!setup.between(me)) return 77;
  ShmTransport transport(*memory, *sockets, {.reads = setup.reads});
  if (!setup.after(me)) return 77;
  Host host;
  if (me == 0) host = {keep_line, &page, nullptr, nullptr};
  transport.log_to(host);
  Worker worker{page, me, transport};
  const bool good = setup.play(worker);
  transport.close();
  return good ? 0 : 4;
}

class Job {
 public:
  explicit Job(const Setup& setup) : addresses_(free_addresses(2)) {
    void* const at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    page_ = new (at) Page;
    for (int w = 0; w < 2; ++w) {
      pids_[w] = fork();
      if (pids_[w] == 0) {
        alarm(100);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(be_worker(*page_, setup, addresses_, w));
      }
    }
  }
  ~Job() {
    for (int w = 0; w < 2; ++w) kill_one(w);
    munmap(page_, sizeof(Page));
  }
  Page& page() { return *page_; }
  const std::string& address(int worker) const { return addresses_[static_cast<std::size_t>(worker)]; }
  pid_t pid(int worker) const { return pids_[worker]; }
  int status_of(int worker) {
    int status = 0;
    assert_int_equal(waitpid(pids_[worker], &status, 0), pids_[worker]);
    pids_[worker] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void kill_one(int worker) {
    if (pids_[worker] <= 0) return;
    ::kill(pids_[worker], SIGKILL);
    waitpid(pids_[worker], nullptr, 0);
    pids_[worker] = 0;
  }
  // Returns true if both workers succeeded, and false if the system did not allow the preparation.
  bool both_end_well() {
    const int first = status_of(0);
    const int second = status_of(1);
    if (first == 77 || second == 77) return false;
    assert_int_equal(first, 0);
    assert_int_equal(second, 0);
    return true;
  }

 private:
  const std::vector<std::string> addresses_;
  Page* page_ = nullptr;
  pid_t pids_[2] = {};
};

bool exchange_some(Worker& worker) { return worker.exchange_some(); }

void workers_of_one_machine_share_memory(void**) {
  Job job({.play = exchange_some});
  assert_true(job.both_end_well());
  for (int w = 0; w < 2; ++w) {
    const std::string how = job.page().how[w];
    assert_says(how, "worker " + std::to_string(1 - w) + " by shared memory of ");
  }
  assert_string_equal(job.page().why[0], "");
}

// Worker 0 receives large messages until worker 1 is lost. Then all its waiting transfers must end.
bool receive_until_lost(Worker& worker) {
  std::vector<std::byte> data(kLarge);
  Transfer other;
  worker.transport.receive(worker.other(), {.series = 7}, data.data(), 1, other);
  for (uint64_t i = 0;; ++i) {
    Transfer transfer;
    const MessageKey key{.number = i};
    if (worker.me == 1) {
      worker.transport.send(0, key, data.data(), kLarge, transfer);
    } else {
      worker.transport.receive(1, key, data.data(), kLarge, transfer);
    }
    const End end = worker.wait(transfer);
    if (end == End::kDone) {
      if (worker.me == 0) worker.page.received.fetch_add(1);
      continue;
    }
    if (worker.me == 1) return end == End::kLost;
    worker.transport.why_lost(1, worker.page.why[1], sizeof worker.page.why[1]);
    return end == End::kLost && worker.wait(other) == End::kLost && worker.transport.lost(1);
  }
}

void a_peer_is_killed_while_messages_are_copied(void**) {
  for (const bool reads : {true, false}) {
    Job job({.play = receive_until_lost, .reads = reads});
    await([&] { return job.page().received.load() >= 3; });
    job.kill_one(1);
    assert_int_equal(job.status_of(0), 0);
    const std::string said = "worker 1 (" + job.address(1) + ") was killed or its connection broke";
    assert_string_equal(job.page().why[1], said.c_str());
  }
}

void a_peer_is_stopped_past_its_lease(void**) {
  Job job({.play = receive_until_lost, .lease_ns = 3 * kSecond});
  await([&] { return job.page().received.load() >= 3; });
  ::kill(job.pid(1), SIGSTOP);
  assert_int_equal(job.status_of(0), 0);
  const std::string said = "worker 1 (" + job.address(1) + ") sent no heartbeat for 3 s";
  assert_string_equal(job.page().why[1], said.c_str());
  ::kill(job.pid(1), SIGCONT);
  assert_int_equal(job.status_of(1), 0);
}

// Prevents files as large as the shared memory.
bool allow_no_large_files(int) {
  const rlimit limit{4096, 4096};
  return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

void without_room_for_shared_memory_there_are_sockets(void**) {
  Job job({.play = exchange_some, .before = allow_no_large_files});
  assert_true(job.both_end_well());
  for (int w = 0; w < 2; ++w) {
    const std::string how = job.page().how[w];
    assert_says(how, "worker " + std::to_string(1 - w) + " by sockets: allocating shared memory failed");
  }
  const std::string line = job.page().why[0];
  assert_says(line,
              "worker 1 is on this machine, but is reached over sockets: allocating shared memory failed");
}

bool forbid_reading(int) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

void a_system_that_forbids_reading_copies_twice(void**) {
  Job job({.play = exchange_some, .before = forbid_reading});
  if (!job.both_end_well()) skip_because("the system allows no seccomp filter");
  for (const char* const each : job.page().how) {
    const std::string how = each;
    assert_says(how, "by shared memory of ");
    assert_says(how, "with two copies");
  }
}

bool have_little_dev_shm(int) {
  return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k") == 0;
}

void a_small_dev_shm_does_not_matter(void**) {
  Job job({.play = exchange_some, .before = have_little_dev_shm});
  if (!job.both_end_well()) skip_because("mounting needs root");
  for (const char* const each : job.page().how) {
    const std::string how = each;
    assert_says(how, "by shared memory of ");
  }
}

// Makes the calling process the parent of the worker, which is then in another PID namespace.
bool enter_pid_namespace(int) {
  if (unshare(CLONE_NEWPID) != 0) return false;
  const pid_t child = fork();
  if (child == 0) return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
  int status = 0;
  waitpid(child, &status, 0);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

void workers_in_other_pid_namespaces_share_memory(void**) {
  Job job({.play = exchange_some, .before = enter_pid_namespace});
  if (!job.both_end_well()) skip_because("another PID namespace needs root");
  for (const char* const each : job.page().how) {
    const std::string how = each;
    assert_says(how, "by shared memory of ");
    assert_says(how, "with two copies");
  }
}

// Only the thread that uses local sockets is in another namespace, so that gRPC still connects the workers.
void workers_in_other_network_namespaces_use_sockets(void**) {
  const Descriptor here(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  Job job({.play = exchange_some,
           .between = [](int me) { return me == 0 || unshare(CLONE_NEWNET) == 0; },
           .after = [&](int me) { return me == 0 || setns(here.number(), CLONE_NEWNET) == 0; }});
  if (!job.both_end_well()) skip_because("another network namespace needs root");
  for (int w = 0; w < 2; ++w) {
    const std::string how = job.page().how[w];
    assert_says(how,
                "worker " + std::to_string(1 - w) + " by sockets: connecting to its local socket failed");
  }
  const std::string line = job.page().why[0];
  assert_says(line, "worker 1 is on this machine, but is reached over sockets: ");
}

// In a forked child all transfers end as lost, and its calls have no effect on the parent.
bool forked_child_is_no_worker(Worker& worker) {
  Transport& transport = worker.transport;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    std::byte byte{};
    Transfer transfers[2];
    transport.poll(true);
    transport.send(worker.other(), {.number = 99}, &byte, 1, transfers[0]);
    transport.receive(worker.other(), {.number = 99}, &byte, 1, transfers[1]);
    transport.progress();
    transport.sleep(true);
    transport.sleep(false);
    transport.poll(false);
    transport.close();
    _exit(transfers[0].end() == End::kLost && transfers[1].end() == End::kLost ? 0 : 1);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

void a_forked_child_does_not_disturb_its_parent(void**) {
  Job job({.play = [](Worker& worker) {
    return worker.exchange_some() && (worker.me == 0 || forked_child_is_no_worker(worker)) &&
           worker.exchange_some();
  }});
  assert_true(job.both_end_well());
  assert_string_equal(job.page().why[0], "");
}

// The child keeps the sockets of its parent open, so gRPC does not notice that the parent has ended.
void a_killed_peer_whose_child_lives_is_lost(void**) {
  Job job({.play = [](Worker& worker) {
    if (!worker.exchange_some()) return false;
    // At its end, gRPC would wait for the peer as long as its lease.
    if (worker.me == 0) _exit(receive_until_lost(worker) ? 0 : 4);
    const pid_t child = fork();
    if (child == 0) alarm(100);
    if (child != 0) worker.page.child = static_cast<int>(child);
    for (;;) pause();
  }});
  await([&] { return job.page().child.load() > 0; });
  job.kill_one(1);
  assert_int_equal(job.status_of(0), 0);
  assert_string_equal(job.page().why[1], "worker 1 was killed");
  ::kill(static_cast<pid_t>(job.page().child), SIGKILL);
}

int lines_with(const char* path, const char* part) {
  std::ifstream file(path);
  int found = 0;
  for (std::string line; std::getline(file, line);) found += line.find(part) != std::string::npos ? 1 : 0;
  return found;
}

// Worker 1 leaves before the two workers have agreed on how they communicate.
void messages_before_the_introduction_survive_their_sender(void**) {
  void* const at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(at != MAP_FAILED);
  std::atomic<int>& left = (new (at) Page)->received;
  Setup setup;
  setup.before = [&](int me) {
    while (me == 0 && left != 1) std::this_thread::yield();
    return true;
  };
  setup.play = [&](Worker& worker) {
    constexpr std::size_t kBytes = 100;
    std::byte bytes[kBytes] = {std::byte{1}, std::byte{2}};
    Transfer transfer;
    if (worker.me == 1) {
      worker.transport.send(0, {.number = 7}, bytes, kBytes, transfer);
      if (transfer.end() != End::kDone) return false;
      bytes[1] = std::byte{3};
      worker.transport.close_links();
      left = 1;
      return true;
    }
    std::byte got[kBytes];
    worker.transport.receive(1, {.number = 7}, got, kBytes, transfer);
    return worker.wait(transfer) == End::kDone && got[0] == std::byte{1} && got[1] == std::byte{2};
  };
  assert_true(Job(setup).both_end_well());
  munmap(at, sizeof(Page));
}

void nothing_is_left_behind(void**) {
  const int before = lines_with("/proc/net/unix", "@dist-shm-");
  {
    Job job({.play = receive_until_lost});
    await([&] { return job.page().received.load() >= 3; });
    assert_true(lines_with("/proc/net/unix", "@dist-shm-") > before);
    assert_int_equal(access("/dev/shm/dist-shm", F_OK), -1);
  }
  await([&] { return lines_with("/proc/net/unix", "@dist-shm-") <= before; });
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(workers_of_one_machine_share_memory),
      cmocka_unit_test(a_peer_is_killed_while_messages_are_copied),
      cmocka_unit_test(a_peer_is_stopped_past_its_lease),
      cmocka_unit_test(without_room_for_shared_memory_there_are_sockets),
      cmocka_unit_test(a_system_that_forbids_reading_copies_twice),
      cmocka_unit_test(a_small_dev_shm_does_not_matter),
      cmocka_unit_test(workers_in_other_pid_namespaces_share_memory),
      cmocka_unit_test(workers_in_other_network_namespaces_use_sockets),
      cmocka_unit_test(a_forked_child_does_not_disturb_its_parent),
      cmocka_unit_test(a_killed_peer_whose_child_lives_is_lost),
      cmocka_unit_test(messages_before_the_introduction_survive_their_sender),
      cmocka_unit_test(nothing_is_left_behind),
  };
  return cmocka_run_group_tests_name("shm_processes", tests, nullptr, nullptr);
}
