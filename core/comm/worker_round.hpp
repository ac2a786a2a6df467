// SPDX-License-Identifier: Apache-2.0
// WorkerRound: the messages of one collective after another between workers. No function waits: a thread that
// has time checks whether a phase has ended and starts the next one.
//
//     begin()     sends headers: the calls of the local members, with all that they bring if it fits
//     proceed()   call it when settled(): goes from headers to payload sizes, if those of the members differ,
//                 and to payloads; then here() is true, and what all members bring is in this worker's memory
//     pass()      afterwards, as often as needed: exchanges tensors; they have arrived when settled()
//     take_back() abandons the round; afterwards no transfer uses this worker's memory
//
// Messages are identified by the run, the group, the stream and the collective's number in the stream. A
// stream is a series of collectives that all workers number identically; each stream has its own WorkerRound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/comm/worker_messages.hpp"
#include "core/net/transport.hpp"

namespace dist {

// The bytes that a member brings to a collective, or that arrived from another worker's member.
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

  // The previous content is lost. `spare`: allocate more than needed, so that sizes that grow slightly from
  // call to call do not cause an allocation each time.
  Status resize(std::size_t bytes, bool spare = true) noexcept;
  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

  // In a member's own payload: whether it contains everything that the member brings, including the elements
  // of its tensors.
  bool complete = true;

 private:
  static constexpr std::size_t kAlign = 64;

  Memory& memory_;
  std::byte* data_ = nullptr;
  std::size_t room_ = 0;
  std::size_t bytes_ = 0;
};

// The data sent to one worker and received from it in one pass. 0 bytes: nothing.
struct Passage {
  const std::byte* send = nullptr;
  std::size_t send_bytes = 0;
  std::byte* receive = nullptr;
  std::size_t receive_bytes = 0;
};

// The members of all workers, in the order of workers.
struct WorkerMembers {
  std::span<const int> firsts;  // the rank of each worker's first member, then the number of all members
  int me = 0;                   // this worker

  int num_workers() const noexcept { return static_cast<int>(firsts.size()) - 1; }
  int num_members() const noexcept { return firsts.back(); }
  // The rank of the first member of a worker. For one past the last worker, the number of all members.
  int first_of(int worker) const noexcept { return firsts[static_cast<std::size_t>(worker)]; }
  int count_of(int worker) const noexcept { return first_of(worker + 1) - first_of(worker); }
  int first() const noexcept { return first_of(me); }
  int count() const noexcept { return count_of(me); }
};

class WorkerRound {
 public:
  // How much longer a payload may be than this worker's longest one. Payloads of one call differ only in few
  // fields.
  static constexpr std::size_t kMostBeside = std::size_t{1} << 20;

  // Why the workers cannot continue, apart from failed messages.
  enum class Fault : uint8_t {
    kNone,
    kHeader,        // wrong version, unreadable, or another number of members
    kDisagreement,  // the workers called different collectives
    kTooLong,       // a payload is too long
    kNoMemory       // this worker has no memory
  };
  struct Problem {
    Fault fault = Fault::kNone;
    int worker = -1;  // kHeader, kTooLong
  };

  // The member of a worker that arrived last; see WorkerHeader.
  struct Last {
    int32_t name = -1;
    int64_t alone_ns = -1;
  };

  // The kinds of messages of each stream have consecutive numbers.
  static constexpr uint32_t kBlocking = 0;
  static constexpr uint32_t kKinds = 8;

  // `members.firsts` and the transport must outlive it. Throws std::bad_alloc.
  WorkerRound(Memory& memory, Transport& transport, const WorkerMembers& members);
  ~WorkerRound() { take_back(); }
  WorkerRound(const WorkerRound&) = delete;
  WorkerRound& operator=(const WorkerRound&) = delete;

  const WorkerMembers& members() const noexcept { return members_; }

  // The payload of a member of this worker for the next collective. Written before the collective begins.
  Payload& outgoing(int member) noexcept { return outgoing_[static_cast<std::size_t>(member)]; }
  // A member's own reusable buffer, for the tables that it builds from the others' payloads.
  Payload& tables(int member) noexcept { return tables_[static_cast<std::size_t>(member)]; }
  // The payload of a member of another worker, by its rank among all members.
  std::span<const std::byte> incoming(int rank) const noexcept {
    return came_[static_cast<std::size_t>(rank)];
  }

  // Uses the run, the group, the series (the stream) and the number of `at`. `most_bytes`: this worker's
  // limit for tensor bytes in flight.
  void begin(const MessageKey& at, const Signature& signature, std::size_t most_bytes,
             const Last& last) noexcept;
  // Whether all messages in flight have completed successfully. A message that failed keeps this false; see
  // trouble(). It is also false while another worker assumes other numbers of members than this one, since
  // one of the two will detect that and report it, and while the transport is not up to date.
  bool settled() noexcept;
  bool here() const noexcept { return phase_ == Phase::kHere; }
  // Whether messages belong to what proceed() has begun. If not, it can be called again at once.
  bool expects_more() const noexcept { return expects_more_; }
  // True once in a round: all headers have been read since the previous call.
  bool has_just_met() noexcept { return phase_ > Phase::kHeaders && !std::exchange(met_, true); }
  // Call this when settled() and not here().
  Problem proceed() noexcept;
  // Call this only once here() is true.
  void pass(std::span<const Passage> passages) noexcept;
  // Cancels everything; afterwards nothing is in flight.
  void take_back() noexcept;
  // Like take_back(), and also discards the round's state.
  void reset() noexcept;

  uint32_t stream() const noexcept { return at_.series; }
  uint64_t number() const noexcept { return at_.number; }
  const Signature& own_signature() const noexcept { return own_.signature; }
  // Whether the header of another worker has arrived and is readable.
  bool has_header(int worker) noexcept { return is_good(peer(worker)); }
  // Whether that header has arrived, readable or not.
  bool header_is_here(int worker) const noexcept {
    return peers_[static_cast<std::size_t>(worker)].receive_header.end() == Transfer::End::kDone;
  }
  Last last_of(int worker) noexcept {
    return has_header(worker) ? Last{header(worker).last, header(worker).last_alone_ns} : Last{};
  }
  Reading reading(int worker) const noexcept { return peers_[static_cast<std::size_t>(worker)].reading; }
  const WorkerHeader& header(int worker) const noexcept {
    return peers_[static_cast<std::size_t>(worker)].header;
  }
  // The first message that failed: its peer, and how it ended. Returns false if there is none.
  bool trouble(int* out_worker, Transfer::End* out_end) noexcept;

  // ---- Once here() is true ----

  // The payloads of all members of all workers are complete, so the collective needs no further messages.
  bool complete() const noexcept { return complete_; }
  // The smallest limit of all workers for tensor bytes in flight.
  std::size_t staging_bytes() const noexcept { return staging_bytes_; }
  // Provides room for tensors; its previous content is lost.
  Status reserve(std::size_t bytes) noexcept { return staging_.resize(bytes, false); }
  std::byte* staging() noexcept { return staging_.data(); }

 private:
  enum class Phase : uint8_t { kIdle, kHeaders, kSizes, kPayloads, kHere };
  enum Kind : uint32_t { kHeader, kSizeList, kPayload, kPiece };
  struct Peer {
    explicit Peer(Memory& memory)
        : sizes(&memory), size_bytes(&memory), receive_payloads(&memory), send_payloads(&memory) {}
    WorkerHeader header;
    Reading reading = Reading::kBad;
    bool read = false;
    alignas(WorkerHeader::kInsideAlign) std::byte header_bytes[WorkerHeader::kBytes];
    std::pmr::vector<uint64_t> sizes;  // of the members' payloads
    std::pmr::vector<std::byte> size_bytes;
    Transfer send_header, receive_header;
    Transfer send_sizes, receive_sizes;
    Transfer send_piece, receive_piece;
    std::pmr::vector<Transfer*> receive_payloads;  // by member of the peer
    std::pmr::vector<Transfer*> send_payloads;     // by own member
  };

  Peer& peer(int worker) noexcept { return peers_[static_cast<std::size_t>(worker)]; }
  MessageKey key(Kind kind, uint32_t part = 0) const noexcept;
  // Each worker begins with its successor, so that not all workers send to the same one at the same time.
  template <class Body>
  void each_peer_in_turn(Body&& body) noexcept {
    for (int i = 1; i < members_.num_workers(); ++i) {
      const int w = (members_.me + i) % members_.num_workers();
      body(w, peer(w));
    }
  }
  // A polling transport may move a message inside receive() while the peer waits for what this worker sends,
  // so it sends to all workers first. Other transports must store a message that arrives before its receive,
  // so there each receive comes first.
  template <class Send, class Receive>
  void send_and_receive(Send&& send, Receive&& receive) noexcept {
    const bool sends_first = transport_.polls();
    each_peer_in_turn([&](int w, Peer& peer) {
      if (!sends_first) receive(w, peer);
      send(w, peer);
    });
    if (sends_first) each_peer_in_turn(receive);
  }
  template <class Body>
  void each_peer(Body&& body) noexcept {
    for (int w = 0; w < members_.num_workers(); ++w) {
      if (w != members_.me) body(w, peer(w));
    }
  }
  // Calls body(worker, transfer) until it returns false; returns the last result.
  template <class Body>
  bool all_transfers(Body&& body) noexcept;
  void set_polled(bool polled) noexcept;
  bool others_know_other_members() noexcept;
  // Whether the peer's header has arrived and is readable.
  bool is_good(Peer& peer) noexcept;
  void write_header(const Signature& signature, std::size_t most_bytes, const Last& last) noexcept;
  Problem read_headers() noexcept;
  void ask_for_sizes() noexcept;
  void read_sizes() noexcept;
  Problem move_payloads() noexcept;
  static bool is_payload(const Transfer& transfer) noexcept;
  bool reserve_for_alike() noexcept;
  void send_payloads(int worker, Peer& to) noexcept;

  Transport& transport_;
  const WorkerMembers members_;
  Phase phase_ = Phase::kIdle;
  MessageKey at_;
  uint32_t passes_ = 0;
  bool complete_ = false;
  bool met_ = false;
  bool payloads_sent_ = false;
  bool expects_more_ = false;
  bool polled_ = false;  // whether it has marked its transfers as polled
  std::size_t staging_bytes_ = 0;
  WorkerHeader own_;
  alignas(WorkerHeader::kInsideAlign) std::byte own_bytes_[WorkerHeader::kBytes] = {};
  std::pmr::vector<uint64_t> own_sizes_;
  std::pmr::vector<std::byte> own_size_bytes_;
  std::pmr::deque<Peer> peers_;
  std::pmr::vector<Payload> outgoing_;
  std::pmr::vector<Payload> tables_;
  std::pmr::vector<Payload> incoming_;  // those that did not arrive inside headers
  std::pmr::vector<std::span<const std::byte>> came_;
  std::pmr::deque<Transfer> payload_transfers_;
  Payload staging_;
};

// Cancels a transfer and returns when it has ended. This takes little time: at most, a copy in progress runs
// to completion.
inline void end_transfer(Transport& transport, Transfer& transfer) noexcept {
  transport.cancel(transfer);
  while (!transfer.over()) transport.progress();
}

}  // namespace dist
