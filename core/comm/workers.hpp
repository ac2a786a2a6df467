// SPDX-License-Identifier: Apache-2.0
// WorkerMeeting: how the workers meet whose replicas make up one group.
//
// A group's members are those of one process. A collective over several workers is one round of each worker's group,
// in which the workers meet, for each of which one member goes, its carrier (rank 0).
//
//     member          carrier
//     arrive, enter   arrive, enter    all members of this worker agree
//                     meet             all workers agree
//                     move             what the members of the others say lies here
//     await_release   release
//     step            step, pass       as often as needed: what one member made of it is seen by all, and tensors
//                                      go from worker to worker
//     finish          finish
//
// What is sent and received lies in memory that is the meeting's, so that giving up waits for no wire: only until
// the carrier has taken back what is under way. The carrier alone looks at the deadline; the other members wait for it.
//
// Messages carry the number of the collective, which the workers count alike. Trouble comes in notices, for which
// each worker listens all the time:
//
//     leave     a worker's function has ended, after so many collectives: who is in a later one ends
//     report    worker 0 says for all why a collective has failed
//
// Worker 0 is the leader. Who finds trouble waits for its report, up to kReportGraceNs, and then decides alone and
// says so: then texts may differ. Who has been told leaves with what it was told, so that others hear it too. A
// worker whose own members fail needs no report, it has its group's.
//
// Once a collective has failed the run is over, as in a group; the next one begins with begin_run() on all workers.
//
// A *part* is the meeting of a group of some replicas. It takes part in the runs of the meeting of all of them, its
// whole, and costs nothing in a run in which nobody comes to it: it listens from its first collective on, and says that a
// worker has left where it has met there. Of the others the whole's notice says that they did not.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/group.hpp"
#include "core/comm/worker_messages.hpp"
#include "core/engine/transport.hpp"

namespace dist {

// Bytes that a member brings to a collective, or that came from one.
class Payload {
 public:
  explicit Payload(Memory& memory) noexcept : memory_(memory) {}
  Payload(Payload&& other) noexcept
      : memory_(other.memory_),
        data_(std::exchange(other.data_, nullptr)),
        room_(std::exchange(other.room_, 0)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  ~Payload() { memory_.free(data_, room_, kAlign); }
  Payload& operator=(const Payload&) = delete;

  // What was in it is lost. `spare`: with room for more, so that sizes that grow a little from call to call do not
  // allocate each time.
  Status resize(std::size_t bytes, bool spare = true) noexcept;
  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

  // Of a member's own: it says all that the member brings, the elements of its tensors too.
  bool complete = true;

 private:
  static constexpr std::size_t kAlign = 64;

  Memory& memory_;
  std::byte* data_ = nullptr;
  std::size_t room_ = 0;
  std::size_t bytes_ = 0;
};

// What goes to one worker and comes from it at a time. 0 bytes: nothing.
struct Passage {
  const std::byte* send = nullptr;
  std::size_t send_bytes = 0;
  std::byte* receive = nullptr;
  std::size_t receive_bytes = 0;
};

class WorkerMeeting final : public TransportListener {
 public:
  static constexpr int64_t kReportGraceNs = 1'000'000'000;
  // A payload is at most so much longer than this worker's longest: they differ in few things.
  static constexpr std::size_t kMostBeside = std::size_t{1} << 20;

  static constexpr std::size_t kDefaultStagingBytes = std::size_t{64} << 20;

  struct Options {
    std::span<const int> members;  // of each worker; the group has those of this one
    int64_t timeout_ns = 0;        // the group's; 0: none
    // Of tensors that are on their way to or from this worker at a time: what is larger goes in pieces. The least of
    // all workers' counts. Less than a unit of each member's for each worker is taken as that.
    std::size_t most_bytes = kDefaultStagingBytes;
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

  int num_workers() const noexcept { return static_cast<int>(peers_.size()); }
  int me() const noexcept { return me_; }
  // Members of all workers, and the first of a worker's among them; of this worker's; of the one behind the last.
  int num_members() const noexcept { return num_members_; }
  int first_of(int worker) const noexcept {
    return worker < num_workers() ? peers_[static_cast<std::size_t>(worker)].first : num_members_;
  }
  int first() const noexcept { return first_of(me_); }
  // What programs call a worker, and a member.
  int named(int worker) const noexcept {
    return workers_.empty() ? worker : workers_[static_cast<std::size_t>(worker)];
  }
  int replica_of(int rank) const noexcept {
    return replicas_.empty() ? rank : replicas_[static_cast<std::size_t>(rank)];
  }
  const Host& host() const noexcept { return host_; }
  // Of this worker; see Options::most_bytes.
  std::size_t own_staging_bytes() const noexcept { return most_bytes_; }

  // Before a run, after the group's and after the whole's, with no member inside.
  void begin_run() noexcept;
  // All members have left their functions: peers that wait for this worker hear of it. `failure` says why where
  // `returned` is not OK. Of a part: any thread, and again is the same as once.
  void leave(Status returned, const ErrorRecord& failure) noexcept;
  // Of a part: it is to leave in this run, where it has not yet; others may wait for that.
  bool joined() const noexcept { return joined_.load(std::memory_order_acquire); }
  // Of a whole, before it leaves: the parts that it will say have left, each of which does so before; as bits.
  uint64_t close_parts() noexcept { return closed_parts_ = parts_.load(std::memory_order_acquire); }
  bool is_in(uint64_t parts) const noexcept { return (parts & part_bit()) != 0; }

  // What a member brings to the next collective; written before it arrives.
  Payload& outgoing(int member) noexcept { return outgoing_[static_cast<std::size_t>(member)]; }
  // Room of a member's own, which is kept, for what it makes of the others' payloads.
  Payload& tables(int member) noexcept { return tables_[static_cast<std::size_t>(member)]; }
  // What the members of other workers brought, by their rank among all.
  const Payload& incoming(int rank) const noexcept { return incoming_[static_cast<std::size_t>(rank)]; }

  // The carrier, when all members of this worker have come: meets the other workers and moves the payloads. After
  // a failure the group is poisoned. timeout_ns: as in Group::arrive(), from start_ns on, or from now on.
  Status meet_and_move(const Signature& signature, int64_t timeout_ns, int64_t start_ns) noexcept;
  Status meet_and_move(const Signature& signature, int64_t timeout_ns) noexcept {
    return meet_and_move(signature, timeout_ns, host_.now_ns());
  }

  // ---- From meet_and_move() to the collective's end ----

  // The payloads of all members of all workers are complete: the collective has no further messages.
  bool complete() const noexcept { return complete_; }
  // How much room the worker with the least has for tensors.
  std::size_t staging_bytes() const noexcept { return staging_bytes_; }

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
  std::byte* staging() noexcept { return staging_.data(); }
  // Inside carry(): sends to each worker and receives from each; passages[me()] is not used.
  Status pass(std::span<const Passage> passages) noexcept;
  // Inside the last carry(): this worker owes the others nothing more.
  void complete_collective() noexcept { completed_.store(number_, std::memory_order_relaxed); }

  void happened() noexcept override { group_.progress().advance(); }

 private:
  enum Series : uint32_t { kHeaders, kSizes, kPayloads, kPieces, kLeaves, kReports };
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
    explicit Peer(Memory& memory)
        : sizes(&memory), size_bytes(&memory), receive_payloads(&memory), send_payloads(&memory) {}
    int first = 0;
    int members = 0;
    // Its header, once that is there and has been read.
    bool good() noexcept;
    WorkerHeader header;
    Reading reading = Reading::kBad;
    bool read = false;
    std::byte header_bytes[WorkerHeader::kBytes];
    std::pmr::vector<uint64_t> sizes;  // of the members' payloads
    std::pmr::vector<std::byte> size_bytes;
    Incoming leave;
    Signature departed;  // for reports
    Transfer send_header, receive_header;
    Transfer send_sizes, receive_sizes;
    Transfer send_piece, receive_piece;
    Transfer send_leave;
    Transfer send_report;
    std::pmr::vector<Transfer*> receive_payloads;  // by member of the peer
    std::pmr::vector<Transfer*> send_payloads;     // by own member
  };

  MessageKey key(Series series, uint32_t part = 0) const noexcept;
  void listen() noexcept;
  void join_run() noexcept;
  void hear_of_whole() noexcept;
  // Several parts may share a bit: if one of them has met, all give notices.
  uint64_t part_bit() const noexcept { return uint64_t{1} << (static_cast<uint32_t>(group_.number()) % 64); }
  template <class Body>
  void each_peer(Body&& body) noexcept {
    for (int w = 0; w < num_workers(); ++w) {
      if (w != me_) body(w, peers_[static_cast<std::size_t>(w)]);
    }
  }
  // Each worker begins with the one behind it, so that not all speak to the same one at a time.
  template <class Body>
  void each_peer_in_turn(Body&& body) noexcept {
    for (int i = 1; i < num_workers(); ++i) {
      const int w = (me_ + i) % num_workers();
      body(w, peers_[static_cast<std::size_t>(w)]);
    }
  }
  // Those of a collective: notices stay.
  template <class Body>
  void each_transfer(Body&& body) noexcept {
    each_peer([&](int w, Peer& peer) {
      for (Transfer* each : {&peer.send_header, &peer.receive_header, &peer.send_sizes, &peer.receive_sizes,
                             &peer.send_piece, &peer.receive_piece})
        body(w, *each);
      for (Transfer* each : peer.receive_payloads) body(w, *each);
      for (Transfer* each : peer.send_payloads) body(w, *each);
    });
  }
  template <class Over>
  Status await(Over&& over) noexcept;
  Status await_transfers() noexcept;
  void count_in() noexcept;
  Status await_members() noexcept;
  Status meet(const Signature& signature) noexcept;
  Status move() noexcept;
  Status move_sizes() noexcept;
  Status make_room() noexcept;
  struct Found {
    ErrorRecord report;
    bool told = false;  // by another worker: it is not this one's own finding
  };
  bool find_trouble(Found* out) noexcept;
  bool left_by_itself(Peer& peer) noexcept;
  ErrorRecord verdict_of(Trouble trouble, int64_t waited_ns) noexcept;
  ErrorRecord lost(int worker) noexcept;
  ErrorRecord broken(int worker, const char* what) noexcept;
  ErrorRecord unlike(int worker, const Peer& peer) noexcept;
  ErrorRecord no_memory(dist_status code) noexcept;
  ErrorRecord of_worker(int worker, dist_status code) noexcept;
  Status fail_all(const Found& found) noexcept;
  bool await_leader() noexcept;
  void take_back() noexcept;
  void end(Transfer& transfer) noexcept;
  void cancel_all() noexcept;

  Memory& memory_;
  Transport& transport_;
  Group& group_;
  const Host host_;
  const int64_t timeout_ns_;
  const std::size_t most_bytes_;
  const int me_;
  WorkerMeeting* const whole_;
  std::pmr::vector<int> workers_;
  std::pmr::vector<int32_t> replicas_;
  int num_members_ = 0;
  uint32_t run_ = 0;
  uint64_t number_ = 0;  // the collective under way, from 1
  // relaxed: a run that is past its deadline is left while its carrier may still be inside.
  std::atomic<uint64_t> completed_{0};  // those whose messages have all been sent
  uint32_t passes_ = 0;                 // of the collective under way
  std::atomic<bool> reported_{false};   // the leader has sent its report in this run
  std::atomic<uint64_t> parts_{0};      // of a whole: those that this worker has come to in this run
  uint64_t closed_parts_ = 0;           // the same when the run ended
  std::atomic<bool> joined_{false};     // of a part: it is one of these
  std::atomic<bool> said_{false};       // and has said that its members have left
  bool listening_ = false;              // for notices
  bool complete_ = false;
  std::size_t staging_bytes_ = 0;
  int64_t start_ns_ = 0;
  int64_t limit_ns_ = 0;
  WorkerHeader own_;
  std::byte own_bytes_[WorkerHeader::kBytes];
  std::pmr::vector<uint64_t> own_sizes_;
  std::pmr::vector<std::byte> own_size_bytes_;
  std::byte own_leave_[WorkerNotice::kBytes];
  std::byte own_report_[WorkerNotice::kBytes];
  Incoming report_;  // the leader's, on workers that are not the leader
  std::pmr::deque<Peer> peers_;
  std::pmr::vector<Payload> outgoing_;
  std::pmr::vector<Payload> tables_;
  std::pmr::vector<Payload> incoming_;
  std::pmr::deque<Transfer> payload_transfers_;
  Payload staging_;
  // Steps: how often members that are not the carrier have come; how often the carrier has waited for all of them;
  // how often it has released them, and how often each has seen that.
  std::atomic<uint64_t> counted_{0};
  uint64_t awaited_ = 0;
  Word released_;
  std::atomic<bool> ended_{false};  // and that they do not go on
  std::pmr::vector<uint32_t> seen_;
};

}  // namespace dist
