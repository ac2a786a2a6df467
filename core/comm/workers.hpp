// SPDX-License-Identifier: Apache-2.0
// WorkerMeeting: how the workers meet whose replicas make up one group.
//
// A group's members are those of one process. A collective over several workers is met twice: by the members of
// each worker in their group, and by the workers, for each of which one member goes, its carrier (rank 0).
//
//     member       carrier
//     arrive       arrive      all members of this worker agree
//                  meet        all workers agree
//                  move        what the members of the others have brought lies here
//     await_done   done
//     arrive       arrive      all may read it, and each other's buffers
//     fold         fold
//     finish       finish
//
// No wait for a worker lies between the group's enter() and finish(): what is sent and received lies in payloads
// that are the meeting's, so that giving up never waits for a wire. The carrier alone looks at the deadline; the
// other members wait for it.
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
#pragma once

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
#include "core/engine/transport.hpp"

namespace dist {

// What one worker says about one collective. Sent as it is, and not trusted.
struct WorkerHeader {
  static constexpr uint32_t kMagic = 0x4C44'5748;
  static constexpr uint32_t kVersion = 1;
  static constexpr uint64_t kSizesVary = UINT64_MAX;

  uint32_t magic = kMagic;
  uint32_t version = kVersion;
  int32_t members = 0;         // of this worker
  uint64_t payload_bytes = 0;  // of each member's payload, or kSizesVary
  Signature signature;         // without addresses
};

struct WorkerNotice {
  uint32_t magic = WorkerHeader::kMagic;
  uint32_t version = WorkerHeader::kVersion;
  uint64_t completed = 0;  // leave: collectives, all of whose messages have been sent
  uint32_t reported = 0;   // leave: 1 where a report was sent before
  ErrorRecord record;      // leave: why, where its code is not OK; report: that
};

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

  // What was in it is lost.
  Status resize(std::size_t bytes) noexcept;
  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t kAlign = 64;

  Memory& memory_;
  std::byte* data_ = nullptr;
  std::size_t room_ = 0;
  std::size_t bytes_ = 0;
};

class WorkerMeeting final : public TransportListener {
 public:
  static constexpr int64_t kReportGraceNs = 1'000'000'000;

  struct Options {
    std::span<const int> members;  // of each worker; the group has those of this one
    int64_t timeout_ns = 0;        // the group's; 0: none
    // Of what one worker gets in one collective.
    std::size_t most_bytes = std::size_t{1} << 30;
  };

  // `group` outlives it, and so does the transport, whose listener it is. Throws std::bad_alloc.
  WorkerMeeting(Memory& memory, Transport& transport, Group& group, const Host& host, const Options& options);
  ~WorkerMeeting();
  WorkerMeeting(const WorkerMeeting&) = delete;
  WorkerMeeting& operator=(const WorkerMeeting&) = delete;

  int num_workers() const noexcept { return static_cast<int>(peers_.size()); }
  int me() const noexcept { return me_; }
  // Members of all workers, and the first of this one among them.
  int num_members() const noexcept { return num_members_; }
  int first() const noexcept { return peers_[static_cast<std::size_t>(me_)].first; }

  // Before a run, after the group's, with no member inside.
  void begin_run() noexcept;
  // All members have left their functions: peers that wait for this worker hear of it. `failure` says why where
  // `returned` is not OK.
  void leave(Status returned, const ErrorRecord& failure) noexcept;

  // What a member brings to the next collective; written before it arrives.
  Payload& outgoing(int member) noexcept { return outgoing_[static_cast<std::size_t>(member)]; }
  // Room of a member's own, which is kept, for what it makes of the others' payloads.
  Payload& tables(int member) noexcept { return tables_[static_cast<std::size_t>(member)]; }
  // What the members of other workers brought, by their rank among all.
  const Payload& incoming(int rank) const noexcept { return incoming_[static_cast<std::size_t>(rank)]; }

  // The carrier, when all members of this worker have come: meets the other workers and moves the payloads. After
  // a failure the group is poisoned. timeout_ns: as in Group::arrive().
  Status meet_and_move(const Signature& signature, int64_t timeout_ns) noexcept;

  void happened() noexcept override { group_.progress().advance(); }

 private:
  enum Series : uint32_t { kHeaders, kSizes, kPayloads, kLeaves, kReports };
  struct Peer {
    explicit Peer(Memory& memory) : sizes(&memory), receive_payloads(&memory), send_payloads(&memory) {}
    int first = 0;
    int members = 0;
    WorkerHeader header;
    std::pmr::vector<uint64_t> sizes;  // of the members' payloads
    WorkerNotice leave;
    Signature departed;  // for reports
    Transfer send_header, receive_header;
    Transfer send_sizes, receive_sizes;
    Transfer send_leave, receive_leave;
    Transfer send_report;
    std::pmr::vector<Transfer*> receive_payloads;  // by member of the peer
    std::pmr::vector<Transfer*> send_payloads;     // by own member
    // Its notice is there; without one it is under way, cancelled or lost.
    bool left() const noexcept { return receive_leave.end() == Transfer::End::kDone; }
  };

  MessageKey key(Series series, uint32_t part = 0) const noexcept;
  template <class Body>
  void each_peer(Body&& body) noexcept;
  template <class Body>
  void each_transfer(Body&& body) noexcept;
  template <class Over>
  Status await(Over&& over) noexcept;
  Status meet(const Signature& signature) noexcept;
  Status move() noexcept;
  Status move_sizes() noexcept;
  Status make_room() noexcept;
  struct Found {
    ErrorRecord report;
    bool told = false;  // by another worker: it is not this one's own finding
  };
  bool find_trouble(Found* out) noexcept;
  bool left_by_itself(const Peer& peer) const noexcept;
  ErrorRecord verdict_of(Trouble trouble, int64_t waited_ns) noexcept;
  ErrorRecord lost(int worker) noexcept;
  ErrorRecord broken(int worker, const char* what) noexcept;
  [[gnu::format(printf, 4, 5)]] ErrorRecord of_worker(int worker, dist_status code, const char* format,
                                                      ...) noexcept;
  Status fail_all(const Found& found) noexcept;
  bool await_leader() noexcept;
  void take_back() noexcept;
  void end(Transfer& transfer) noexcept;
  void cancel_all() noexcept;

  Transport& transport_;
  Group& group_;
  const Host host_;
  const int64_t timeout_ns_;
  const std::size_t most_bytes_;
  const int me_;
  int num_members_ = 0;
  uint32_t run_ = 0;
  uint64_t number_ = 0;     // the collective under way, from 1
  uint64_t completed_ = 0;  // those whose messages have all been sent
  bool reported_ = false;   // the leader has sent its report in this run
  int64_t start_ns_ = 0;
  int64_t limit_ns_ = 0;
  WorkerHeader own_;
  std::pmr::vector<uint64_t> own_sizes_;
  WorkerNotice own_leave_;
  WorkerNotice own_report_;
  WorkerNotice leader_report_;
  Transfer receive_report_;  // begun on workers that are not the leader
  std::pmr::deque<Peer> peers_;
  std::pmr::vector<Payload> outgoing_;
  std::pmr::vector<Payload> tables_;
  std::pmr::vector<Payload> incoming_;
  std::pmr::deque<Transfer> payload_transfers_;
};

}  // namespace dist
