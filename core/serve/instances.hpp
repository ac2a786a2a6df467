// SPDX-License-Identifier: Apache-2.0
// Instances: the replicas of one strategy, each of which runs requests alone, between the runs that have all of them.
//
// A replica's thread stays what it is: between runs it comes here (serve()), takes requests, and goes when a run has been
// published. Each instance has a pool of one replica on that thread, in whose runs its requests are, so that what ends
// a run ends a request too, and nothing but that.
//
// The mutex is that of the queue and of all that is not atomic here. It is held for some loads and stores, never
// while a function of the host's is called or a thread waits.
#pragma once

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
#include "core/run/inner_pool.hpp"
#include "core/run/replica_pool.hpp"
#include "core/run/tenant.hpp"
#include "core/serve/completions.hpp"
#include "core/serve/helpers.hpp"
#include "core/serve/request.hpp"
#include "core/serve/request_numbers.hpp"
#include "core/serve/request_queue.hpp"

namespace dist {

class Batcher;
class Item;
class Stuck;

class Instances final : public Counted, public Tenant {
 public:
  struct Options {
    bool helper_threads = false;  // also where replicas are the host's threads
    std::size_t max_queued = 1024;
    int64_t spin_ns = 60'000;
    int64_t stuck_ns = 0;  // 0: never
    int32_t max_replaced = 4;
    // The host's functions, on an instance's thread; NULL: none.
    dist_status (*create_state)(Replica& replica, const Options& self, void** out_state) = nullptr;
    void (*destroy_state)(void* state, const Options& self) = nullptr;
    dist_status (*warm_up)(Replica& replica, const Options& self) = nullptr;
    void (*host_create)() = nullptr;
    void (*host_destroy)() = nullptr;
    void (*host_warm_up)() = nullptr;
    void* user_data = nullptr;
  };

  // The pool outlives what it is used for: detach().
  Instances(Memory& memory, ReplicaPool& pool);
  ~Instances() override;

  Status open(const Options& options);
  // Where it is not open yet: with the default options.
  Status open_once(const char* call);
  Status close(int64_t timeout_ns) noexcept;
  // The calling thread, one of the host's, is an instance until they close.
  Status serve_here(GlobalReplica replica);

  // ---- For batchers ----
  void add(Batcher& batcher) noexcept;
  void remove(Batcher& batcher) noexcept;
  int num_instances() const noexcept { return static_cast<int>(seats_.size()); }
  // One more that is to end; or why not.
  Status accept(const char* call) noexcept;
  // A moment, as the recorders have it.
  uint64_t stamp() const noexcept { return clock_.now(); }
  // What a submission needs of the helpers; `clock`: that of deadlines, whether it has one or not.
  Status need_helpers(const Submission& given, bool clock) noexcept;
  void deadline_changed() noexcept { helpers_.deadline_changed(); }
  // Steps stand in line, and are never refused.
  void enqueue_step(Request& step) noexcept;
  void raise_step(Request& step, int32_t priority) noexcept;
  // False: it does not stand there.
  bool withdraw_step(Request& step) noexcept;
  // One of its items is to end; nothing where the instance does not run it.
  void tell_step(int rank, const Request& step) noexcept;

  // *out has one use, the caller's; NULL: it wants none.
  Status submit(const Submission& given, Request** out);
  // Ends a request early.
  void cancel(Request& request) noexcept;

  // ---- For the strategy's end ----
  // OK where nothing of it is left: no request, no handle, no thread of the host's. It closes what is open.
  Status end_idle(const char* call) noexcept;
  // Ends all requests, waits for their functions until the deadline (0: for ever), and ends the state of the instances
  // that are out of them. Nothing is accepted any more, and no run that would wait begins.
  void shut_down(const char* call, int64_t deadline_ns) noexcept;
  // The pool is gone; handles of the host's may be left.
  void detach() noexcept;

  // Whether functions are inside whose replicas have got other threads.
  bool has_stuck() const noexcept { return stuck_.load(std::memory_order_acquire) != 0; }
  void stop_clock() noexcept { helpers_.stop_clock(); }
  void stuck_ends() noexcept { stuck_.fetch_sub(1, std::memory_order_release); }

  // ---- For requests ----
  void recycle(Request& request) noexcept;
  // It is about to be said that one has ended, and one is over for whoever ended it and has told the host.
  void ends_one() noexcept { under_way_.fetch_sub(1, std::memory_order_relaxed); }
  void one_less() noexcept;
  void withdraw_cancelled(Request& request, const char* reason) noexcept;
  ReplicaPool& pool() const noexcept { return pool_; }
  int64_t timeout_of_waits() const noexcept { return timeout_ns_; }
  const Host& host() const noexcept { return host_; }
  // How often a request has ended, for those who wait for one of several.
  Word& ends() noexcept { return ends_; }
  // For waiting threads: does what the clock's thread would, where there is none. When the next deadline is; 0: others see
  // to it.
  int64_t help() noexcept;
  // The same, and how long to sleep then: until that, and at most until `end_ns` of the host's clock (0: none). < 0: no limit.
  int64_t help_and_left(int64_t end_ns) noexcept;
  // Whether the calling thread may wait for a request: in a replica's function it would hold up what it waits for.
  Status check_wait(const char* call) const noexcept;
  // FAILED_PRECONDITION on the thread that calls the host's dist_done_fn.
  Status check_teller(const char* call) const noexcept;
  void tell(Promise& promise) noexcept { helpers_.tell(promise); }
  // Ends the queued requests whose deadline is over, and says when that of the next one is; 0: there is none.
  int64_t end_overdue() noexcept;
  // The same of functions that are stuck, where watch() has been told of them (stuck.cpp).
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
  // They stand by their numbers; none: there are not as many.
  Ref<Batcher> batcher(std::size_t which) const noexcept;
  Options options() const noexcept {
    const std::lock_guard lock(mutex_);
    return options_;
  }
  const char* phase_name() const noexcept;
  const RequestNumbers& numbers(int rank) const noexcept {
    return seats_[static_cast<std::size_t>(rank)].numbers;
  }
  int32_t name_of(int rank) const noexcept { return pool_.name_of(rank); }

  // ---- Tenant ----
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
  // kNever: nobody has opened them. kClosing: what was accepted ends. kEnding: the instances end their states.
  enum class Phase : uint8_t { kNever, kOpening, kOpen, kClosing, kEnding, kClosed };

  // A thread that serves. While its call is kIn it may be left alone: kLeft, with what it has to end then.
  struct Stay {
    enum : uint32_t { kOut, kIn, kLeft };
    bool left() const noexcept { return call.load(std::memory_order_acquire) == kLeft; }
    std::atomic<uint32_t> call{kOut};
    Stuck* stuck = nullptr;
  };
  struct Asked;
  struct alignas(kApart) Seat {
    Word bell;  // rung when there is something new for the instance
    std::atomic<Request*> given{nullptr};
    InnerPool* pool = nullptr;
    Request* current = nullptr;       // that it runs
    Stay* stay = nullptr;             // of the thread that serves
    int64_t stuck_at = 0;             // when what it runs is stuck; 0: never
    bool told = false;                // it has been told to end, at a moment that is not known yet
    bool attended = false;            // a thread serves here
    bool awaited = false;             // one that replaces another has yet to come, and see to its state
    std::atomic<bool> inside{false};  // a function of the host's is under way
    bool ready = false;               // it has its state
    dist_status failure = DIST_OK;    // of making it
    ErrorRecord* why = nullptr;       // where there was memory for it
    RequestNumbers numbers;
  };
  // One who wants all replicas, on the stack of the thread that waits.
  struct Asker final : RequestQueue::Entry, Cancel::Link {
    enum : uint32_t { kWaiting, kHas, kCancelled, kRefused };
    void cancelled(const char* reason) noexcept override;
    std::atomic<uint32_t> word{kWaiting};
  };
  class Attending;

  Seat& seat(int rank) noexcept { return seats_[static_cast<std::size_t>(rank)]; }
  // How an instance waits.
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
  Status open_with(const Options& options);
  Status await_ready() noexcept;
  void enter(Phase phase) noexcept;
  void end_states(int64_t deadline_ns) noexcept;
  template <class Holds>
  bool wait_until(int64_t deadline_ns, Holds&& holds) noexcept;
  Status acquire(Request** out);
  Status refusal(const char* call) const noexcept;
  bool some_begin() const noexcept;
  void end_if_none_is_left(const ErrorRecord& why) noexcept;
  int64_t end_overdue_requests() noexcept;
  void refuse_askers() noexcept;
  Status try_submit(const Submission& given, Request** out);
  // It has ended before its function was called.
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
  void end_items(const ErrorRecord& why) noexcept;
  ErrorRecord overdue_in_queue(const Request& request) const noexcept;
  int list_inside(std::span<char> text) const noexcept;
  bool stay(Attending& here, const std::atomic<uint32_t>& started, uint32_t seen,
            const std::atomic<bool>& stopping);
  template <class News>
  void await(Word& bell, uint32_t rung, News&& news) noexcept;
  Request* come(int rank) noexcept;
  void tend(int rank);
  void make_state(int rank);
  void end_state(Seat& seat);
  Status run_alone(Seat& seat, const Body& body, const RunLimits& limits);
  void cancel_late(const Request& request, ReplicaPool& pool) noexcept;
  Request* perform(Seat& seat, Stay& stay, Request& request);
  Status run_request(Seat& seat, Stay& stay, Request& request);
  void count_end(Seat& seat, const Request& request, dist_status status) noexcept;
  void count_times(Seat& seat, uint64_t accepted, uint64_t begun) noexcept;
  void occupy(Seat& seat, Request* request) noexcept;
  void watch(Seat& seat, int64_t end_ns) noexcept;
  void watch_told(Seat& seat) noexcept;
  struct Replacement;
  Status prepare(int rank, Replacement& out) noexcept;
  ErrorRecord why_stuck(int rank, Request& running) const noexcept;
  bool leave_alone(int rank, Replacement& with) noexcept;
  Item* leave_items_alone(int rank, Request& running) noexcept;
  Status put_in_place(int rank) noexcept;
  void replace(int rank) noexcept;
  void record_left(int rank, const Request& request, dist_status status) noexcept;
  static dist_status call_request(Replica& replica, const Body& self);
  static dist_status call_make(Replica& replica, const Body& self);
  static dist_status call_end(Replica& replica, const Body& self);

  ReplicaPool& pool_;
  const Recorder& clock_;  // for stamps
  const Host host_;
  const int64_t timeout_ns_;
  std::mutex changing_;  // held by who opens or closes
  Options options_;      // written while they are closed
  const WaitPolicy policy_;
  std::atomic<int64_t> spin_ns_{60'000};
  std::atomic<bool> has_helpers_;
  bool let_ = false;  // the pool knows of this
  std::atomic<Phase> phase_{Phase::kNever};
  std::atomic<bool> refused_{false};  // by refuse_all()

  mutable std::mutex mutex_;
  RequestQueue queue_;
  std::pmr::vector<Seat> seats_;
  Promise* spare_ = nullptr;               // requests that serve again
  char all_cancelled_[kReasonBytes] = "";  // by the latest cancel() of all
  std::size_t out_ = 0;                    // requests that somebody has a use of
  uint64_t accepted_ever_ = 0;
  int64_t numbered_ = 0;       // requests without an id of the host's
  int64_t watched_until_ = 0;  // when the clock's thread looks for stuck functions; 0: when it is told
  int32_t replaced_ = 0;       // threads, since they were opened
  int64_t replaced_ever_ = 0;
  std::atomic<int> stuck_{0};  // functions that are still inside
  std::array<std::atomic<uint64_t>, kRefusals> refusals_{};
  std::array<std::atomic<uint64_t>, kRequestEnds> unbegun_{};  // ended so before an instance began them
  std::atomic<std::size_t> under_way_{0};                      // of these, that have not ended,
  std::atomic<std::size_t> accepted_{0};                       // or whose end has not been told
  std::atomic<int> askers_{0};                                 // threads in take_all()
  Asker entering_;                                             // of the host's threads
  mutable std::mutex batchers_mutex_;
  Batcher* batchers_ = nullptr;
  Word settled_;  // how often something has changed that open() and close() wait for
  Word ends_;
  Helpers helpers_;
};

}  // namespace dist
