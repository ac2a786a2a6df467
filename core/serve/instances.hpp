// SPDX-License-Identifier: Apache-2.0
// Instances: the replicas of one strategy as workers that each take requests from a queue, between the runs
// that use all of them.
//
// The replica threads stay what they are. Between runs the pool calls serve() on them; they execute requests
// there and return when a run has been published. Each instance has a pool with one replica on that thread
// (InnerPool), and a request executes as a run of that pool. Ending a request therefore works like ending a
// run, and affects nothing else.
//
// Invariants:
// - `mutex_` protects the queue and every member that is not atomic. It is held only for short updates: never
//   while a host callback runs, and never while a thread waits.
// - An instance is used by the thread whose Stay it refers to. A thread that was abandoned (Stay::kLeft) must not
//   touch it.
// - Every accepted future is counted once when it is accepted, and twice when it completes (Endings). So close() can wait until all have been delivered.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>

#include "core/base/cancel.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/word.hpp"
#include "core/run/idle_handler.hpp"
#include "core/run/inner_pool.hpp"
#include "core/run/replica_pool.hpp"
#include "core/serve/batcher_list.hpp"
#include "core/serve/completions.hpp"
#include "core/serve/endings.hpp"
#include "core/serve/helpers.hpp"
#include "core/serve/request.hpp"
#include "core/serve/request_numbers.hpp"
#include "core/serve/request_queue.hpp"
#include "core/serve/request_supply.hpp"
#include "core/serve/short_lock.hpp"

namespace dist {

class Stuck;

class Instances final : public Counted, public IdleHandler {
 public:
  struct Options {
    bool helper_threads = false;  // also if the replicas are host threads
    std::size_t max_queued = 1024;
    int64_t spin_ns = 60'000;
    int64_t stuck_ns = 0;  // 0: never
    int32_t max_replaced = 4;
    // The host's functions, called on the thread of an instance; may be NULL.
    dist_status (*create_state)(Replica& replica, const Options& self, void** out_state) = nullptr;
    void (*destroy_state)(void* state, const Options& self) = nullptr;
    dist_status (*warm_up)(Replica& replica, const Options& self) = nullptr;
    void (*host_create)() = nullptr;
    void (*host_destroy)() = nullptr;
    void (*host_warm_up)() = nullptr;
    void* user_data = nullptr;
  };

  // The pool must outlive all use of the instances, until detach().
  Instances(Memory& memory, ReplicaPool& pool);
  ~Instances() override;

  Status open(const Options& options);
  // Opens them with the default options if nobody has.
  Status open_once(const char* call) {
    if (const Phase now = phase(); now != Phase::kNever && now != Phase::kOpening) [[likely]]
      return kOk;
    return open_first(call);
  }
  Status close(int64_t timeout_ns) noexcept;
  // Makes the calling host thread an instance until close().
  Status serve_here(GlobalReplica replica);

  // ---- For batchers ----
  BatcherList& batchers() noexcept { return batchers_; }
  const BatcherList& batchers() const noexcept { return batchers_; }
  int num_instances() const noexcept { return static_cast<int>(instances_.size()); }
  // Counts one more future that will end; fails if none is accepted now.
  Status accept(const char* call) noexcept;
  // The current time in units of the recorders.
  uint64_t stamp() const noexcept { return clock_.now(); }
  // Starts the helper threads that a submission needs. `clock`: it needs the clock thread even without a
  // deadline.
  Status need_helpers(const Submission& given, bool clock) noexcept {
    if (given.done == nullptr && (helpers_.has_clock() || (!clock && given.timeout_ns <= 0))) [[likely]]
      return kOk;
    return start_helpers(given, clock);
  }
  void deadline_changed() noexcept { helpers_.deadline_changed(); }
  // Steps are queued like requests, but are never refused.
  void enqueue_step(Request& step) noexcept;
  void raise_step(Request& step, int32_t priority) noexcept;
  // Returns false if it is not queued.
  bool withdraw_step(Request& step) noexcept;
  // Tells an instance that one of the step's items must end. Does nothing if the instance is not running this
  // step.
  void tell_step(int rank, const Request& step) noexcept;

  // *out receives the caller's reference; NULL if the caller wants none.
  Status submit(const Submission& given, Request** out);
  // Ends a request early.
  void cancel(Request& request) noexcept;

  // ---- For the strategy's end ----
  // Checks that no request, handle or host thread is left, and closes open instances.
  Status end_idle(const char* call) noexcept;
  // Ends all requests, waits for their functions until the deadline (0: no limit), and destroys the state of
  // the instances whose functions have returned. Accepts nothing from now on, and fails runs that would have
  // to wait.
  void shut_down(const char* call, int64_t deadline_ns) noexcept;
  // The pool is gone; handles of the host may still exist.
  void detach() noexcept;

  // Whether functions are still running on threads that have been replaced.
  bool has_stuck() const noexcept { return stuck_.load(std::memory_order_acquire) != 0; }
  void stop_clock() noexcept { helpers_.stop_clock(); }
  void stuck_ends() noexcept { stuck_.fetch_sub(1, std::memory_order_release); }

  // ---- For requests ----
  void recycle(Request& request) noexcept;
  // ends_one() is called just before a completion is published, one_less() after it was published and the
  // host was notified.
  void ends_one(Endings& by) noexcept { by.completed.fetch_add(1, std::memory_order_relaxed); }
  void one_less(Endings& by) noexcept {
    // seq_cst: close() first announces that it waits, and then checks.
    by.delivered.fetch_add(1, std::memory_order_seq_cst);
    if (phase_.load(std::memory_order_seq_cst) != Phase::kOpen) [[unlikely]]
      settled_.advance();
  }
  // The counts of threads other than the instances.
  Endings& elsewhere() noexcept { return elsewhere_; }
  void withdraw_cancelled(Request& request, const char* reason) noexcept;
  ReplicaPool& pool() const noexcept { return pool_; }
  // Whether instances and threads that wait for them have a CPU each; see spin_eagerly().
  bool spins_eagerly() const noexcept { return spins_eagerly_; }
  const Host& host() const noexcept { return host_; }
  // Counts completions, for callers that wait for one of several. A caller exists as AwaitsSeveral before it
  // checks whether one has completed; so either the check sees a completion, or one_ended() sees the caller.
  Word& ends() noexcept { return ends_; }
  class AwaitsSeveral {
   public:
    AwaitsSeveral(Instances& of, bool awaits) noexcept : of_(of), awaits_(awaits) {
      if (awaits_) of_.await_several_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~AwaitsSeveral() {
      if (awaits_) of_.await_several_.fetch_sub(1, std::memory_order_relaxed);
    }
    AwaitsSeveral(const AwaitsSeveral&) = delete;
    AwaitsSeveral& operator=(const AwaitsSeveral&) = delete;

   private:
    Instances& of_;
    const bool awaits_;
  };
  void one_ended() noexcept {
    if (await_several_.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      ends_.advance();
  }
  // For waiting threads: does the clock thread's work if there is no such thread. Returns the time of the
  // next deadline; 0: nothing to watch.
  int64_t help() noexcept;
  // The same, and returns how long to sleep: until that deadline, or at most until `end_ns` of the host's
  // clock (0: none). < 0: no limit.
  int64_t help_and_left(int64_t end_ns) noexcept;
  // Fails if the calling thread must not wait for a request because the request may need that thread's
  // replica.
  Status check_wait(const char* call) const noexcept;
  // FAILED_PRECONDITION on the thread that calls the host's dist_done_fn.
  Status check_teller(const char* call) const noexcept;
  void tell(Future& future) noexcept { helpers_.tell(future); }
  // Ends the queued requests whose deadline has expired. Returns the next deadline; 0: none.
  int64_t end_overdue() noexcept;
  // Replaces the threads of stuck functions that watch() has recorded (stuck.cpp), and returns when to check
  // again.
  int64_t replace_stuck() noexcept;

  // ---- Looking inside ----
  struct Counts {
    uint64_t accepted;
    uint64_t queued;
    uint64_t running;
    std::array<uint64_t, kRefusals> refused;
    std::array<uint64_t, kRequestEnds> ended;
    uint64_t replaced;
    uint64_t stuck;
  };
  Counts counts() const noexcept;
  Options options() const noexcept {
    const std::lock_guard lock(mutex_);
    return options_;
  }
  const char* phase_name() const noexcept;
  const RequestNumbers& numbers(int rank) const noexcept {
    return instances_[static_cast<std::size_t>(rank)].numbers;
  }
  int32_t name_of(int rank) const noexcept { return pool_.name_of(rank); }

  // ---- IdleHandler ----
  Status take_all(const Asking& asking) noexcept override;
  void give_back() noexcept override;
  bool ask_to_enter() noexcept override;
  void no_longer_asks() noexcept override;
  bool serve(int rank, const std::atomic<uint32_t>& started, uint32_t seen,
             const std::atomic<bool>& stopping) override;
  void wake() noexcept override;
  void refuse_all() noexcept override;
  void cancel(const char* reason) noexcept override;
  bool is_inside(int rank) const noexcept override;

 private:
  friend class Helpers;
  friend class Stuck;
  // kNever: not opened yet. kClosing: accepted requests run to completion. kEnding: the instances destroy
  // their states.
  enum class Phase : uint8_t { kNever, kOpening, kOpen, kClosing, kEnding, kClosed };

  // A thread that serves. While its call is kIn it can be abandoned: kLeft, with `stuck` owning what it must
  // clean up.
  struct Stay {
    enum : uint32_t { kOut, kIn, kLeft };
    bool left() const noexcept { return call.load(std::memory_order_acquire) == kLeft; }
    std::atomic<uint32_t> call{kOut};
    Stuck* stuck = nullptr;
    const InnerPool::Caller caller{};  // the thread itself
  };
  struct Asked;
  // The state of one instance, and the thread that serves it.
  struct alignas(kApart) Instance {
    // An idle instance looks only at these.
    Word bell;  // rung when there is something to do, once for each request that is given
    std::atomic<Request*> given{nullptr};
    alignas(kApart) Endings endings;
    InnerPool* pool = nullptr;
    int rank = 0;
    Recorder* recorder = nullptr;     // of the replica
    Request* current = nullptr;       // the request that it runs
    Stay* stay = nullptr;             // of the thread that serves here
    int64_t stuck_at = 0;             // when the current function counts as stuck; 0: never
    bool told = false;                // the function was told to end, at a time not recorded yet
    bool attended = false;            // a thread serves here
    bool awaited = false;             // a replacement thread is starting and will create its state
    std::atomic<bool> inside{false};  // a host callback is running
    bool ready = false;               // has its state
    dist_status failure = DIST_OK;    // the error of creating the state
    ErrorRecord* why = nullptr;       // its report, if there was memory
    RequestNumbers numbers;
  };
  // A request for all replicas, on the stack of the waiting thread.
  struct Asker final : RequestQueue::Entry, Cancel::Link {
    enum : uint32_t { kWaiting, kHas, kCancelled, kRefused };
    void cancelled(const char* reason) noexcept override;
    std::atomic<uint32_t> word{kWaiting};
  };
  class Attending;

  Instance& instance(int rank) noexcept { return instances_[static_cast<std::size_t>(rank)]; }
  // How an idle instance waits.
  WaitPolicy idling() const noexcept {
    WaitPolicy policy = policy_;
    policy.spin_ns = spin_ns_.load(std::memory_order_relaxed);
    return policy;
  }
  Phase phase() const noexcept { return phase_.load(std::memory_order_acquire); }
  Status check_threads(const char* call) const noexcept;
  Status check_watch() noexcept;
  bool all_out() const noexcept;
  Status check_all_out() noexcept;
  Status open_first(const char* call);
  Status open_with(const Options& options);
  Status await_ready() noexcept;
  void enter(Phase phase) noexcept;
  void end_states(int64_t deadline_ns) noexcept;
  template <class Holds>
  bool wait_until(int64_t deadline_ns, Holds&& holds) noexcept;
  std::size_t count_undelivered() const noexcept;
  std::size_t undelivered() const noexcept {
    const std::lock_guard lock(mutex_);
    return count_undelivered();
  }
  bool some_under_way() const noexcept;
  bool is_sooner(const Request& request) noexcept;
  Status refusal(const char* call) const noexcept;
  bool some_begin() const noexcept;
  void end_if_none_is_left(const ErrorRecord& why) noexcept;
  int64_t end_overdue_requests() noexcept;
  void refuse_askers() noexcept;
  Status refuse(Status why) noexcept;
  Status start_helpers(const Submission& given, bool clock) noexcept;
  // Ends a request whose function was never called.
  void end_unbegun(Request& request, const ErrorRecord& why) noexcept;
  void count_unbegun(dist_status status) noexcept {
    unbegun_[static_cast<std::size_t>(end_of(status))].fetch_add(1, std::memory_order_relaxed);
  }
  void dispatch() noexcept;
  void give(int rank, Request& request) noexcept;
  void withdraw(RequestQueue::Entry& entry) noexcept;
  void grant(RequestQueue::Entry& entry) noexcept;
  void end_queued(const ErrorRecord& why) noexcept;
  void end_all(const char* reason) noexcept;
  ErrorRecord overdue_in_queue(const Request& request) const noexcept;
  int list_inside(std::span<char> text) const noexcept;
  bool stay(Attending& here, const std::atomic<uint32_t>& started, uint32_t seen,
            const std::atomic<bool>& stopping);
  static Request* take_given(Instance& instance) noexcept {
    Request* const request = instance.given.load(std::memory_order_acquire);
    if (request == nullptr) return nullptr;
    request->prefetch();
    instance.given.store(nullptr, std::memory_order_relaxed);
    return request;
  }
  void await(Instance& instance, uint32_t rung) noexcept;
  Request* come(Instance& instance) noexcept;
  void tend(int rank);
  void make_state(int rank);
  void end_state(Instance& instance);
  Status run_alone(Instance& instance, const Body& body, const RunLimits& limits);
  void cancel_late(const Request& request, ReplicaPool& pool) noexcept;
  Request* perform(Instance& instance, Stay& stay, Request& request);
  Status run_request(Instance& instance, Stay& stay, Request& request);
  Status refuse_overdue(const Request& request) const noexcept;
  bool is_overdue(const Request& request, uint64_t now) const noexcept;
  Status run_in_full(Instance& instance, Stay& stay, Request& request);
  // Steps of batchers do not count as requests.
  static void count_end(Instance& at, const Request& request, dist_status status) noexcept {
    if (request.unlimited) return;
    const RequestEnd end = status == DIST_OK ? RequestEnd::kCompleted : end_of(status);
    at.numbers.ended[static_cast<std::size_t>(end)].add(1);
  }
  static void count_times(Instance& at, uint64_t accepted, uint64_t begun, uint64_t ended) noexcept {
    begun = std::max(begun, accepted);
    ended = std::max(ended, begun);
    at.numbers.queued.add(begun - accepted);
    at.numbers.computed.add(ended - begun);
    at.numbers.waited.add(ended - accepted);
  }
  // Must be called under the mutex: sets what an instance runs from now on; NULL: nothing.
  void occupy(Instance& at, Request* request) noexcept {
    at.current = request;
    if (options_.stuck_ns != 0) [[unlikely]]
      watch_next(at);
  }
  void watch_next(Instance& instance) noexcept;
  void watch(Instance& instance, int64_t end_ns) noexcept;
  void watch_told(Instance& instance) noexcept;
  struct Replacement;
  Status prepare(int rank, Replacement& out) noexcept;
  ErrorRecord why_stuck(int rank, Request& running) const noexcept;
  bool leave_alone(int rank, Replacement& with) noexcept;
  Status put_in_place(int rank) noexcept;
  void replace(int rank) noexcept;
  void record_left(int rank, const Request& request, dist_status status) noexcept;
  static dist_status call_request(Replica& replica, const Body& self);
  static dist_status call_make(Replica& replica, const Body& self);
  static dist_status call_end(Replica& replica, const Body& self);

  // Not owned if another thread is opening or closing the instances.
  std::unique_lock<std::mutex> lock_to_change();

  ReplicaPool& pool_;
  const Recorder& clock_;  // for timestamps
  const Host host_;
  std::mutex changing_;  // held while opening or closing
  Options options_;      // changes only while they are closed
  const WaitPolicy policy_;
  const bool spins_eagerly_;
  std::atomic<int64_t> spin_ns_{60'000};
  std::atomic<bool> has_helpers_;
  bool let_ = false;  // the pool knows this object
  std::atomic<Phase> phase_{Phase::kNever};
  std::atomic<bool> refused_{false};  // by refuse_all()

  // The lock and the changing members of the queue share a cache line, which is all that an instance and a
  // submitting thread compete for.
  alignas(kApart) mutable ShortLock mutex_;
  RequestQueue queue_;
  alignas(kApart) std::pmr::vector<Instance> instances_;
  char all_cancelled_[kReasonBytes] = "";  // reason of the latest cancel() of everything
  std::size_t out_ = 0;                    // requests that the host has references to
  int64_t planned_ns_ = 0;                 // when the clock thread looks at the queue next; 0: when told
  int64_t watched_until_ = 0;              // when the clock thread checks for stuck functions; 0: when told
  int32_t replaced_ = 0;                   // threads replaced since opening
  int64_t replaced_ever_ = 0;
  std::atomic<int> stuck_{0};  // stuck functions that are still running
  std::array<std::atomic<uint64_t>, kRefusals> refusals_{};
  std::array<std::atomic<uint64_t>, kRequestEnds> unbegun_{};  // completed before an instance started them
  std::atomic<int> askers_{0};                                 // threads in take_all()
  Asker entering_;                                             // the request of entering host threads
  BatcherList batchers_;
  Word settled_;  // counts changes that open() and close() wait for
  Word ends_;
  std::atomic<int> await_several_{0};  // callers that wait for one of several
  Helpers helpers_;
  Endings elsewhere_;
  // Only submitting threads change these.
  alignas(kApart) uint64_t accepted_ever_ = 0;  // requests; under the mutex, as the next one
  int64_t numbered_ = 0;                        // requests without an id from the host
  std::atomic<uint64_t> items_ever_{0};         // accepted items of batchers
  RequestSupply supply_;
};

}  // namespace dist
