// SPDX-License-Identifier: Apache-2.0
// WorkerMeeting: the rounds of a group whose members belong to several workers (processes).
//
// Each worker has a Group for its own members. A collective over several workers is one round of each of
// these groups. Within it the workers meet; the carrier (the member of rank 0) does so on behalf of its
// worker.
//
//     member          carrier
//     arrive, enter   arrive, enter    all members of this worker agree
//                     meet             all workers agree
//                     move             what the other workers' members bring is copied here
//     await_release   release
//     step            step, pass       as often as needed: all members see what each one has done, and tensors
//                                      are exchanged between workers
//     finish          finish
//
// Invariant: everything that is sent and received lies in memory of the meeting. So a member that gives up
// never waits for the network, only until the carrier has cancelled the transfers in flight. Only the carrier
// checks the deadline; the other members wait for the carrier.
//
// Messages contain the number of the collective, which all workers count identically. Failures travel in
// notices, for which each worker always has a receive posted:
//
//     leave     the worker's function has ended after this many collectives, so a later collective fails. It can
//               be received until the end of the next run, which may need to know how this run has ended
//     report    worker 0's report on why a collective has failed, for all workers
//
// Worker 0 is the leader. A worker that detects a failure waits up to kReportGraceNs for the leader's report,
// then writes its own and says so; in that case the workers' texts may differ. A worker that has received a
// report includes it in its leave notice, so that its peers learn it too. A worker whose own members fail
// uses its group's report.
//
// When a collective has failed, the run has failed, as in a group. The next run starts with begin_run() on
// all workers.
//
// A *part* is the meeting of a group of some replicas; the meeting of all replicas is its whole. A part takes
// part in the whole's runs and costs nothing in a run that does not use it: it starts to listen with its
// first collective, and sends leave notices only if it has met. For parts that have not met, the whole's
// notice says so.
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
#include "core/comm/worker_messages.hpp"
#include "core/comm/worker_round.hpp"
#include "core/engine/transport.hpp"
#include "core/trace/attendance.hpp"

namespace dist {

// What goes on beside the blocking collectives: whoever waits calls advance(), so that no thread of its own is needed.
class BackgroundWork {
 public:
  // Waits for nobody.
  virtual void advance() noexcept = 0;
  // Something has happened that advance() may want to look at. Any thread; it must not call a transport.
  virtual void wake() noexcept = 0;

 protected:
  ~BackgroundWork() = default;
};

class WorkerMeeting final : public TransportListener {
 public:
  static constexpr int64_t kReportGraceNs = 1'000'000'000;
  static constexpr std::size_t kDefaultStagingBytes = std::size_t{64} << 20;
  // Streams: the blocking collectives' is WorkerRound::kBlocking, then comes the asynchronous ones', and then one for
  // each part of each plan.
  static constexpr uint32_t kAsynchronous = WorkerRound::kBlocking + 1;
  static constexpr uint32_t kFirstPlanned = kAsynchronous + 1;

  struct Options {
    std::span<const int> members;  // of each worker; the group has those of this one
    int64_t timeout_ns = 0;        // the group's; 0: none
    // Of tensors that are on their way to or from this worker at a time: what is larger goes in pieces. The least of
    // all workers' counts. Less than a unit of each member's for each worker is taken as that.
    std::size_t most_bytes = kDefaultStagingBytes;
    BackgroundWork* background = nullptr;  // which outlives the meeting; NULL: none
    // What programs call the workers; empty: 0, 1, ... A part has its whole's names.
    std::span<const int> names = {};
    // Of a part, NULL and empty elsewhere: its whole, which outlives it; which of its workers these are, ascending;
    // which of all replicas the members are.
    WorkerMeeting* whole = nullptr;
    std::span<const int> workers = {};
    std::span<const int32_t> replicas = {};
  };

  // `group` outlives it, and so does the transport, whose listener it is. Throws std::bad_alloc.
  WorkerMeeting(Memory& memory, Transport& transport, Group& group, const Host& host, const Options& options);
  ~WorkerMeeting();
  WorkerMeeting(const WorkerMeeting&) = delete;
  WorkerMeeting& operator=(const WorkerMeeting&) = delete;

  WorkerMembers members() const noexcept { return {firsts_, me_}; }
  int num_workers() const noexcept { return members().num_workers(); }
  int me() const noexcept { return me_; }
  int num_members() const noexcept { return members().num_members(); }
  // The first of this worker's members.
  int first() const noexcept { return members().first(); }
  // What programs call a worker, and a member.
  int named(int worker) const noexcept {
    return names_.empty() || worker < 0 ? worker : names_[static_cast<std::size_t>(worker)];
  }
  int replica_of(int rank) const noexcept {
    return replicas_.empty() ? rank : replicas_[static_cast<std::size_t>(rank)];
  }
  const Host& host() const noexcept { return host_; }
  // Each member says there when it comes, before it arrives; and who came last, once the workers have met.
  Attendance& attendance() noexcept { return attendance_; }
  // Of this worker; see Options::most_bytes.
  std::size_t own_staging_bytes() const noexcept { return most_bytes_; }

  // Before a run, after the group's and after the whole's, with no member inside.
  void begin_run() noexcept;
  // All members have left their functions: peers that wait for this worker hear of it. `failure` says why where
  // `returned` is not OK. Of a part: any thread, and again is the same as once.
  // `collectives_failed`: of this worker's members, in any group of them. `announced`: what it has to say to all at this
  // end of a run, as bits.
  void leave(Status returned, const ErrorRecord& failure, bool collectives_failed = false,
             uint32_t announced = 0) noexcept;
  // Between runs: what worker 0 has announced at the end of the latest one, which is waited for. 0: there was none yet.
  // UNAVAILABLE: worker 0 is lost. CANCELLED: `cancelled` is true, which any thread may set.
  Status hear_leader(const std::atomic<bool>& cancelled, uint32_t* out_announced) noexcept;
  // Any worker, between runs: what the others have announced at ends of this run or the one before, as far as it is here.
  uint32_t announced_by_others() noexcept;
  // Its group's collectives have, in this run.
  bool failed() const noexcept { return group_.poisoned(); }
  // Of a part: it is to leave in this run, where it has not yet; others may wait for that.
  bool joined() const noexcept { return joined_.load(std::memory_order_acquire); }
  // Of a whole, before it leaves: the parts that it will say have left, each of which does so before; as bits.
  uint64_t close_parts() noexcept { return closed_parts_ = parts_.load(std::memory_order_acquire); }
  bool is_in(uint64_t parts) const noexcept { return (parts & part_bit()) != 0; }

  // The messages of the blocking collectives. A member writes what it brings before it arrives.
  WorkerRound& round() noexcept { return *round_; }

  // The carrier, when all members of this worker have come: meets the other workers and moves the payloads. After
  // a failure the group is poisoned. timeout_ns: as in Group::arrive(), from start_ns on, or from now on.
  Status meet_and_move(const Signature& signature, int64_t timeout_ns, int64_t start_ns) noexcept;
  Status meet_and_move(const Signature& signature, int64_t timeout_ns) noexcept {
    return meet_and_move(signature, timeout_ns, host_.now_ns());
  }

  // ---- From meet_and_move() to the collective's end ----

  // The carrier lets the other members go on, each of which waits for that before its first step. False: the group is
  // poisoned, and finish() comes next; the carrier alone decides that, so that no member waits for one that is gone.
  bool release() noexcept;
  bool await_release(int member) noexcept;
  // All members: when all have come, the carrier calls carry(), and then all go on. False: as release(). A carrier
  // that gives up between steps releases the others once more.
  template <class Carry>
  bool step(int member, Carry&& carry) noexcept {
    if (member != 0) {
      count_in();
      return await_release(member);
    }
    if (await_members().ok()) (void)carry();
    return release();
  }
  // Inside carry(): room for tensors, whose content is lost.
  Status reserve(std::size_t bytes) noexcept;
  // Inside carry(): sends to each worker and receives from each; passages[me()] is not used.
  Status pass(std::span<const Passage> passages) noexcept;
  // Inside the last carry(): this worker owes the others nothing more.
  void complete_collective() noexcept { completed_.store(number_, std::memory_order_relaxed); }

  // ---- For rounds that nobody waits in, of streams beside that of the blocking collectives ----

  // In how many runs before this one collectives have failed on any worker: the same number on all of them. A member of
  // `group` waits there until all workers have left the run before this one.
  Status hear_of_run_before(Group& group, uint64_t* out_failed) noexcept;
  Transport& transport() noexcept { return transport_; }
  // Begins such a round. The numbers of a stream count from 1 on in each run.
  void begin(WorkerRound& round, uint32_t stream, uint64_t number, const Signature& signature,
             std::size_t most_bytes) noexcept;
  // Streams that no round has had on this worker, from which on the workers may agree on some; the carrier asks, and
  // takes them.
  uint32_t next_stream() const noexcept { return next_stream_; }
  Status take_streams(uint64_t first, std::size_t count) noexcept;
  // Looks whether the round can go on. Where it cannot, the group is poisoned, now or at one of the next calls: all
  // workers are to get one report. One thread at a time calls this and fail() for a round.
  bool goes_on(WorkerRound& round) noexcept;
  void fail(WorkerRound& round, const WorkerRound::Problem& problem) noexcept;
  void fail(WorkerRound& round, Trouble trouble, int64_t waited_ns) noexcept;
  // The report on a round that this worker gives up by itself.
  ErrorRecord report_of(WorkerRound& round, Trouble trouble, int64_t waited_ns) noexcept;

  void happened() noexcept override {
    group_.progress().advance();
    if (background_ != nullptr) background_->wake();
  }

 private:
  enum Kind : uint32_t { kLeaves = 6, kReports };  // behind those of a WorkerRound
  // A notice that is to come, and what it says once it has been read.
  struct Incoming {
    Transfer transfer;
    std::byte bytes[WorkerNotice::kBytes];
    WorkerNotice notice;
    Reading reading = Reading::kBad;
    bool read = false;
    bool elsewhere = false;  // the whole's notice stands for it
    // False: it is under way, cancelled or lost.
    bool here() const noexcept { return elsewhere || transfer.end() == Transfer::End::kDone; }
    bool good() noexcept;
  };
  struct Peer {
    Incoming leaves[2];   // of the run with an even number, and with an odd one
    uint64_t failed = 0;  // its runs in which collectives have failed, as far as it has said
    int64_t left_ns = 0;  // when that was found; 0: it was not
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
  // Before a round begins: a part is in this run from its first one on.
  void take_part() noexcept;
  void join_run() noexcept;
  void hear_of_whole() noexcept;
  // Several parts may share a bit: if one of them has met, all give notices.
  uint64_t part_bit() const noexcept { return uint64_t{1} << (static_cast<uint32_t>(group_.number()) % 64); }
  template <class Body>
  void each_peer(Body&& body) noexcept {
    for (int w = 0; w < num_workers(); ++w) {
      if (w != me_) body(w, peer(w));
    }
  }
  template <class Over>
  Status await(Over&& over) noexcept;
  Status await_messages() noexcept;
  void count_in() noexcept;
  Status await_members() noexcept;
  struct Found {
    ErrorRecord report;
    bool told = false;  // by another worker: it is not this one's own finding
  };
  // What worker 0 has to say about a failure that another worker has found.
  enum class LeaderSays : uint8_t { kNothingYet, kReport, kNothing };

  // Of the others; -1: none is.
  int first_lost() noexcept;
  bool find_trouble(WorkerRound& round, Found* out) noexcept;
  Status fail_all(const Found& found) noexcept;
  Status fail_all(const WorkerRound::Problem& problem) noexcept;
  // One step of that, which waits for nobody; true: the group is poisoned.
  bool try_to_fail(const Found& found) noexcept;

  // Under the lock:
  bool has_gone(int worker, WorkerRound& round) noexcept;
  bool left_by_itself(int worker, WorkerRound& round) noexcept;
  bool is_told_of(const WorkerRound& round) noexcept;
  bool find_told(WorkerRound& round, Found* out) noexcept;
  LeaderSays ask_leader() noexcept;
  void tell_all(const ErrorRecord& report) noexcept;
  ErrorRecord verdict_of(WorkerRound& round, Trouble trouble, int64_t waited_ns) noexcept;
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
  WorkerMeeting* const whole_;
  std::pmr::vector<int> workers_;
  std::pmr::vector<int> names_;
  std::pmr::vector<int32_t> replicas_;
  uint32_t run_ = 0;
  uint32_t announced_ = 0;  // by this worker, at the end of the latest run
  uint32_t next_stream_ = kFirstPlanned;
  uint64_t number_ = 0;  // the blocking collective under way, from 1
  // relaxed: a run that is past its deadline is left while its carrier may still be inside.
  std::atomic<uint64_t> completed_{0};   // those whose messages have all been sent
  std::atomic<uint64_t> begun_{0};       // the latest asynchronous one that has begun
  std::atomic<uint64_t> planned_{0};     // rounds of plans that have begun
  std::atomic<uint64_t> own_failed_{0};  // runs in which collectives have failed here,
  std::atomic<uint64_t> failed_{0};      // and on any worker, before heard_run_
  std::atomic<bool> reported_{false};    // the leader has sent its report in this run
  std::atomic<uint64_t> parts_{0};       // of a whole: those that this worker has come to in this run
  uint64_t closed_parts_ = 0;            // the same when the run ended
  std::atomic<bool> joined_{false};      // of a part: it is one of these
  std::atomic<bool> said_{false};        // and has said that its members have left
  std::atomic<bool> listening_{false};   // for notices
  int64_t start_ns_ = 0;
  int64_t limit_ns_ = 0;
  std::byte own_leave_[WorkerNotice::kBytes];
  // Of notices and of how a run ends, for the threads that go on with rounds.
  std::mutex mutex_;
  std::atomic<uint32_t> heard_run_{1};  // how those before this one have ended is known
  uint64_t planned_met_ = 0;            // rounds of plans of which all headers have been here
  bool failing_ = false;                // with `found_`, since `failing_since_ns_`
  Found found_;
  int64_t failing_since_ns_ = 0;
  std::byte own_report_[WorkerNotice::kBytes];
  Incoming report_;  // the leader's, on workers that are not the leader
  std::pmr::deque<Peer> peers_;
  Attendance attendance_;
  std::optional<WorkerRound> round_;
  // Steps: how often members that are not the carrier have come; how often the carrier has waited for all of them;
  // how often it has released them, and how often each has seen that.
  std::atomic<uint64_t> counted_{0};
  uint64_t awaited_ = 0;
  Word released_;
  std::atomic<bool> ended_{false};  // and that they do not go on
  std::pmr::vector<uint32_t> seen_;
};

}  // namespace dist
