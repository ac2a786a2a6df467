// SPDX-License-Identifier: Apache-2.0
// WorkerCommunicator: the rounds of a group whose members belong to several workers (processes).
//
// Each worker has a Group for its own members. A collective over several workers is one round of each of
// these groups. Within it the workers meet; the leader (the member of rank 0) does so on behalf of its
// worker.
//
//     member          leader
//     arrive, enter   arrive, enter    all members of this worker agree
//                     meet             all workers agree
//                     move             what the other workers' members bring is copied here
//     await_release   release
//     step            step, pass       as often as needed: all members see what each one has done, and
//                                      tensors are exchanged between workers
//     finish          finish
//
// Invariant: everything that is sent and received lies in memory of the communicator, or in tensors of the
// leader (core/collective/worker_pieces.hpp). So a member that gives up never waits for the network, only
// until the leader has cancelled the transfers in flight. Only the leader checks the deadline; the other
// members wait for the leader.
//
// Messages contain the number of the collective, which all workers count identically. Failures travel in
// notices, for which each worker always has a receive posted:
//
//     leave     the worker's function has ended after this many collectives, so a later collective fails. It
//               can be received until the end of the next run, which may need to know how this run has ended
//     report    worker 0's report on why a collective has failed, for all workers
//
// Worker 0 is the reporter. A worker that detects a failure waits up to kReportGraceNs for the reporter's
// report, then writes its own and says so; in that case the workers' texts may differ. A worker that has
// received a report includes it in its leave notice, so that its peers learn it too. A worker whose own
// members fail uses its group's report.
//
// When a collective has failed, the run has failed, as in a group. The next run starts with begin_run() on
// all workers.
//
// A *part* is the communicator of a group of some replicas; the communicator of all replicas is its whole. A
// part joins in the whole's runs and costs nothing in a run that does not use it: it starts to listen with
// its first collective, and sends leave notices only if it has met. The whole's notice lists the parts that
// have met; for the others, it replaces the part's notice.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/group.hpp"
#include "core/comm/standstill.hpp"
#include "core/comm/worker_messages.hpp"
#include "core/comm/worker_round.hpp"
#include "core/net/transport.hpp"
#include "core/trace/attendance.hpp"

namespace dist {

// Work that continues beside the blocking collectives. A thread that waits calls advance(), so it needs no
// thread of its own.
class BackgroundWork {
 public:
  // Does not wait.
  virtual void advance() noexcept = 0;
  // Called on any thread when something has happened that advance() may need to handle. It must not call a
  // transport.
  virtual void wake() noexcept = 0;

 protected:
  ~BackgroundWork() = default;
};

class WorkerCommunicator final : public TransportListener {
 public:
  static constexpr int64_t kReportGraceNs = 1'000'000'000;
  static constexpr std::size_t kDefaultStagingBytes = std::size_t{64} << 20;
  // Streams: WorkerRound::kBlocking is that of the blocking collectives. The asynchronous ones share the next
  // one, and each part of each plan has one of its own.
  static constexpr uint32_t kAsynchronous = WorkerRound::kBlocking + 1;
  static constexpr uint32_t kFirstPlanned = kAsynchronous + 1;

  struct Options {
    std::span<const int> members;  // number of members of each worker; the group contains this worker's
    int64_t timeout_ns = 0;        // the group's timeout; 0: none
    // Limit for tensor bytes in flight to or from this worker; larger tensors are sent in pieces. The
    // smallest limit of all workers applies. The effective minimum is one unit per member and worker.
    std::size_t most_bytes = kDefaultStagingBytes;
    BackgroundWork* background = nullptr;  // must outlive the communicator; NULL: none
    // The numbers by which programs know the workers; empty: 0, 1, ... A part uses its whole's.
    std::span<const int> names = {};
    // Only for a part; otherwise NULL and empty: its whole, which must outlive it; the whole's workers that
    // take part, in ascending order; and the numbers of the members among all replicas.
    WorkerCommunicator* whole = nullptr;
    std::span<const int> workers = {};
    std::span<const int32_t> replicas = {};
  };

  // `group` and `transport` must outlive it. It becomes the transport's listener. Throws std::bad_alloc.
  WorkerCommunicator(Memory& memory, Transport& transport, Group& group, const Host& host,
                     const Options& options);
  ~WorkerCommunicator();
  WorkerCommunicator(const WorkerCommunicator&) = delete;
  WorkerCommunicator& operator=(const WorkerCommunicator&) = delete;

  WorkerMembers members() const noexcept { return {firsts_, me_}; }
  int num_workers() const noexcept { return members().num_workers(); }
  int me() const noexcept { return me_; }
  int num_members() const noexcept { return members().num_members(); }
  // The rank of this worker's first member.
  int first() const noexcept { return members().first(); }
  // The numbers by which programs know a worker, and a member.
  int named(int worker) const noexcept {
    return names_.empty() || worker < 0 ? worker : names_[static_cast<std::size_t>(worker)];
  }
  int replica_of(int rank) const noexcept {
    return replicas_.empty() ? rank : replicas_[static_cast<std::size_t>(rank)];
  }
  const Host& host() const noexcept { return host_; }
  // Each member records its arrival here before it arrives. Once the workers have met, this knows which one
  // was last.
  Attendance& attendance() noexcept { return attendance_; }
  // This worker's limit; see Options::most_bytes.
  std::size_t own_staging_bytes() const noexcept { return most_bytes_; }

  // Call this before a run, after the group's begin_run() and the whole's, with no member inside.
  void begin_run() noexcept;
  // Call this when all members have left their functions. Notifies the peers, which may be waiting for this
  // worker. If `returned` is not OK, `failure` is the reason. For a part, any thread may call this, and only
  // the first call has an effect. `collectives_failed`: a collective failed in this worker, in any group.
  // `announced`: bits that this worker announces to all others at the end of this run.
  void leave(Status returned, const ErrorRecord& failure, bool collectives_failed = false,
             uint32_t announced = 0) noexcept;
  // Call this between runs. Waits until worker 0 has reported the end of the latest run, and returns the bits
  // that it announced there; 0 if there was no run yet. Fails with UNAVAILABLE if worker 0 is lost, and with
  // CANCELLED once `cancelled` is true, which any thread may set.
  Status hear_leader(const std::atomic<bool>& cancelled, uint32_t* out_announced) noexcept;
  // Call this between runs, on any worker. Returns the bits that the others announced at the ends of this run
  // and the previous one, as far as they have arrived.
  uint32_t announced_by_others() noexcept;
  // Whether a collective of the group has failed in this run.
  bool failed() const noexcept { return group_.aborted(); }
  // For a part: whether it takes part in this run. If so, it must leave, and other workers may wait for that.
  bool joined() const noexcept { return joined_.load(std::memory_order_acquire); }
  // For a whole, before it leaves: returns, as bits, the parts that its notice will list. Each of them leaves
  // before the whole does.
  uint64_t close_parts() noexcept { return closed_parts_ = parts_.load(std::memory_order_acquire); }
  bool is_in(uint64_t parts) const noexcept { return (parts & part_bit()) != 0; }

  // The messages of the blocking collectives. A member writes its payload before it arrives.
  WorkerRound& round() noexcept { return *round_; }

  // Called by the leader when all members of this worker have arrived: meets the other workers and moves the
  // payloads. If it fails, the group is aborted. timeout_ns is as in Group::arrive() and counts from
  // start_ns, or from now.
  Status meet_and_move(const Signature& signature, int64_t timeout_ns, int64_t start_ns) noexcept;
  Status meet_and_move(const Signature& signature, int64_t timeout_ns) noexcept {
    return meet_and_move(signature, timeout_ns, host_.now_ns());
  }

  // ---- From meet_and_move() to the end of the collective ----

  // release() is called by the leader and lets the other members continue; await_release() is called by each
  // of them before its first step. Both return false if the group is aborted; then call finish(). Only
  // the leader makes this decision, so no member waits for one that has gone.
  bool release() noexcept;
  bool await_release(int member) noexcept;
  // Called by all members: when all have arrived, the leader calls carry(), and then all continue. Returns
  // false as release() does. A leader that gives up between steps releases the others once more.
  template <class Carry>
  bool step(int member, Carry&& carry) noexcept {
    if (member != 0) {
      count_in();
      return await_release(member);
    }
    if (await_members().ok()) (void)carry();
    return release();
  }
  // Inside carry(): provides room for tensors; its previous content is lost.
  Status reserve(std::size_t bytes) noexcept;
  // Inside carry(): sends to each worker and receives from each; passages[me()] is not used.
  Status pass(std::span<const Passage> passages) noexcept;
  // Inside the last carry(): this worker has sent everything that the others need.
  void complete_collective() noexcept { completed_.store(number_, std::memory_order_relaxed); }

  // ---- For non-blocking rounds, in streams other than that of the blocking collectives ----

  // Returns in how many earlier runs a collective has failed on any worker; all workers get the same number.
  // A member of `group` waits until all workers have left the previous run.
  Status hear_of_run_before(Group& group, uint64_t* out_failed) noexcept;
  Transport& transport() noexcept { return transport_; }
  // Begins such a round. In each run, the numbers of a stream count from 1.
  void begin(WorkerRound& round, uint32_t stream, uint64_t number, const Signature& signature,
             std::size_t most_bytes) noexcept;
  // The first stream that no round has used on this worker, so that the workers can agree on new ones; only
  // the leader calls these two. take_streams() reserves them.
  uint32_t next_stream() const noexcept { return next_stream_; }
  Status take_streams(uint64_t first, std::size_t count) noexcept;
  // Checks whether the round can continue. If it cannot, the group is aborted, now or by a later call,
  // because all workers should get one report. Only one thread at a time may call this and fail() for a
  // round.
  bool goes_on(WorkerRound& round) noexcept;
  void fail(WorkerRound& round, const WorkerRound::Problem& problem) noexcept;
  void fail(WorkerRound& round, Trouble trouble, int64_t waited_ns) noexcept;
  // The report on a round that this worker abandons on its own.
  ErrorRecord report_of(WorkerRound& round, Trouble trouble, int64_t waited_ns) noexcept;

  void happened() noexcept override {
    group_.progress().advance();
    if (background_ != nullptr) background_->wake();
  }

 private:
  enum Kind : uint32_t { kLeaves = 6, kReports };  // after those of a WorkerRound
  // A notice that is expected from a peer, and its content once it has arrived.
  struct Incoming {
    Transfer transfer;
    std::byte bytes[WorkerNotice::kBytes];
    WorkerNotice notice;
    Reading reading = Reading::kBad;
    bool read = false;
    bool elsewhere = false;  // the whole's notice replaces it
    // False while it is in flight, and if it was cancelled or lost.
    bool here() const noexcept { return elsewhere || transfer.end() == Transfer::End::kDone; }
    bool good() noexcept;
  };
  struct Peer {
    Incoming leaves[2];   // of runs with an even number, and with an odd one
    uint64_t failed = 0;  // number of its runs in which collectives failed, as far as it has reported
    int64_t left_ns = 0;  // when this worker first noticed that the peer has left; 0: it has not
    Signature departed;   // for reports
    Transfer send_leave;
    Transfer send_report;
  };

  Incoming& leave_of(Peer& peer) const noexcept { return peer.leaves[run_ % 2]; }
  Peer& peer(int worker) noexcept { return peers_[static_cast<std::size_t>(worker)]; }
  MessageKey notice(Kind kind) const noexcept {
    return {.generation = 0, .run = run_, .group = group_.number(), .series = kind, .number = 0, .part = 0};
  }
  MessageKey message_of(uint32_t stream, uint64_t number) const noexcept {
    return {.generation = 0,
            .run = run_,
            .group = group_.number(),
            .series = stream,
            .number = number,
            .part = 0};
  }
  void listen() noexcept;
  // Called before a round begins: a part takes part in this run from its first round on.
  void take_part() noexcept;
  void join_run() noexcept;
  void hear_of_whole() noexcept;
  // Several parts may share a bit. If one of them has met, all of them send notices.
  uint64_t part_bit() const noexcept { return uint64_t{1} << (static_cast<uint32_t>(group_.number()) % 64); }
  template <class Body>
  void each_peer(Body&& body) noexcept {
    for (int w = 0; w < num_workers(); ++w) {
      if (w != me_) body(w, peer(w));
    }
  }
  // Returns false if nothing has changed for as long as a member spins.
  template <class Over>
  bool poll_until(Over&& over, uint32_t seen) noexcept;
  template <class Over>
  Status await(Over&& over) noexcept;
  Status await_messages() noexcept;
  void count_in() noexcept;
  Status await_members() noexcept;
  struct Found {
    ErrorRecord report;
    bool told = false;  // received from another worker, not found by this one
  };
  // Worker 0's answer about a failure that another worker has found.
  enum class ReporterSays : uint8_t { kNothingYet, kReport, kNothing };

  // The first lost peer; -1: none.
  int first_lost() noexcept;
  bool find_trouble(WorkerRound& round, Found* out) noexcept;
  Status fail_all(const Found& found) noexcept;
  Status fail_all(const WorkerRound::Problem& problem) noexcept;
  // Takes one step towards failing the round, without waiting. Returns true once the group is aborted.
  bool try_to_fail(const Found& found) noexcept;

  // These require the lock:
  bool has_gone(int worker, WorkerRound& round) noexcept;
  bool left_by_itself(int worker, WorkerRound& round) noexcept;
  bool is_told_of(const WorkerRound& round) noexcept;
  bool find_told(WorkerRound& round, Found* out) noexcept;
  ReporterSays ask_reporter() noexcept;
  void tell_all(const ErrorRecord& report) noexcept;
  void add_state(ErrorRecord& report) noexcept;
  ErrorRecord diagnosis_of(WorkerRound& round, Trouble trouble, int64_t waited_ns) noexcept;
  ErrorRecord report_on(WorkerRound& round, const WorkerRound::Problem& problem) noexcept;
  ErrorRecord lost(WorkerRound& round, int worker) noexcept;
  ErrorRecord broken(WorkerRound& round, int worker, const char* what) noexcept;
  ErrorRecord unlike(WorkerRound& round, int worker) noexcept;
  ErrorRecord no_memory(WorkerRound& round, dist_status code) noexcept;
  ErrorRecord of_worker(WorkerRound& round, int worker, dist_status code) noexcept;

  void cancel_all() noexcept;
  void cancel_run() noexcept;
  bool look_for_run_before(int* out_missing) noexcept;
  Status await_run_before(Group& group) noexcept;

  Memory& memory_;
  Transport& transport_;
  Group& group_;
  const Host host_;
  const int64_t timeout_ns_;
  const std::size_t most_bytes_;
  BackgroundWork* const background_;
  const int me_;
  std::pmr::vector<int> firsts_;
  WorkerCommunicator* const whole_;
  std::pmr::vector<int> workers_;
  std::pmr::vector<int> names_;
  std::pmr::vector<int32_t> replicas_;
  uint32_t run_ = 0;
  uint32_t announced_ = 0;  // by this worker, at the end of the latest run
  uint32_t next_stream_ = kFirstPlanned;
  uint64_t number_ = 0;  // number of the current blocking collective, from 1
  // Atomic, with relaxed accesses: a run that is past its deadline may be left while its leader is inside.
  std::atomic<uint64_t> completed_{0};   // collectives whose messages have all been sent
  std::atomic<uint64_t> begun_{0};       // the latest asynchronous collective that has begun
  std::atomic<uint64_t> planned_{0};     // rounds of plans that have begun
  std::atomic<uint64_t> own_failed_{0};  // runs in which a collective failed on this worker
  std::atomic<uint64_t> failed_{0};      // runs before heard_run_ in which one failed on any worker
  std::atomic<bool> reported_{false};    // the reporter has sent its report in this run
  std::atomic<uint64_t> parts_{0};       // of a whole: the parts that this worker has used in this run
  uint64_t closed_parts_ = 0;            // parts_ when the run ended
  std::atomic<bool> joined_{false};      // of a part: it takes part in this run
  std::atomic<bool> said_{false};        // of a part: it has sent its leave notice
  std::atomic<bool> listening_{false};   // receives for notices are posted
  int64_t start_ns_ = 0;
  int64_t limit_ns_ = 0;
  bool polling_ = false;     // used by the leader only; see Polling
  int cpus_ = 0;             // number of CPUs that the leader may use; 0: not known in this run
  int64_t patience_ns_ = 0;  // how much longer than usual the leader polls before it sleeps
  Standstill standstill_;
  std::byte own_leave_[WorkerNotice::kBytes];
  // Protects notices and the end of runs, for threads that advance rounds.
  std::mutex mutex_;
  std::atomic<uint32_t> heard_run_{1};  // the latest run before which all ends of runs are known
  uint64_t planned_met_ = 0;            // rounds of plans whose headers have all arrived
  bool failing_ = false;                // `found_` is valid, since `failing_since_ns_`
  Found found_;
  int64_t failing_since_ns_ = 0;
  std::byte own_report_[WorkerNotice::kBytes];
  Incoming report_;  // from the reporter, on workers that are not the reporter
  std::pmr::deque<Peer> peers_;
  Attendance attendance_;
  std::optional<WorkerRound> round_;
  // Steps: how many times members other than the leader have arrived; how many times the leader has waited
  // for all of them; how many times it has released them, and how many releases each member has seen.
  std::atomic<uint64_t> counted_{0};
  uint64_t awaited_ = 0;
  Word released_;
  std::atomic<bool> ended_{false};  // the leader has failed the collective
  std::pmr::vector<uint32_t> seen_;
};

}  // namespace dist
