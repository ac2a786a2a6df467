// SPDX-License-Identifier: Apache-2.0
// WorkerRound: the messages of one collective after another between workers. No function waits: a thread that
// has time checks whether a phase has ended and starts the next one.
//
//     begin()     sends headers: what this worker's members came for, and, if it fits, everything that they bring
//     proceed()   call it when settled(): goes from headers to payload sizes, if those of the members differ, and
//                 to payloads; then here() is true, and what all members bring is in this worker's memory
//     pass()      afterwards, as often as needed: exchanges tensors; they have arrived when settled()
//     take_back() abandons the round: all memory belongs to this worker again
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

// Who the members are: worker by worker.
struct WorkerMembers {
  std::span<const int> firsts;  // the first member of each worker, and the number of all
  int me = 0;                   // the worker

  int num_workers() const noexcept { return static_cast<int>(firsts.size()) - 1; }
  int num_members() const noexcept { return firsts.back(); }
  // The first one of the worker behind the last is the number of all.
  int first_of(int worker) const noexcept { return firsts[static_cast<std::size_t>(worker)]; }
  int count_of(int worker) const noexcept { return first_of(worker + 1) - first_of(worker); }
  int first() const noexcept { return first_of(me); }
  int count() const noexcept { return count_of(me); }
};

class WorkerRound {
 public:
  // A payload is at most so much longer than this worker's longest: they differ in few things.
  static constexpr std::size_t kMostBeside = std::size_t{1} << 20;

  // What keeps workers from going on, besides what has become of a message.
  enum class Fault : uint8_t {
    kNone,
    kHeader,        // of another version, unreadable, or with another number of members
    kDisagreement,  // they came for different things
    kTooLong,       // a payload
    kNoMemory       // here
  };
  struct Problem {
    Fault fault = Fault::kNone;
    int worker = -1;  // kHeader, kTooLong
  };

  // Who came last of a worker's members; see WorkerHeader.
  struct Last {
    int32_t name = -1;
    int64_t alone_ns = -1;
  };

  // Streams: the kinds of messages of each are numbered side by side.
  static constexpr uint32_t kBlocking = 0;
  static constexpr uint32_t kKinds = 8;

  // `members.firsts` and the transport outlive it. Throws std::bad_alloc.
  WorkerRound(Memory& memory, Transport& transport, const WorkerMembers& members);
  ~WorkerRound() { take_back(); }
  WorkerRound(const WorkerRound&) = delete;
  WorkerRound& operator=(const WorkerRound&) = delete;

  const WorkerMembers& members() const noexcept { return members_; }

  // What a member of this worker brings to the next collective; written before it begins.
  Payload& outgoing(int member) noexcept { return outgoing_[static_cast<std::size_t>(member)]; }
  // Room of a member's own, which is kept, for what it makes of the others' payloads.
  Payload& tables(int member) noexcept { return tables_[static_cast<std::size_t>(member)]; }
  // What the members of other workers brought, by their rank among all.
  std::span<const std::byte> incoming(int rank) const noexcept {
    return came_[static_cast<std::size_t>(rank)];
  }

  // Of `at`, the run, the group, the series (a stream) and the number count. `most_bytes`: of tensors on their way at a
  // time, as far as this worker is asked.
  void begin(const MessageKey& at, const Signature& signature, std::size_t most_bytes,
             const Last& last) noexcept;
  // Whether all messages under way have come to a good end. One that has not stays so: see trouble(). Nor does it end while
  // another worker takes workers to have other members than this one does: one of the two sees that it is wrong, and says so;
  // nor before the transport is up to date.
  bool settled() noexcept;
  bool here() const noexcept { return phase_ == Phase::kHere; }
  // True once a round: all headers have been read since the last look.
  bool has_just_met() noexcept { return phase_ > Phase::kHeaders && !std::exchange(met_, true); }
  // From settled() on, while not here().
  Problem proceed() noexcept;
  // From here() on.
  void pass(std::span<const Passage> passages) noexcept;
  // Nothing is under way any more.
  void take_back() noexcept;
  // Also what was taken back is forgotten.
  void reset() noexcept;

  uint32_t stream() const noexcept { return at_.series; }
  uint64_t number() const noexcept { return at_.number; }
  const Signature& own_signature() const noexcept { return own_.signature; }
  // What the header of another worker says, once it is there.
  bool has_header(int worker) noexcept { return peer(worker).good(); }
  // Whether it is there, though it may not be readable.
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
  // The first message that has come to no good end: whose it was, and how it ended. False: there is none.
  bool trouble(int* out_worker, Transfer::End* out_end) noexcept;

  // ---- From here() on ----

  // The payloads of all members of all workers are complete: the collective has no further messages.
  bool complete() const noexcept { return complete_; }
  // How much room the worker with the least has for tensors.
  std::size_t staging_bytes() const noexcept { return staging_bytes_; }
  // Room for tensors, whose content is lost.
  Status reserve(std::size_t bytes) noexcept { return staging_.resize(bytes, false); }
  std::byte* staging() noexcept { return staging_.data(); }

 private:
  enum class Phase : uint8_t { kIdle, kHeaders, kSizes, kPayloads, kHere };
  enum Kind : uint32_t { kHeader, kSizeList, kPayload, kPiece };
  struct Peer {
    explicit Peer(Memory& memory)
        : sizes(&memory), size_bytes(&memory), receive_payloads(&memory), send_payloads(&memory) {}
    // Its header, once that is there and has been read.
    bool good() noexcept;
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
  // Each worker begins with the one behind it, so that not all speak to the same one at a time.
  template <class Body>
  void each_peer_in_turn(Body&& body) noexcept {
    for (int i = 1; i < members_.num_workers(); ++i) {
      const int w = (members_.me + i) % members_.num_workers();
      body(w, peer(w));
    }
  }
  template <class Body>
  void each_peer(Body&& body) noexcept {
    for (int w = 0; w < members_.num_workers(); ++w) {
      if (w != members_.me) body(w, peer(w));
    }
  }
  // Calls body(worker, transfer) until that says false, which is returned then.
  template <class Body>
  bool all_transfers(Body&& body) noexcept;
  bool others_know_other_members() noexcept;
  Problem read_headers() noexcept;
  void ask_for_sizes() noexcept;
  void read_sizes() noexcept;
  Problem move_payloads() noexcept;
  static bool is_payload(const Transfer& transfer) noexcept;
  bool reserve_for_alike() noexcept;
  void send_payloads(int worker, Peer& to) noexcept;

  Memory& memory_;
  Transport& transport_;
  const WorkerMembers members_;
  Phase phase_ = Phase::kIdle;
  MessageKey at_;
  uint32_t passes_ = 0;
  bool complete_ = false;
  bool met_ = false;
  bool payloads_sent_ = false;
  std::size_t staging_bytes_ = 0;
  WorkerHeader own_;
  alignas(WorkerHeader::kInsideAlign) std::byte own_bytes_[WorkerHeader::kBytes] = {};
  std::pmr::vector<uint64_t> own_sizes_;
  std::pmr::vector<std::byte> own_size_bytes_;
  std::pmr::deque<Peer> peers_;
  std::pmr::vector<Payload> outgoing_;
  std::pmr::vector<Payload> tables_;
  std::pmr::vector<Payload> incoming_;  // of those that were not inside headers
  std::pmr::vector<std::span<const std::byte>> came_;
  std::pmr::deque<Transfer> payload_transfers_;
  Payload staging_;
};

// Ends a transfer, and returns when it is over: soon, since what is being copied is copied to its end.
inline void end_transfer(Transport& transport, Transfer& transfer) noexcept {
  transport.cancel(transfer);
  while (!transfer.over()) transport.progress();
}

}  // namespace dist
