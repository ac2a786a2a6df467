// SPDX-License-Identifier: Apache-2.0
#include "core/net/rpc/call_threads.hpp"

#include <algorithm>
#include <cstdio>

namespace dist {
namespace {

constexpr char kEnds[] = "the server is shutting down";

// The pool to which this thread belongs, used to detect a call that stops its own server.
thread_local struct {
  const CallThreads* of;
  int number;
} serving = {};

}  // namespace

class CallThreads::Job final : public Counted {
 public:
  Job(Memory& memory, Ref<IncomingCall> of)
      : Counted(memory), call(std::move(of)), cancel(make_counted<Cancel>(memory)) {}

  const Ref<IncomingCall> call;
  const Ref<Cancel> cancel;

 private:
  ~Job() override = default;
};

CallThreads::CallThreads(Memory& memory, Worker& worker, std::size_t max_queued)
    : memory_(memory),
      worker_(worker),
      max_queued_(max_queued),
      threads_(&memory),
      queue_(&memory),
      running_(&memory) {}

CallThreads::~CallThreads() { stop(kEnds); }

int CallThreads::here() const noexcept { return serving.of == this ? serving.number : -1; }

Status CallThreads::start(std::size_t num_threads, const char* name) {
  // Reserved here, so that starting a call allocates no memory for this list.
  running_.reserve(num_threads);
  for (std::size_t i = 0; i < num_threads; ++i) {
    const Status made = threads_.emplace_back().start(serve_main, this);
    if (made.ok()) {
      char shown[32];
      std::snprintf(shown, sizeof shown, "dist-%s-%zu", name, i % 1000);
      threads_.back().name(shown);
      continue;
    }
    const ErrorRecord why = last_error();
    stop(kEnds);
    return fail(why);
  }
  return kOk;
}

void CallThreads::stop(const char* why) noexcept {
  std::pmr::deque<Ref<Job>> queued(&memory_);
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    queued.swap(queue_);
    for (Job* const each : running_) each->cancel->signal(why);
    come_.notify_all();
  }
  for (const Ref<Job>& each : queued) {
    each->call->answer(DIST_UNAVAILABLE, why, {});
    (void)take_work(*each->call);
  }
  queued.clear();
  for (Thread& each : threads_) each.join();
  threads_.clear();
}

void CallThreads::cancel_running(const char* why) noexcept {
  const std::scoped_lock lock(mutex_);
  for (Job* const each : running_) each->cancel->signal(why);
}

// ---- Incoming calls ----

void CallThreads::add(Ref<IncomingCall> call) noexcept {
  bool ends = false;
  try {
    Ref<Job> job = make_counted<Job>(memory_, call);
    const std::scoped_lock lock(mutex_);
    ends = stopping_;
    if (!ends && queue_.size() < max_queued_) {
      queue_.push_back(job);
      // The call and its job reference each other until the job has been done or given up.
      call->work = Ref<Counted>::adopt(job.take());
      come_.notify_one();
      return;
    }
  } catch (const std::bad_alloc&) {
    return call->answer(DIST_RESOURCE_EXHAUSTED, "the server is out of memory", {});
  }
  if (ends) return call->answer(DIST_UNAVAILABLE, kEnds, {});
  call->answer(DIST_RESOURCE_EXHAUSTED, "too many calls wait for a server thread", {});
}

Ref<Counted> CallThreads::take_work(IncomingCall& call) noexcept {
  const std::scoped_lock lock(mutex_);
  return std::move(call.work);
}

void CallThreads::given_up(IncomingCall& call) noexcept {
  const Ref<Counted> work = take_work(call);
  if (work) static_cast<Job&>(*work).cancel->signal("the caller no longer waits for the result");
}

// ---- Execution ----

void* CallThreads::serve_main(void* self) {
  block_async_signals();
  auto& threads = *static_cast<CallThreads*>(self);
  serving = {&threads, threads.num_begun_.fetch_add(1, std::memory_order_relaxed)};
  threads.serve();
  return nullptr;
}

void CallThreads::serve() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    come_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const Ref<Job> job = std::move(queue_.front());
    queue_.pop_front();
    running_.push_back(job.get());
    lock.unlock();
    if (!job->cancel->signalled()) worker_.run(*job->call, *job->cancel);
    (void)take_work(*job->call);
    lock.lock();
    std::erase(running_, job.get());
  }
}

}  // namespace dist
