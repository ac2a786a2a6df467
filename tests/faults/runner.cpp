// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/runner.hpp"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <thread>

namespace faults {

// ---- Runs ----

void Runner::call() {
  status_ = dist_run(strategy_, fn_, user_data_, nullptr);
  if (status_ != DIST_OK) report_ = latest_report();
  returned_ = true;
}

void* Runner::call_and_end(void* runner) {
  static_cast<Runner*>(runner)->call();
  return nullptr;
}

void Runner::run(bool caller_ends) {
  if (threads_ == DIST_THREADS_HOST) return enter_all();
  if (!caller_ends) return call();
  pthread_t caller;
  if (pthread_create(&caller, nullptr, call_and_end, this) != 0) std::abort();
  pthread_join(caller, nullptr);
  if (returned_) trouble_ = "dist_run() returned on a thread that ended inside it";
}

void Runner::run_until(int64_t timeout_ns) {
  struct Body {
    dist_replica_fn fn;
    void* user_data;
  };
  static Body body;  // used until all late members have left
  body = {fn_, user_data_};
  const dist_values_fn act = [](dist_replica* replica, dist_value*, dist_value*, dist_value**, void* given) {
    const auto& inner = *static_cast<const Body*>(given);
    return inner.fn(replica, inner.user_data);
  };
  dist_run_options options = DIST_RUN_OPTIONS_INIT;
  options.timeout_ns = timeout_ns;
  status_ = dist_run_values(strategy_, act, &body, nullptr, nullptr, &options, nullptr);
  if (status_ != DIST_OK) report_ = latest_report();
}

void Runner::await_idle() {
  const dist_replica_fn nothing = [](dist_replica*, void*) -> dist_status { return DIST_OK; };
  dist_status status;
  while ((status = dist_run(strategy_, nothing, nullptr, nullptr)) == DIST_FAILED_PRECONDITION) sched_yield();
  if (status != DIST_OK) trouble_ = std::string("after the deadline: ") + dist_last_error();
}

namespace {

struct HostThread {
  dist_strategy* strategy;
  int32_t id;
  dist_replica_fn fn;
  void* user_data;
  dist_status status = DIST_OK;
  Report report;
  bool left = false;  // by returning, or because the thread ended inside the run
};

void* enter_one(void* argument) {
  auto& self = *static_cast<HostThread*>(argument);
  dist_replica* replica = nullptr;
  self.status = dist_replica_enter(self.strategy, self.id, &replica);
  if (self.status == DIST_OK) self.status = dist_replica_leave(replica, self.fn(replica, self.user_data));
  if (self.status != DIST_OK) self.report = latest_report();
  self.left = true;
  return nullptr;
}

}  // namespace

void Runner::enter_all() {
  const int n = dist_strategy_num_replicas(strategy_);
  HostThread threads[kMostMembers];
  pthread_t handles[kMostMembers];
  for (int i = 0; i < n; ++i) {
    threads[i].strategy = strategy_, threads[i].id = i, threads[i].fn = fn_,
    threads[i].user_data = user_data_;
    if (pthread_create(&handles[i], nullptr, enter_one, &threads[i]) != 0) std::abort();
  }
  for (int i = 0; i < n; ++i) pthread_join(handles[i], nullptr);
  const HostThread* first = nullptr;
  for (int i = 0; i < n; ++i) {
    if (!threads[i].left) continue;
    if (first == nullptr) first = &threads[i];
    if (threads[i].status != first->status) trouble_ = "host threads left the run with different statuses";
  }
  if (first == nullptr) {
    trouble_ = "no host thread left the run";
    return;
  }
  status_ = first->status;
  report_ = first->report;
}

Report latest_report() {
  dist_error_info info = DIST_ERROR_INFO_INIT;
  if (dist_last_error_info(&info) != DIST_OK) return {};
  return {info.code,    info.replica, info.logical_device, info.collective, info.group, info.sequence,
          info.message, info.tag,     info.expected,       info.received,   info.hint,  info.worker};
}

// ---- Resources ----

namespace {

std::atomic<int64_t> held_bytes{0};

void* allocate(size_t size_bytes, size_t align_bytes, void*) {
  void* memory = nullptr;
  if (posix_memalign(&memory, align_bytes < sizeof(void*) ? sizeof(void*) : align_bytes, size_bytes) != 0)
    return nullptr;
  held_bytes.fetch_add(static_cast<int64_t>(size_bytes));
  return memory;
}

void give_back(void* memory, size_t size_bytes, size_t, void*) {
  held_bytes.fetch_sub(static_cast<int64_t>(size_bytes));
  std::free(memory);
}

int count_entries(const char* path) {
  DIR* folder = opendir(path);
  if (folder == nullptr) std::abort();
  int count = 0;
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

// The number of threads that oneTBB may start and keep.
int tbb_threads() { return static_cast<int>(std::thread::hardware_concurrency()) - 1; }

}  // namespace

dist_allocator counting_allocator() { return {allocate, give_back, nullptr}; }

Holdings holdings() {
  return {held_bytes.load(), count_entries("/proc/self/task"), count_entries("/proc/self/fd")};
}

std::string left_behind(Holdings& before) {
  static int started_by_tbb = 0;
  // Joined threads take microseconds to disappear. So does the last thread that frees a strategy which was
  // shut down around it.
  constexpr int64_t kPatienceNs = 2'000'000'000;
  Holdings now = holdings();
  const int64_t start = now_ns();
  while ((now.threads > before.threads || now.bytes > before.bytes) && now_ns() - start < kPatienceNs) {
    sched_yield();
    now = holdings();
  }
  std::string text;
  if (now.bytes != before.bytes) text += std::to_string(now.bytes - before.bytes) + " bytes ";
  if (now.descriptors != before.descriptors)
    text += std::to_string(now.descriptors - before.descriptors) + " descriptors ";
  if (now.threads > before.threads) {
    const int more = now.threads - before.threads;
    started_by_tbb += more;
    before.threads = now.threads;
    if (started_by_tbb > tbb_threads()) text += std::to_string(more) + " threads ";
  }
  return text.empty() ? text : text + "left behind";
}

}  // namespace faults
