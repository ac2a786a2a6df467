// SPDX-License-Identifier: Apache-2.0
#include "core/ps/coordinator.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/os/file.hpp"
#include "core/base/text.hpp"
#include "core/net/rpc/job_calls.hpp"
#include "core/net/rpc/message.hpp"
#include "core/ps/coordinator_parts.hpp"
#include "core/ps/task_server.hpp"

namespace dist {
namespace {

constexpr int64_t kDefaultTimeoutNs = 600'000'000'000;
constexpr char kEnded[] = "the coordinator has ended";

Status check_range(const char* name, int32_t value, int32_t most, int32_t by_default) noexcept {
  if (value >= 0 && value <= most) return kOk;
  return invalid_argument("`%s` is %d; use 1 to %d, or 0 for %d", name, value, most, by_default);
}

template <class T>
T or_default(T value, T by_default) noexcept {
  return value == 0 ? by_default : value;
}

Status count_tasks(const ClusterSpec& cluster, const char* job, int* out) noexcept {
  const ClusterSpec::Job* const found = cluster.find(std::string_view(job));
  if (found == nullptr || found->num_tasks == 0) {
    return invalid_argument(
        "the cluster has no task of job \"%s\". A coordinator needs at least one ps and one worker.", job);
  }
  if (!cluster.is_list(*found)) {
    return invalid_argument("the task ids of job \"%s\" must be 0, 1, ... without gaps", job);
  }
  if (found->num_tasks > static_cast<uint32_t>(Coordinator::kMostServers)) {
    return invalid_argument("the cluster has %u tasks of job \"%s\", but a coordinator can have at most %d",
                            found->num_tasks, job, Coordinator::kMostServers);
  }
  *out = static_cast<int>(found->num_tasks);
  return kOk;
}

}  // namespace

// The deadline and cancel object of a wait. Constructed and destroyed without the coordinator's lock.
class Coordinator::Await final : private Cancel::Link {
 public:
  // timeout_ns: 0 does not wait; < 0: no limit.
  Await(Coordinator& owner, int64_t timeout_ns, Cancel* cancel) noexcept
      : owner_(owner), cancel_(cancel), scope_(cancel, *this) {
    const int64_t now = steady_now_ns();
    waits_ns_ = timeout_ns;
    until_ns_ = timeout_ns < 0 || timeout_ns > INT64_MAX - now ? INT64_MAX : now + timeout_ns;
  }

  // Must be called under the lock.
  bool signalled() const noexcept { return cancelled_ || scope_.late(); }
  const char* reason() const noexcept { return cancel_->reason(); }
  int64_t until_ns() const noexcept { return until_ns_; }
  int64_t waits_ns() const noexcept { return waits_ns_; }

 private:
  void cancelled(const char*) noexcept override {
    const std::scoped_lock lock(owner_.mutex_);
    cancelled_ = true;
    owner_.changed_.notify_all();
  }

  Coordinator& owner_;
  Cancel* const cancel_;
  int64_t until_ns_ = 0;
  int64_t waits_ns_ = 0;
  bool cancelled_ = false;
  CancelScope scope_;  // declared after the members that a signal writes, because it may arrive immediately
};

// ---- Creation and destruction ----

Status Coordinator::create(Memory& memory, const ClusterSpec& cluster, const CoordinatorOptions& options,
                           Ref<Coordinator>* out) {
  DIST_TRY(check_range("max_queued", options.max_queued, kMostQueued, kDefaultQueued));
  DIST_TRY(check_range("closures_per_worker", options.closures_per_worker, kMostPerWorker, 1));
  DIST_TRY(check_range("max_losses", options.max_losses, INT32_MAX, kDefaultLosses));
  DIST_TRY(check_message_bytes(options.message_bytes));
  int num_ps = 0;
  int num_workers = 0;
  DIST_TRY(count_tasks(cluster, kPsJob, &num_ps));
  DIST_TRY(count_tasks(cluster, kWorkerJob, &num_workers));
  // A number that no other coordinator of these servers has; 0 means none.
  const auto epoch = static_cast<int64_t>(unpredictable_number() >> 1 | 1);
  Ref<Coordinator> made = make_counted<Coordinator>(memory, options, num_ps, num_workers, epoch);
  DIST_TRY(made->start(cluster));
  *out = std::move(made);
  return kOk;
}

Coordinator::Coordinator(Memory& memory, const CoordinatorOptions& options, int num_ps, int num_workers,
                         int64_t epoch)
    : Counted(memory),
      timeout_ns_(or_default(options.timeout_ns, kDefaultTimeoutNs)),
      max_queued_(static_cast<std::size_t>(or_default(options.max_queued, kDefaultQueued))),
      partitioner_(options.partitioner),
      message_bytes_(
          static_cast<std::size_t>(or_default(options.message_bytes, TaskServer::kDefaultMessageBytes))),
      num_ps_(num_ps),
      num_workers_(num_workers),
      epoch_(epoch),
      ended_(make_counted<Cancel>(memory)),
      directory_(memory),
      variables_(memory, epoch),
      devices_(&memory),
      num_parts_(static_cast<std::size_t>(num_ps), &memory),
      servers_(&memory),
      queue_(memory, num_workers, or_default(options.closures_per_worker, 1),
             or_default(options.max_losses, kDefaultLosses)),
      flights_(&memory),
      per_worker_(&memory),
      cancels_(&memory),
      trash_(&memory),
      spans_(memory) {
  counts_.num_ps = num_ps;
  counts_.num_workers = num_workers;
}

Status Coordinator::add_server(const ClusterSpec& cluster, const char* job, int index) {
  const char* address = nullptr;
  DIST_TRY(cluster.task_address(job, index, &address));
  HostAndPort parsed;
  if (!parse_address(address, 1, &parsed)) {
    return invalid_argument("the address of /job:%s/task:%d is \"%s\", but must be %s", job, index,
                            Shown(address).c_str(), kAddressForm);
  }
  const bool ps = job == kPsJob;
  Server& server = servers_.emplace_back(*this, ps, index);
  DIST_TRY(RpcClient::create(memory(), calls_, address, -1, &server.client));
  if (!ps) return kOk;
  char device[64];
  std::snprintf(device, sizeof device, "/job:ps/replica:0/task:%d/device:CPU:0", index);
  devices_.emplace_back(device);
  return variables_.add_server(calls_, address);
}

Status Coordinator::start(const ClusterSpec& cluster) {
  JobCallOptions options;
  options.limits.message_bytes = message_bytes_;
  options.limits.bytes = 4 * message_bytes_;
  DIST_TRY(create_job_calls(memory(), options, &calls_));
  for (int i = 0; i < num_ps_; ++i) DIST_TRY(add_server(cluster, kPsJob, i));
  for (int i = 0; i < num_workers_; ++i) DIST_TRY(add_server(cluster, kWorkerJob, i));
  DIST_TRY(thread_.start(exchange_main, this));
  thread_.name("dist-coord");
  return kOk;
}

Coordinator::~Coordinator() {
  if (memory().forked()) return;
  // Keeps the reason why it could not start, which end() must not overwrite.
  const ErrorRecord kept = last_error();
  end();
  last_error() = kept;
}

void Coordinator::end() noexcept {
  if (memory().forked()) return;
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  ended_->signal(kEnded);
  signal();
  thread_.join();
  // Parts of closures may outlive the coordinator; its connections must not.
  std::pmr::vector<Ref<Counted>> trash(&memory());
  std::pmr::deque<Server> servers(&memory());
  Ref<GrpcCalls> calls;
  {
    std::unique_lock lock(mutex_);
    end_all(DIST_CANCELLED, kEnded);
    changed_.wait(lock, [this] { return num_uses_ == 0; });
    trash.swap(trash_);
    servers.swap(servers_);
    cancels_.clear();
    calls = std::move(calls_);
  }
  variables_.clear();
}

// ---- The host's threads ----

Coordinator::Use::Use(Coordinator& coordinator) noexcept : coordinator_(coordinator) {
  if (coordinator_.memory().forked()) return;
  const std::scoped_lock lock(coordinator_.mutex_);
  ++coordinator_.num_uses_;
}

Coordinator::Use::~Use() {
  if (coordinator_.memory().forked()) return;
  const std::scoped_lock lock(coordinator_.mutex_);
  if (--coordinator_.num_uses_ == 0 && coordinator_.stopping_) coordinator_.changed_.notify_all();
}

Status Coordinator::check_use() noexcept {
  if (memory().forked())
    return failed_precondition(
        "this is a forked child of the coordinator's process. Create another one in the child.");
  return fatal_.code == DIST_OK ? kOk : fail(fatal_);
}

Status Coordinator::take_error() noexcept {
  if (error_.code == DIST_OK) return kOk;
  const ErrorRecord error = error_;
  error_ = {};
  return fail(error);
}

void Coordinator::describe_absent(std::unique_lock<std::mutex>& lock, char* text, std::size_t size) noexcept {
  *text = '\0';
  int absent = 0;
  const Server* first = nullptr;
  for (const Server& each : servers_) {
    if (each.state != Server::State::kUp && absent++ == 0) first = &each;
  }
  if (first == nullptr) return;
  char why[sizeof ErrorRecord::message / 2];
  copy_text(why, first->why.c_str());
  if (*why == '\0') {
    // A server that was never reached. Its connection has a lock of its own.
    lock.unlock();
    first->client->why_not(why, sizeof why);
    lock.lock();
  }
  std::snprintf(text, size, "; /job:%s/task:%d is not connected%s%s", first->ps ? kPsJob : kWorkerJob,
                first->index, *why == '\0' ? "" : ": ", why);
  const std::size_t used = std::char_traits<char>::length(text);
  if (absent > 1) std::snprintf(text + used, size - used, " (and %d more)", absent - 1);
}

template <class Ready>
Status Coordinator::await(std::unique_lock<std::mutex>& lock, Await& await, const char* what,
                          const Ready& ready) {
  for (;;) {
    DIST_TRY(check_use());
    if (ready()) return kOk;
    if (await.signalled()) return fail(DIST_CANCELLED, "%s", await.reason());
    const int64_t now = steady_now_ns();
    if (now >= await.until_ns()) {
      char absent[sizeof ErrorRecord::message];
      describe_absent(lock, absent, sizeof absent);
      return fail(DIST_DEADLINE_EXCEEDED, "%s: did not complete within %s%s", what,
                  DurationText(await.waits_ns()).text, absent);
    }
    if (await.until_ns() == INT64_MAX) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, std::chrono::nanoseconds(await.until_ns() - now));
    }
  }
}

Status Coordinator::await_servers() {
  Await patience(*this, timeout_ns_, nullptr);
  std::unique_lock lock(mutex_);
  return await(lock, patience, "waiting for the parameter servers", [this] { return all_ps_up_; });
}

Status Coordinator::schedule(const char* function, Value* arguments, int64_t timeout_ns, Cancel* cancel,
                             Ref<RemoteValue>* out) {
  if (memory().forked()) return check_use();
  DIST_TRY(check_method_name(function, "the name of a closure"));
  {
    // A value that cannot be sent is an error of this call, not of the closure.
    Ref<CallParts> parts;
    DIST_TRY(write_message(memory(), {}, arguments, &parts));
    if (parts->bytes() > message_bytes_) {
      return invalid_argument("the arguments of a closure have %zu bytes, but a message can have at most %zu",
                              parts->bytes(), message_bytes_);
    }
  }
  Await patience(*this, or_default(timeout_ns, timeout_ns_), cancel);
  std::unique_lock lock(mutex_);
  DIST_TRY(await(lock, patience, "waiting for a place in the queue of closures",
                 [this] { return error_.code != DIST_OK || flights_.size() < max_queued_; }));
  DIST_TRY(take_error());
  const int64_t id = queue_.next_id();
  const auto made = flights_.try_emplace(id, *this, id, function).first;
  Flight& flight = made->second;
  try {
    flight.result = make_counted<ClosureResult>(memory(), *this, id, function);
    flight.arguments = ValueRef::share(arguments);
    (void)queue_.schedule();
  } catch (...) {
    flights_.erase(made);
    throw;
  }
  flight.scheduled_ns = steady_now_ns();
  ++counts_.scheduled;
  *out = Ref<RemoteValue>::share(flight.result.get());
  lock.unlock();
  signal();
  return kOk;
}

Status Coordinator::join(int64_t timeout_ns, Cancel* cancel) {
  if (memory().forked()) return check_use();
  Await patience(*this, timeout_ns, cancel);
  std::unique_lock lock(mutex_);
  DIST_TRY(await(lock, patience, "waiting for closures", [this] { return flights_.empty(); }));
  return take_error();
}

Status Coordinator::done(bool* out) {
  if (memory().forked()) return check_use();
  const std::scoped_lock lock(mutex_);
  DIST_TRY(check_use());
  DIST_TRY(take_error());
  *out = flights_.empty();
  return kOk;
}

Status Coordinator::create_per_worker(const char* name, const char* function, Value* arguments) {
  if (memory().forked()) return check_use();
  DIST_TRY(check_name(name, "the name of a per-worker value"));
  DIST_TRY(check_method_name(function, "the name of a closure"));
  {
    Ref<CallParts> parts;
    DIST_TRY(write_message(memory(), {}, arguments, &parts));
  }
  Await patience(*this, timeout_ns_, nullptr);
  std::unique_lock lock(mutex_);
  DIST_TRY(check_use());
  for (const PerWorker& each : per_worker_) {
    if (each.failed || each.name != name) continue;
    return fail(DIST_ALREADY_EXISTS, "a per-worker value \"%s\" already exists", Shown(name).c_str());
  }
  const std::size_t number = per_worker_.size();
  PerWorker& made = per_worker_.emplace_back(memory(), name, function);
  made.arguments = ValueRef::share(arguments);
  more_per_worker_ = true;
  lock.unlock();
  signal();
  lock.lock();
  DIST_TRY(await(lock, patience, "waiting for workers to create a per-worker value", [&] {
    return std::all_of(servers_.begin(), servers_.end(), [&](const Server& each) {
      return each.ps || each.state == Server::State::kAway || each.num_prepared > number;
    });
  }));
  if (made.error.code == DIST_OK) return kOk;
  made.failed = true;
  const ErrorRecord error = made.error;
  return fail(error);
}

void Coordinator::cancel(int64_t id, const char* reason) noexcept {
  if (memory().forked()) return;
  std::pmr::vector<Ref<Counted>> trash(&memory());
  {
    const std::scoped_lock lock(mutex_);
    const auto found = flights_.find(id);
    if (found == flights_.end()) return;
    Flight& flight = found->second;
    if (!queue_.cancel(id)) {
      // It is running: the result is no longer wanted, but its effects happen.
      flight.result->settle(DIST_CANCELLED, reason);
      return;
    }
    ++counts_.cancelled;
    settle(flight, DIST_CANCELLED, reason, {});
    trash.swap(trash_);
    changed_.notify_all();
  }
}

CoordinatorNumbers Coordinator::numbers() const noexcept {
  const std::scoped_lock lock(mutex_);
  CoordinatorNumbers now = counts_;
  now.workers_up = queue_.num_up();
  now.queued = static_cast<int64_t>(queue_.num_waiting());
  now.in_flight = static_cast<int64_t>(queue_.num_in_flight());
  now.losses = queue_.num_losses();
  now.watermark = queue_.watermark();
  for (const Server& each : servers_) {
    now.bytes_sent += each.client->bytes_sent();
    now.bytes_received += each.client->bytes_received();
  }
  for (std::size_t i = 0; i < variables_.num_servers(); ++i) {
    now.bytes_sent += variables_.server(i).bytes_sent();
    now.bytes_received += variables_.server(i).bytes_received();
  }
  return now;
}

SpanTrace Coordinator::trace() const {
  SpanTrace trace(memory());
  trace.process = SpanTrace::kCoordinator;
  trace.name = "libdist coordinator";
  for (int i = 0; i < num_workers_; ++i) trace.add_row("worker %d", i);
  trace.rows.emplace_back("no worker");
  trace.spans = spans_.copy(memory());
  return trace;
}

void ClosureResult::describe(char* text, std::size_t size) const noexcept {
  std::snprintf(text, size, "closure %lld (%s)", static_cast<long long>(id_),
                Shown(function_.c_str()).c_str());
}

}  // namespace dist
