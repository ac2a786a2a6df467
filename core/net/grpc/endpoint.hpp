// SPDX-License-Identifier: Apache-2.0
// Endpoint: a worker's transport over gRPC. Every worker has a control link to worker 0 from the start;
// worker 0 tracks which workers have joined and are alive. Data links are made on demand, to workers that
// have joined.
//
// Lock order: `out_mutex` or `in_mutex` of a peer, `members_`, the lock of LinkOwner, the lock of a link or a
// queue. None of them is held while a link is started, flushed or ended, or while the listener is called.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory.hpp"
#include "core/net/forming.hpp"
#include "core/net/grpc/inbox.hpp"
#include "core/net/grpc/link_owner.hpp"
#include "core/net/grpc/outbox.hpp"
#include "core/net/grpc/reasons.hpp"
#include "core/net/transport.hpp"

namespace dist::grpc_link {

class Endpoint final : public Transport, public LinkOwner, public CarrierUser {
 public:
  // If `carriers` is NULL, gRPC moves all data.
  Endpoint(Memory& memory, Config config, std::unique_ptr<Carriers> carriers = nullptr);
  ~Endpoint();

  // Starts to listen. Returns an empty string, or the reason for a failure.
  std::string start();
  // Shuts the endpoint down, after waiting until peers have received what was sent, for at most the lease. If
  // `known` is not NULL, this worker will return in another endpoint to form a generation, and `known`
  // receives what it knows about the others. Further calls have no effect.
  void stop(Parting* known = nullptr) noexcept;

  int num_workers() const noexcept override { return static_cast<int>(peers_.size()); }
  int me() const noexcept override { return config_.me; }
  std::size_t credit() const noexcept override { return config_.credit; }
  void send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
            Transfer& transfer) noexcept override;
  void receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
               Transfer& transfer) noexcept override;
  void cancel(Transfer& transfer) noexcept override;
  void forget(uint32_t generation, uint32_t run) noexcept override;
  void progress() noexcept override {}
  bool up_to_date() const noexcept override;
  bool given_up() const noexcept override { return is_given_up_; }
  bool lost(int worker) const noexcept override;
  bool left(int worker) const noexcept override;
  bool rejected(int worker) const noexcept override;
  void why_lost(int worker, char* text, std::size_t size) const noexcept override;
  int num_connections() const noexcept override;
  void listen(TransportListener* listener) noexcept override;
  void close() noexcept override;

  // ---- For networks that form generations (forming.cpp) ----
  // Waits until worker 0 has decided which workers take part. On worker 0, decides it. On failure, `why`
  // receives the reason.
  dist_status form(const Forming& wanted, Formed* out, std::string* why) noexcept;
  bool has_newcomers() const noexcept;

  std::string took(const LinkRef& link, std::span<const grpc::Slice> message) noexcept override;
  bool more(Link& link) noexcept override;
  void over(const LinkRef& link, const std::string& why, const std::string& status) noexcept override;
  bool carried(const LinkRef& link, const Carrier& carrier) noexcept override;
  std::string took_carried(const LinkRef& link, std::span<const std::byte> piece) noexcept override;
  bool next_apart(Link& link, Piece* piece) noexcept override;
  const char* begin_apart(Link& link, const Piece& piece) noexcept override;
  std::ptrdiff_t send_apart(Link& link, Carrier& carrier,
                            std::span<const std::byte> before) noexcept override;
  std::ptrdiff_t receive_apart(Link& link, Carrier& carrier, std::size_t most,
                               const char** why) noexcept override;
  void moved_apart(const LinkRef& link) noexcept override;
  void carrier_over(const LinkRef& link, const Carrier& carrier, const std::string& why) noexcept override;

 private:
  // What this worker knows about the state of another, authenticated one.
  enum class Life { kUnknown, kHere, kLost, kLeft };

  struct Peer {
    Peer(Memory& memory, int worker, std::string named, std::size_t credit, bool carried)
        : number(worker),
          name(std::move(named)),
          outbox(out_queue, credit, carried ? kCarriedBytes : kChunkBytes,
                 carried ? Piece::kLeastMessageBytes : SIZE_MAX),
          inbox(memory, in_queue, credit, carried ? kCarriedBytes : SIZE_MAX, carried) {}

    const int number;
    const std::string name;  // "worker 2 (10.0.0.7:2222)"

    // ---- Sending; protected by `out_mutex` ----
    std::mutex out_mutex;
    FrameQueue out_queue;
    Outbox outbox;
    LinkRef out;
    Route route;
    bool out_wanted = false;  // there is something to send, but no link yet
    bool out_gone = false;    // nothing is sent to it any more
    bool bye_said = false;
    int64_t out_retry_ns = 0;  // when to try again; 0: not scheduled

    // ---- Receiving; protected by `in_mutex` ----
    std::mutex in_mutex;
    FrameQueue in_queue;
    Inbox inbox;
    LinkRef in;
    bool in_gone = false;     // nothing is received from it any more
    int64_t in_until_ns = 0;  // deadline for a lost peer whose link still exists; 0: none

    // ---- Protected by `members_` ----
    Life life = Life::kUnknown;
    bool leaves = false;   // it has announced that it leaves
    bool rejects = false;  // it is lost because it, or worker 0, has rejected this worker
    Identity incarnation{};
    bool known = false;  // whether the incarnation is known
    LinkRef control;     // worker 0: the link to this peer; others, in worker 0's entry: the link to worker 0
    FrameQueue control_queue;
    std::string why;
    Reasons failed_attempts;  // results of the attempts to reach it since it was last reached
    Reasons causes;           // causes of these failures, as probes have found them
    std::string early_cause;  // what a probe that is waiting for the peer knows so far; empty: nothing
    int64_t probe_ns = 0;     // when it may be probed next; 0: not scheduled
    int64_t probed_ns = 0;    // when it was last probed
    int64_t probe_pause_ns = 0;
    bool left_told = false;   // the peer has been told that this worker has left
    bool left_taken = false;  // the peer has acknowledged that
    bool comes_back = false;  // it has left to form another generation
    int64_t asked_ns = 0;     // when a restarted instance of it last asked to join; 0: never
    uint32_t came_from = kNoGeneration;
    bool asked = false;     // it must answer the latest question
    uint64_t answered = 0;  // the latest question that it has answered

    std::atomic<int64_t> heard_ns{0};
    std::atomic<bool> connected{false};
    std::atomic<bool> gone{false};
  };

  class ControlTaker;

  bool hub() const noexcept { return config_.me == 0; }
  // Whether this worker leaves and will not return in another endpoint. A worker of another job may then be
  // the next one at its address.
  bool ends() const noexcept { return closed_ && !to_form_; }
  // If this worker did not run for this long, its peers may already consider it lost: they count from the
  // last message that they received.
  int64_t doubtful_ns() const noexcept { return config_.lease_ns / 2; }
  Peer& at(int worker) noexcept { return peers_[static_cast<std::size_t>(worker)]; }
  const Peer& at(int worker) const noexcept { return peers_[static_cast<std::size_t>(worker)]; }
  void tell() noexcept;

  // ---- endpoint.cpp ----
  void begin_out(Peer& peer) noexcept;
  void end_out(Peer& peer, Transfer::End end, bool cut) noexcept;
  void end_in(Peer& peer, Transfer::End end, bool cut) noexcept;
  void over_data(const LinkRef& link, const std::string& why, const std::string& status) noexcept;
  std::string took_data_in(const LinkRef& link, std::span<const grpc::Slice> message) noexcept;
  std::string took_data_out(const LinkRef& link, std::span<const grpc::Slice> message) noexcept;

  // ---- handshake.cpp: how links begin ----
  // Returns NULL if the peer's host name has not been resolved yet. `why` receives the reason if it is known.
  LinkRef make_client(Peer& peer, Purpose purpose, std::string* why);
  void say_hello(Link& link, const Identity& receiver) noexcept;
  std::string took_hello(const LinkRef& link, std::span<const std::byte> message) noexcept;
  std::string took_answer(const LinkRef& link, std::span<const std::byte> message) noexcept;
  std::string took_proof(const LinkRef& link, std::span<const std::byte> message) noexcept;
  std::string took_admission(const LinkRef& link, std::span<const std::byte> message) noexcept;
  Fault fault_of(const std::string& certificate, int worker) const;
  std::string why_not(const Link& link, const Hello& hello) const;
  std::string not_in_this_generation(const Hello& hello) noexcept;
  void stranger_over(Link& link) noexcept;
  void note_stranger(int claimed, const std::string& what) noexcept;
  std::string admit(const LinkRef& link, const Hello& hello, Admission::Answer* answer) noexcept;

  // ---- meeting.cpp: the carriers of data links ----
  bool carries(const Link& link) const noexcept {
    return carriers_ != nullptr && link.purpose == Purpose::kData;
  }
  std::string carrier_host(const Link& link) const;
  std::string make_carrier(const LinkRef& link, uint32_t attempt) noexcept;
  std::string begin_meeting(const LinkRef& link, uint32_t after) noexcept;
  std::string took_meeting(const LinkRef& link, std::span<const std::byte> message) noexcept;
  void start_carrier(const LinkRef& link, const Meet& other) noexcept;
  void say_failed(Link& link, uint32_t attempt) noexcept;
  void join_carriers(bool all) noexcept;
  void end_late_carriers(int64_t now, int64_t* next) noexcept;

  // ---- members.cpp: liveness ----
  void begin_control() noexcept;
  std::string took_control(const LinkRef& link, std::span<const grpc::Slice> message) noexcept;
  void introduce(Peer& newcomer) noexcept;
  void say(Peer& to, const Frame& frame, const std::byte* data = nullptr) noexcept;
  void say_to_all(const Frame& frame, const std::byte* data, const Peer* but) noexcept;
  bool know(Peer& peer, const Identity& incarnation) noexcept;
  int64_t silent_since_ns(const Peer& peer) const noexcept;
  void declare_lost(Peer& peer, const std::string& why, bool at_once, bool rejects = false) noexcept;
  void declare_left(Peer& peer, bool comes_back) noexcept;
  void leaves_unmet(Peer& peer) noexcept;
  void refused(const std::string& why, bool rejects) noexcept;
  void given_up(const std::string& why) noexcept;
  std::string standstill() const;
  void link_broke(Peer& peer, const std::string& why, bool at_once) noexcept;
  void over_control(Peer& peer, const LinkRef& link, const std::string& why,
                    const std::string& status) noexcept;
  void cannot_reach(Peer& peer, const std::string& status, bool answers) noexcept;
  std::string known_of(const Peer& peer) const;
  bool may_probe(Peer& peer, int64_t now) noexcept;
  void probed(Peer& peer, const std::string& cause, bool final) noexcept;
  void ended_unproven(int from) noexcept;
  void reached(Peer& peer) noexcept;
  void look_for(Peer& peer) noexcept;

  // ---- leaving.cpp ----
  void leave_if_done() noexcept;
  bool all_taken() noexcept;
  bool must_learn(const Peer& peer) const noexcept;

  // ---- forming.cpp: generations ----
  void begin_generation(const Forming& wanted) noexcept;
  void leave_out_others() noexcept;
  WorkerSet come() const noexcept;
  WorkerSet away() const noexcept;
  WorkerSet newcomers() const noexcept;
  Parting knows() noexcept;
  dist_status look_as_leader(const Forming& wanted, int64_t waited_ns, std::string* why) noexcept;
  void stood_still(int64_t now) noexcept;
  dist_status look_for_leader(int64_t now, std::string* why) const noexcept;
  const char* check_formed(const Frame& frame) const noexcept;
  void take_formed(const Frame& frame, const std::byte* data) noexcept;

  // ---- watch.cpp: periodic work ----
  int64_t look(const Turn& turn) noexcept override;
  void doubt(int64_t gap_ns) noexcept;
  void trust_if_answered() noexcept;

  Memory& memory_;
  Digest cluster_{};
  Identity incarnation_{};
  std::deque<Peer> peers_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> to_form_{false};
  std::atomic<int64_t> asked_ns_{0};        // when a peer was last asked
  std::atomic<int64_t> looked_ns_{0};       // when the watcher last ran, by boot_now_ns()
  std::atomic<bool> doubts_{false};         // whether peers may consider this worker lost
  std::atomic<int64_t> stood_still_ns_{0};  // if so: for how long this process did not run
  std::atomic<bool> is_given_up_{false};    // peers consider this worker lost

  mutable std::mutex members_;
  int64_t control_retry_ns_ = 0;
  bool refused_ = false;
  bool given_up_ = false;  // by worker 0, before the generation was formed, so another network follows
  JobIdentity job_{};
  bool formed_ = false;  // `generation_` has been decided
  Formed generation_;
  int64_t answered_ns_ = 0;      // time of worker 0's latest answer, whatever it was
  int64_t nobody_since_ns_ = 0;  // since when connections to worker 0's address are refused; 0: they are not
  bool worker_0_broke_ = false;  // the link to worker 0 broke without notice
  bool turned_away_ = false;     // worker 0's latest answer was that this worker should ask again later
  bool met_ = false;             // worker 0 has admitted this worker
  uint64_t question_ = 0;        // number of the latest question whether peers still know this worker
  Route control_route_;

  const std::unique_ptr<Carriers> carriers_;
  std::string carrier_host_;  // the address on which carriers listen; empty: chosen for each peer
  std::mutex making_;
  std::vector<CarrierRef> made_;  // carriers whose threads have not been joined

  std::mutex listening_;
  TransportListener* listener_ = nullptr;
};

}  // namespace dist::grpc_link
