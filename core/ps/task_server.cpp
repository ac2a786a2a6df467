// SPDX-License-Identifier: Apache-2.0
#include "core/ps/task_server.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/text.hpp"
#include "core/net/rpc/answer.hpp"
#include "core/net/rpc/job_calls.hpp"
#include "core/net/rpc/message.hpp"
#include "core/ps/numbers.hpp"

namespace dist {
namespace {

// A coordinator has at most this many closures and per-worker values at a worker.
constexpr std::size_t kMostQueued = 4096;

const char* text_of(const Value& message, std::size_t item) noexcept {
  return item < message.items().size() ? message.items()[item]->text() : nullptr;
}

}  // namespace

// The cancel object of one wait for the server's end; other waits continue. Constructed and destroyed without
// the server's lock.
class TaskServer::JoinEnd final : private Cancel::Link {
 public:
  JoinEnd(TaskServer& server, Cancel* cancel) noexcept : server_(server), scope_(cancel, *this) {}

  // Must be called under the lock.
  bool signalled() const noexcept { return signalled_ || scope_.late(); }

 private:
  void cancelled(const char*) noexcept override {
    const std::scoped_lock lock(server_.mutex_);
    signalled_ = true;
    server_.changed_.notify_all();
  }

  TaskServer& server_;
  bool signalled_ = false;
  CancelScope scope_;  // declared after the members that a signal writes, because it may arrive immediately
};

Status check_message_bytes(int64_t bytes) noexcept {
  constexpr int64_t kMost = TaskServer::kDefaultMessageBytes * 64;
  if (bytes >= 0 && bytes <= kMost) return kOk;
  return invalid_argument("`max_message_bytes` is %lld; use up to %lld, or 0 for %lld",
                          static_cast<long long>(bytes), static_cast<long long>(kMost),
                          static_cast<long long>(TaskServer::kDefaultMessageBytes));
}

constexpr char kAddress[] = "the server's address";
constexpr const char* kBindAddress = "`bind_address`"_m;

Status TaskServer::create(Memory& memory, const TaskServerOptions& options, Ref<TaskServer>* out) {
  if (options.num_threads < 0 || options.num_threads > kMostThreads) {
    return invalid_argument("`num_threads` is %d; use 1 to %d, or 0 for 1", options.num_threads,
                            kMostThreads);
  }
  DIST_TRY(check_message_bytes(options.message_bytes));
  for (const char* const each : {options.address, options.bind_address}) {
    HostAndPort parsed;
    if (each == nullptr || parse_address(each, 0, &parsed)) continue;
    return invalid_argument("%s is \"%s\", but must be %s, or 0 to let the system choose one",
                            each == options.bind_address ? kBindAddress : kAddress, Shown(each).c_str(),
                            kAddressForm);
  }
  *out = make_counted<TaskServer>(memory, options);
  return kOk;
}

TaskServer::TaskServer(Memory& memory, const TaskServerOptions& options)
    : Counted(memory),
      job_(options.job, &memory),
      index_(options.index),
      target_("grpc://", &memory),
      address_(options.address, &memory),
      bind_address_(options.bind_address != nullptr ? options.bind_address : "", &memory),
      num_threads_(static_cast<std::size_t>(options.num_threads == 0 ? 1 : options.num_threads)),
      start_timeout_ns_(options.start_timeout_ns == 0 ? kDefaultStartNs : options.start_timeout_ns),
      message_bytes_(static_cast<std::size_t>(options.message_bytes == 0 ? kDefaultMessageBytes
                                                                         : options.message_bytes)),
      closures_(&memory),
      spans_(memory),
      service_(memory, spans_),
      threads_(memory, *this, kMostQueued) {
  target_ += address_;
}

TaskServer::~TaskServer() {
  if (memory().forked()) return;
  (void)stop("the end of a server");
  for (const auto& [name, function] : closures_) {
    if (function.end != nullptr) function.end(function.host);
  }
}

// ---- Calls of the host ----

Status TaskServer::check_registration(const char* name, const char* what) const noexcept {
  if (started_)
    return failed_precondition("the server has already started. Register functions before starting it.");
  return check_method_name(name, what);
}

Status TaskServer::add_closure(const char* name, const ClosureFunction& function) {
  DIST_TRY(check_registration(name, "the name of a closure"));
  if (closures_.find(std::string_view(name)) != closures_.end()) {
    return fail(DIST_ALREADY_EXISTS, "closure %s is already registered", Shown(name).c_str());
  }
  closures_.emplace(name, function);
  return kOk;
}

Status TaskServer::add_update(const char* name, const UpdateFunction& function) {
  DIST_TRY(check_registration(name, "the name of an update function"));
  return service_.store().add_function(name, function);
}

Status TaskServer::start() {
  if (memory().forked())
    return failed_precondition(
        "this is a forked child of the server's process. Create another one in the child.");
  if (started_) return failed_precondition("the server has already been started");
  const bool given = !bind_address_.empty();
  JobCallOptions options{given ? bind_address_.c_str() : address_.c_str(),
                         given ? kBindAddress : kAddress,
                         nullptr,
                         !given,
                         this,
                         {}};
  options.limits.message_bytes = message_bytes_;
  options.limits.bytes = 4 * message_bytes_;
  options.limits.calls = kMostQueued;
  Ref<GrpcCalls> calls;
  DIST_TRY(create_job_calls(memory(), options, &calls));
  started_ = true;
  lease_ns_ = calls->lease_ns();
  const std::size_t colon = target_.rfind(':');
  if (target_.compare(colon, std::string::npos, ":0") == 0) {
    target_.resize(colon + 1);
    target_ += std::to_string(calls->port());
  }
  {
    const std::scoped_lock lock(mutex_);
    alone_since_ns_ = steady_now_ns();
    calls_ = std::move(calls);
  }
  const Status made = threads_.start(num_threads_, "closure");
  if (made.ok()) return kOk;
  const ErrorRecord why = last_error();
  calls_ = {};
  return fail(why);
}

Status TaskServer::join(int64_t timeout_ns, Cancel* cancel) {
  if (memory().forked())
    return failed_precondition(
        "this is a forked child of the server's process. Create another one in the child.");
  if (!started_) return failed_precondition("the server has not been started");
  DIST_TRY(check_outside("dist_server_join"));
  const int64_t begin = steady_now_ns();
  const int64_t until = timeout_ns < 0 || timeout_ns > INT64_MAX - begin ? INT64_MAX : begin + timeout_ns;
  const JoinEnd early(*this, cancel);
  std::unique_lock lock(mutex_);
  for (;;) {
    const int64_t now = steady_now_ns();
    int64_t next = until;
    if (end_ == End::kNot && !watch_) {
      const int64_t patience = epoch_ != 0 ? lease_ns_ : start_timeout_ns_;
      const int64_t lost = patience < 0 ? INT64_MAX : alone_since_ns_ + patience;
      if (now >= lost && epoch_ != 0) end_ = End::kLost;
      if (now >= lost && epoch_ == 0) {
        return fail(DIST_DEADLINE_EXCEEDED, "no coordinator connected to %s within %s", target_.c_str(),
                    DurationText(patience).text);
      }
      next = std::min(next, lost);
    }
    if (end_ == End::kSaid) return kOk;
    if (end_ == End::kLost) {
      return fail(DIST_UNAVAILABLE, "the coordinator of %s is lost: no heartbeat for %s", target_.c_str(),
                  DurationText(lease_ns_).text);
    }
    if (early.signalled()) return fail(DIST_CANCELLED, "%s", cancel->reason());
    if (now >= until)
      return fail(DIST_DEADLINE_EXCEEDED, "%s has not finished yet. It continues to run.", target_.c_str());
    if (next == INT64_MAX) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, std::chrono::nanoseconds(next - now));
    }
  }
}

SpanTrace TaskServer::trace() {
  SpanTrace trace(memory());
  {
    const std::scoped_lock lock(mutex_);
    trace.process = part_;
  }
  char label[48] = "libdist server";
  if (trace.process >= SpanTrace::kFirstWorker && trace.process < SpanTrace::kNobody) {
    std::snprintf(label, sizeof label, "libdist worker %d",
                  static_cast<int>(trace.process - SpanTrace::kFirstWorker));
    for (std::size_t i = 0; i < num_threads_; ++i) trace.add_row("closures %d", static_cast<int>(i));
  } else if (trace.process != SpanTrace::kNobody) {
    std::snprintf(label, sizeof label, "libdist ps %d",
                  static_cast<int>(trace.process - SpanTrace::kFirstPs));
    trace.rows.emplace_back("calls");
  }
  trace.name = label;
  trace.spans = spans_.copy(memory());
  return trace;
}

void TaskServer::end() noexcept {
  const std::scoped_lock lock(mutex_);
  if (end_ == End::kNot) end_ = End::kSaid;
  changed_.notify_all();
}

Status TaskServer::check_outside(const char* call) noexcept {
  if (!threads_.inside() && !service_.store().inside_function()) return kOk;
  return failed_precondition("`%s()`: this `thread` is in one of the server's %s", call,
                             threads_.inside() ? "closures" : "update functions");
}

Status TaskServer::stop(const char* call) noexcept {
  DIST_TRY(check_outside(call));
  end();
  threads_.stop("the server is shutting down");
  Ref<IncomingCall> watch;
  Ref<WorkerJob> work;
  {
    const std::scoped_lock lock(mutex_);
    watch = std::move(watch_);
    work = std::move(work_);
  }
  if (watch) watch->answer(DIST_UNAVAILABLE, "the server is shutting down", {});
  watch = {};
  calls_ = {};
  return kOk;
}

// ---- Incoming calls, on network threads ----

void TaskServer::called(Ref<IncomingCall> call) noexcept {
  std::string_view method;
  const Ref<CallMessage> request = Ref<CallMessage>::share(&call->request());
  const Status read = read_method(request, &method);
  if (!read.ok()) return answer_failure(*call, read);
  if (method.starts_with(kPsPrefix)) return service_.called(std::move(call));
  if (method == "dist.closure" || method == "dist.per_worker") return threads_.add(std::move(call));
  try {
    const Status done = manage(method, *call);
    if (!done.ok()) return answer_failure(*call, done);
    if (method != "dist.watch") answer_with(*call, nullptr);
  } catch (const std::bad_alloc&) {
    call->answer(DIST_RESOURCE_EXHAUSTED, "the server is out of memory", {});
  }
}

void TaskServer::given_up(IncomingCall& call) noexcept {
  threads_.given_up(call);
  Ref<IncomingCall> gone;
  const std::scoped_lock lock(mutex_);
  if (watch_.get() != &call) return;
  gone = std::move(watch_);
  alone_since_ns_ = steady_now_ns();
  changed_.notify_all();
}

Status TaskServer::manage(std::string_view method, IncomingCall& call) {
  const Ref<CallMessage> request = Ref<CallMessage>::share(&call.request());
  std::string_view name;
  ValueRef message;
  DIST_TRY(read_message(memory(), request, &name, &message));
  const std::size_t rest = method == "dist.hello" ? 2 : 0;
  std::span<const int64_t> numbers;
  DIST_TRY(read_numbers(message.get(), 1, rest, &numbers));
  if (method == "dist.hello") return hello(numbers, *message);
  DIST_TRY(check_epoch(numbers[0]));
  if (method == "dist.watch") {
    const std::scoped_lock lock(mutex_);
    watch_ = Ref<IncomingCall>::share(&call);
    changed_.notify_all();
    return kOk;
  }
  if (method == "dist.cancel")
    return threads_.cancel_running("the coordinator cancelled the running closures"), kOk;
  if (method == "dist.end") return end(), kOk;
  return fail(DIST_NOT_FOUND, "the server has no method %s", Shown(std::string(method).c_str()).c_str());
}

Status TaskServer::check_epoch(int64_t epoch) noexcept {
  const std::scoped_lock lock(mutex_);
  if (epoch == epoch_) return kOk;
  return failed_precondition("the call and this server belong to different coordinators");
}

Status TaskServer::hello(std::span<const int64_t> numbers, const Value& message) {
  const char* const job = text_of(message, 1);
  const Value& addresses = *message.items()[2];
  if (numbers.size() != 2 || numbers[0] == 0 || numbers[1] < 0 || numbers[1] > INT32_MAX || job == nullptr ||
      !addresses.is_sequence()) {
    return invalid_argument("an invalid message from a coordinator");
  }
  const std::string_view part(job);
  if (job_ != kLocalJob && (part != job_.c_str() || numbers[1] != index_)) {
    return failed_precondition(
        "this is /job:%s/task:%d, but the coordinator's cluster has /job:%s/task:%lld at this address",
        job_.c_str(), index_, Shown(job).c_str(), static_cast<long long>(numbers[1]));
  }
  Ref<WorkerJob> work;
  Ref<GrpcCalls> calls;
  {
    const std::scoped_lock lock(mutex_);
    calls = calls_;
  }
  if (!calls) return fail(DIST_UNAVAILABLE, "the server is starting");
  if (part == kWorkerJob) {
    work = make_counted<WorkerJob>(memory(), numbers[0], static_cast<int32_t>(numbers[1]));
    for (const ValueRef& each : addresses.items()) {
      HostAndPort parsed;
      if (each->text() == nullptr || !parse_address(each->text(), 1, &parsed)) {
        return invalid_argument("the address of a parameter server is invalid");
      }
      DIST_TRY(work->variables.add_server(calls, each->text()));
    }
  }
  {
    const std::scoped_lock lock(mutex_);
    if (end_ != End::kNot) {
      return fail(DIST_ABORTED,
                  "this server has ended with its coordinator. Start a new server for another one.");
    }
    if (watch_ && epoch_ != numbers[0]) {
      // A coordinator that is silent may be gone, and its successor may try again.
      const int64_t silent_ns = watch_->silent_ns();
      if (silent_ns < lease_ns_ / 2)
        return fail(DIST_ALREADY_EXISTS, "this server already belongs to another coordinator");
      return fail(DIST_UNAVAILABLE,
                  "this server belongs to another coordinator, which has been silent for %s",
                  DurationText(silent_ns).text);
    }
    // A parameter server that its coordinator has lost would start again without variables. One that has no
    // variables yet may receive the greeting again, because the first answer may have been lost with its
    // connection.
    if (part != kWorkerJob && epoch_ == numbers[0] && service_.used()) {
      return failed_precondition("the coordinator considers this parameter server lost");
    }
    epoch_ = numbers[0];
    part_ = numbers[1] + (part == kPsJob ? SpanTrace::kFirstPs : SpanTrace::kFirstWorker);
    alone_since_ns_ = steady_now_ns();
    std::swap(work_, work);
    changed_.notify_all();
  }
  threads_.cancel_running("the coordinator had lost this worker and has connected to it again");
  if (part == kPsJob) service_.begin_epoch(numbers[0]);
  return kOk;
}

// ---- Closures, on threads of their own ----

void TaskServer::run(IncomingCall& call, Cancel& cancel) noexcept {
  try {
    Ref<CallParts> parts;
    const Status done = run_closure(call, cancel, &parts);
    if (!done.ok()) return answer_failure(call, done);
    call.answer(DIST_OK, "", std::move(parts));
  } catch (const std::bad_alloc&) {
    call.answer(DIST_RESOURCE_EXHAUSTED, "the worker is out of memory", {});
  }
}

// Errors of the function itself are part of the answer. A failing status means that the worker counts as
// lost.
Status TaskServer::run_closure(IncomingCall& call, Cancel& cancel, Ref<CallParts>* out) {
  const Ref<CallMessage> request = Ref<CallMessage>::share(&call.request());
  std::string_view method;
  ValueRef message;
  DIST_TRY(read_message(memory(), request, &method, &message));
  const bool stays = method == "dist.per_worker";
  const std::size_t first = stays ? 2 : 1;  // position of the function's name
  std::span<const int64_t> numbers;
  DIST_TRY(read_numbers(message.get(), 3, first + 2, &numbers));
  Ref<WorkerJob> job;
  {
    const std::scoped_lock lock(mutex_);
    job = work_;
    if (!job || job->epoch != numbers[0])
      return fail(DIST_UNAVAILABLE, "the worker does not belong to the job of the coordinator yet");
  }
  const Value& entries = *message->items()[first + 2];
  if (!entries.is_none())
    DIST_TRY(job->directory.read(entries, static_cast<int32_t>(job->variables.num_servers())));
  const char* const name = text_of(*message, first);
  if (name == nullptr || (stays && text_of(*message, 1) == nullptr))
    return invalid_argument("a closure without a name");

  // A per-worker value has no number among the coordinator's closures.
  const int64_t id = stays ? Span::kNoId : numbers[1];
  Span span{.category = "closure", .id = id, .row = threads_.here(), .begin_ns = steady_now_ns()};
  span.set_name(name);
  Closure closure(*job, id, name, cancel, !stays, spans_, span.row);
  ValueRef result;
  Status done = kOk;
  if (const auto found = closures_.find(std::string_view(name)); found != closures_.end()) {
    const ClosureFunction& function = found->second;
    Value* given = nullptr;
    const uint64_t before = failures_on_this_thread();
    const dist_status code =
        function.function(closure, message->items()[first + 1].get(), &given, function.host);
    result = ValueRef::adopt(given);
    done = sendable(code, before, "the closure");
  } else {
    done = fail(DIST_NOT_FOUND, "worker %d has no closure %s. Register it before the server starts.",
                job->worker, Shown(name).c_str());
  }
  if (done.ok() && stays) {
    job->keep(text_of(*message, 1), result ? std::move(result) : Value::create_none(memory()));
    result = {};
  }
  const auto write = [&](const Status& status) {
    const ValueRef text = Value::create_text(memory(), status.ok() ? "" : last_error().message);
    ValueRef answer;
    DIST_TRY(make_message(memory(),
                          {status.code(), closure.lost_server(), static_cast<int64_t>(job->directory.size())},
                          {text.get(), status.ok() ? result.get() : nullptr}, &answer));
    return write_message(memory(), {}, answer.get(), out);
  };
  // A result that cannot be sent is an error before anything changes.
  Status written = done.ok() ? write(done) : kOk;
  if (!written.ok()) done = written;
  if (cancel.signalled()) {
    const std::scoped_lock lock(mutex_);
    // Another worker may run the closure that the end of this server has interrupted.
    if (end_ != End::kNot) return fail(DIST_UNAVAILABLE, "%s", cancel.reason());
    done = fail(DIST_CANCELLED, "%s", cancel.reason());
  }
  if (done.ok() && !stays) done = closure.commit(numbers[2]);
  done = spans_.end(&span, done);
  return done.ok() ? kOk : write(done);
}

}  // namespace dist
