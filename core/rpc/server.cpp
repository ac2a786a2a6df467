// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/server.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "core/base/text.hpp"
#include "core/rpc/job_calls.hpp"
#include "core/rpc/message.hpp"

namespace dist {
namespace {

constexpr char kEnds[] = "the server ends";

// On whose threads this one is: of a method that ends its own server.
thread_local const RpcServer* serving = nullptr;

}  // namespace

class RpcServer::Job final : public Counted {
 public:
  Job(Memory& memory, Ref<IncomingCall> of)
      : Counted(memory), call(std::move(of)), cancel(make_counted<Cancel>(memory)) {}

  const Ref<IncomingCall> call;
  const Ref<Cancel> cancel;

 private:
  ~Job() override = default;
};

Status RpcServer::create(Memory& memory, const RpcServerOptions& options, Ref<RpcServer>* out) {
  if (options.num_threads < 0 || options.num_threads > kMostThreads) {
    return invalid_argument("num_threads is %d; use 1 to %d, or 0 for %d", options.num_threads, kMostThreads,
                            kDefaultThreads);
  }
  if (options.max_queued < 0 || options.max_queued > kMostQueued) {
    return invalid_argument("max_queued is %d; use 1 to %d, or 0 for %d", options.max_queued, kMostQueued,
                            kDefaultQueued);
  }
  HostAndPort parsed;
  if (!parse_address(options.address, 0, &parsed)) {
    return invalid_argument(
        "the server's address is %s; write host:port, or [v6]:port, with a port of 1 to 65535, or 0 for one "
        "that "
        "the system chooses",
        Shown(options.address).c_str());
  }
  *out = make_counted<RpcServer>(memory, options);
  return kOk;
}

RpcServer::RpcServer(Memory& memory, const RpcServerOptions& options)
    : Counted(memory),
      address_(options.address, &memory),
      num_threads_(
          static_cast<std::size_t>(options.num_threads == 0 ? kDefaultThreads : options.num_threads)),
      max_queued_(static_cast<std::size_t>(options.max_queued == 0 ? kDefaultQueued : options.max_queued)),
      methods_(&memory),
      threads_(&memory),
      queue_(&memory),
      running_(&memory) {}

RpcServer::~RpcServer() {
  if (memory().forked()) return;
  (void)stop("the end of a server");
  for (const auto& [name, method] : methods_) {
    if (method.end != nullptr) method.end(method.host);
  }
}

Status RpcServer::add(const char* name, const RpcMethod& method) {
  if (started_) {
    return failed_precondition("the server has been started; register methods before");
  }
  DIST_TRY(check_name(name, "the name of a method"));
  const std::string_view text(name);
  if (text.empty() || text.size() > kMostMethodBytes) {
    return invalid_argument("the name of a method has 1 to %zu bytes; this one has %zu", kMostMethodBytes,
                            text.size());
  }
  if (text.substr(0, 5) == "dist.") {
    return invalid_argument("%s: names that begin with dist. are libdist's own", Shown(name).c_str());
  }
  if (methods_.find(text) != methods_.end()) {
    return fail(DIST_ALREADY_EXISTS, "there is a method %s already", Shown(name).c_str());
  }
  methods_.emplace(text, method);
  return kOk;
}

Status RpcServer::start() {
  if (memory().forked()) return failed_precondition("this is a forked child of the server's process");
  if (started_) return failed_precondition("the server has been started before");
  // What is under way is known without memory for it.
  running_.reserve(num_threads_);
  DIST_TRY(create_job_calls(memory(), {address_.c_str(), this, {}}, &calls_));
  started_ = true;
  const std::size_t colon = address_.rfind(':');
  address_.resize(colon + 1);
  address_ += std::to_string(calls_->port());
  for (std::size_t i = 0; i < num_threads_; ++i) {
    const Status made = threads_.emplace_back().start(serve_main, this);
    if (made.ok()) {
      char name[16];
      std::snprintf(name, sizeof name, "dist-rpc-%zu", i % 1000);
      threads_.back().name(name);
      continue;
    }
    const ErrorRecord why = last_error();
    (void)stop("the start of a server");
    return fail(why);
  }
  return kOk;
}

Status RpcServer::stop(const char* call) noexcept {
  if (serving == this) {
    return failed_precondition("%s: this thread is in one of the server's methods", call);
  }
  std::pmr::deque<Ref<Job>> queued(&memory());
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    queued.swap(queue_);
    for (Job* const each : running_) each->cancel->signal(kEnds);
    come_.notify_all();
  }
  for (const Ref<Job>& each : queued) {
    each->call->answer(DIST_UNAVAILABLE, kEnds, {});
    (void)take_work(*each->call);
  }
  queued.clear();
  for (Thread& each : threads_) each.join();
  threads_.clear();
  calls_ = {};
  return kOk;
}

// ---- What comes ----

void RpcServer::called(Ref<IncomingCall> call) noexcept {
  bool ends = false;
  try {
    Ref<Job> job = make_counted<Job>(memory(), call);
    const std::scoped_lock lock(mutex_);
    ends = stopping_;
    if (!ends && queue_.size() < max_queued_) {
      queue_.push_back(job);
      // The two hold each other, until the job is over or given up.
      call->work = Ref<Counted>::adopt(job.take());
      come_.notify_one();
      return;
    }
  } catch (const std::bad_alloc&) {
    return call->answer(DIST_RESOURCE_EXHAUSTED, "the server has no memory", {});
  }
  if (ends) return call->answer(DIST_UNAVAILABLE, kEnds, {});
  call->answer(DIST_RESOURCE_EXHAUSTED, "too many calls wait for a thread of the server's", {});
}

Ref<Counted> RpcServer::take_work(IncomingCall& call) noexcept {
  const std::scoped_lock lock(mutex_);
  return std::move(call.work);
}

void RpcServer::given_up(IncomingCall& call) noexcept {
  const Ref<Counted> work = take_work(call);
  if (work) static_cast<Job&>(*work).cancel->signal("nobody waits for the result any more");
}

// ---- What is done ----

void* RpcServer::serve_main(void* self) {
  block_async_signals();
  auto& server = *static_cast<RpcServer*>(self);
  serving = &server;
  server.serve();
  return nullptr;
}

void RpcServer::serve() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    come_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const Ref<Job> job = std::move(queue_.front());
    queue_.pop_front();
    running_.push_back(job.get());
    lock.unlock();
    if (!job->cancel->signalled()) run(*job);
    (void)take_work(*job->call);
    lock.lock();
    std::erase(running_, job.get());
  }
}

void RpcServer::run(Job& job) noexcept {
  IncomingCall& call = *job.call;
  try {
    const Ref<CallMessage> request = Ref<CallMessage>::share(&call.request());
    std::string_view name;
    ValueRef arguments;
    ValueRef result;
    Status done = read_message(memory(), request, &name, &arguments);
    if (done.ok() && name == kMethods) {
      done = list(&result);
    } else if (done.ok()) {
      const auto found = methods_.find(name);
      if (found == methods_.end()) {
        done = fail(DIST_NOT_FOUND, "there is no method %s", Shown(std::string(name).c_str()).c_str());
      } else {
        const RpcContext context{found->first.c_str(), job.cancel.get(), call.timeout_ns()};
        const RpcMethod& method = found->second;
        Value* given = nullptr;
        const uint64_t before = failures_on_this_thread();
        const dist_status code = method.function(context, arguments.get(), &given, method.host);
        result = ValueRef::adopt(given);
        done = Status(code);
        const bool words = failures_on_this_thread() != before && last_error().code == code;
        if (known_status_name(code) == nullptr) {
          // Another process may know it as something else.
          const ErrorRecord own = last_error();
          done = fail(DIST_UNKNOWN, "the method failed with a code of its own, %d%s%s", code,
                      words ? ": " : "", words ? own.message : "");
        } else if (code != DIST_OK && !words) {
          done = fail(code, "the method failed with %s, and gave no reason", status_name(code));
        }
      }
    }
    if (!done.ok()) return call.answer(done.code(), last_error().message, {});
    answer(call, result.get());
  } catch (const std::bad_alloc&) {
    call.answer(DIST_RESOURCE_EXHAUSTED, "the server has no memory", {});
  }
}

void RpcServer::answer(IncomingCall& call, Value* value) noexcept {
  try {
    Ref<CallParts> parts;
    const Status written = write_message(memory(), {}, value, &parts);
    if (!written.ok()) return call.answer(written.code(), last_error().message, {});
    call.answer(DIST_OK, "", std::move(parts));
  } catch (const std::bad_alloc&) {
    call.answer(DIST_RESOURCE_EXHAUSTED, "the server has no memory", {});
  }
}

Status RpcServer::list(ValueRef* out) {
  std::pmr::vector<ValueRef> names(&memory());
  for (const auto& [name, method] : methods_) names.push_back(Value::create_text(memory(), name.c_str()));
  std::pmr::vector<Value*> plain(&memory());
  for (const ValueRef& each : names) plain.push_back(each.get());
  return Value::create(memory(), DIST_VALUE_LIST, plain, out);
}

}  // namespace dist
