// SPDX-License-Identifier: Apache-2.0
// Endpoint: a worker's transport over gRPC. Every worker has a control link to worker 0 from the start;
// worker 0 tracks who has joined and who is alive. Data links are made on demand, to workers that have
// joined.
//
// Lock order: a peer's lock (of its sending or its receiving half), the members' lock, a link's or a queue's.
// None of them is held while a link is started, flushed or ended, or while the listener is called.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/os/thread.hpp"
#include "core/engine/forming.hpp"
#include "core/engine/grpc/config.hpp"
#include "core/engine/grpc/inbox.hpp"
#include "core/engine/grpc/link.hpp"
#include "core/engine/grpc/outbox.hpp"
#include "core/engine/transport.hpp"

namespace dist::grpc_link {

class Endpoint final : public Transport, public LinkUser, public CarrierUser {
 public:
  // `carriers` NULL: gRPC carries all itself.
  Endpoint(Memory& memory, Config config, std::unique_ptr<Carriers> carriers = nullptr);
  ~Endpoint();

  // "": it listens.
  std::string start();
  // The end of it: waits until what was sent has been taken, for the lease at most. With `known` this worker comes back in
  // another endpoint, to form a generation. Again is the same as once.
  void stop(Parting* known = nullptr) noexcept;
  // The port that it listens on.
  int port() const noexcept { return port_; }

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
  bool lost(int worker) const noexcept override;
  bool left(int worker) const noexcept override;
  void why_lost(int worker, char* text, std::size_t size) const noexcept override;
  int num_connections() const noexcept override;
  void listen(TransportListener* listener) noexcept override;
  void close() noexcept override;

  // ---- Of one that forms (forming.cpp) ----
  // Waits until worker 0 says who takes part, which is worker 0's to decide. Not OK: `why` says why.
  dist_status form(const Forming& wanted, Formed* out, std::string* why) noexcept;
  bool has_newcomers() const noexcept;

  std::string took(const LinkRef& link, std::span<const grpc::Slice> message) noexcept override;
  bool more(Link& link) noexcept override;
  void over(const LinkRef& link, const std::string& why, const std::string& status) noexcept override;
  void destroyed() noexcept override;
  bool carried(const LinkRef& link, const Carrier& carrier) noexcept override;
  std::string took_carried(const LinkRef& link, std::span<const std::byte> piece) noexcept override;
  bool next_apart(Link& link, Piece* piece) noexcept override;
  const char* begin_apart(Link& link, const Piece& piece) noexcept override;
  std::ptrdiff_t send_apart(Link& link, int socket, std::span<const std::byte> before) noexcept override;
  std::ptrdiff_t receive_apart(Link& link, int socket, std::size_t most, const char** why) noexcept override;
  void moved_apart(const LinkRef& link) noexcept override;
  void carrier_over(const LinkRef& link, const Carrier& carrier, const std::string& why) noexcept override;

 private:
  // What a proven worker is known to be.
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

    // ---- What goes there; under `out_mutex` ----
    std::mutex out_mutex;
    FrameQueue out_queue;
    Outbox outbox;
    LinkRef out;
    std::shared_ptr<grpc::Channel> channel;
    bool out_wanted = false;  // there is something to send, and no link yet
    bool out_gone = false;    // it gets nothing any more
    bool bye_said = false;
    int64_t out_retry_ns = 0;   // 0: none is due
    int refusals_in_a_row = 0;  // of TLS

    // ---- What comes from there; under `in_mutex` ----
    std::mutex in_mutex;
    FrameQueue in_queue;
    Inbox inbox;
    LinkRef in;
    bool in_gone = false;     // nothing comes any more
    int64_t in_until_ns = 0;  // of a lost one whose link is still there; 0: none

    // ---- Under `members_` ----
    Life life = Life::kUnknown;
    bool leaves = false;  // it has said goodbye
    Identity incarnation{};
    bool known = false;  // the incarnation
    LinkRef control;     // worker 0's to it; at worker 0's place: one's own to worker 0
    FrameQueue control_queue;
    std::string why;
    bool left_told = false;   // to it, that this one has left
    bool left_taken = false;  // it has heard so
    bool comes_back = false;  // it has left to form another generation
    int64_t asked_ns = 0;     // when another start of it has last asked to be let in; 0: never
    uint32_t came_from = kNoGeneration;
    bool asked = false;     // it has to answer the latest of the questions
    uint64_t answered = 0;  // the latest that it has

    std::atomic<int64_t> heard_ns{0};
    std::atomic<bool> connected{false};
    std::atomic<bool> gone{false};
  };

  class Service final : public grpc::CallbackGenericService {
   public:
    explicit Service(Endpoint& owner) noexcept : owner_(owner) {}
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;

   private:
    Endpoint& owner_;
  };
  class ControlTaker;

  bool hub() const noexcept { return config_.me == 0; }
  // Who has stood still for so long may have been given up: others count from what they have heard last.
  int64_t doubtful_ns() const noexcept { return config_.lease_ns / 2; }
  Peer& at(int worker) noexcept { return peers_[static_cast<std::size_t>(worker)]; }
  const Peer& at(int worker) const noexcept { return peers_[static_cast<std::size_t>(worker)]; }
  void tell() noexcept;
  void wake() noexcept;

  // ---- endpoint.cpp ----
  void begin_out(Peer& peer) noexcept;
  void end_out(Peer& peer, Transfer::End end, bool cut) noexcept;
  void end_in(Peer& peer, Transfer::End end, bool cut) noexcept;
  void over_data(const LinkRef& link, const std::string& why, const std::string& status) noexcept;
  std::string took_data_in(const LinkRef& link, std::span<const grpc::Slice> message) noexcept;
  std::string took_data_out(const LinkRef& link, std::span<const grpc::Slice> message) noexcept;

  // ---- handshake.cpp: how a link begins ----
  LinkRef make_client(Peer& peer, Purpose purpose);
  void say_hello(Link& link, const Identity& receiver) noexcept;
  std::string took_hello(const LinkRef& link, std::span<const std::byte> message) noexcept;
  std::string took_answer(const LinkRef& link, std::span<const std::byte> message) noexcept;
  std::string took_proof(const LinkRef& link, std::span<const std::byte> message) noexcept;
  std::string took_verdict(const LinkRef& link, std::span<const std::byte> message) noexcept;
  std::string why_not(const Link& link, const Hello& hello) const;
  std::string not_in_this_generation(const Hello& hello) noexcept;
  void stranger_over(Link& link) noexcept;
  void note_stranger(const Hello& hello, const std::string& what) noexcept;
  std::string admit(const LinkRef& link, const Hello& hello, Verdict::Answer* answer) noexcept;
  grpc::ServerGenericBidiReactor* accept(grpc::GenericCallbackServerContext* context);
  void proven(const Link& link) noexcept;

  // ---- meeting.cpp: the carriers of data links ----
  bool carries(const Link& link) const noexcept {
    return carriers_ != nullptr && link.purpose == Purpose::kData;
  }
  std::string make_carrier(const LinkRef& link, uint32_t attempt) noexcept;
  std::string begin_meeting(const LinkRef& link, uint32_t after) noexcept;
  std::string took_meeting(const LinkRef& link, std::span<const std::byte> message) noexcept;
  void start_carrier(const LinkRef& link, const Meet& other) noexcept;
  void say_failed(Link& link, uint32_t attempt) noexcept;
  void reap_carriers(bool all) noexcept;

  // ---- members.cpp: who lives ----
  void begin_control() noexcept;
  std::string took_control(const LinkRef& link, std::span<const grpc::Slice> message) noexcept;
  void introduce(Peer& newcomer) noexcept;
  void say(Peer& to, const Frame& frame, const std::byte* data = nullptr) noexcept;
  void say_to_all(const Frame& frame, const std::byte* data, const Peer* but) noexcept;
  bool know(Peer& peer, const Identity& incarnation) noexcept;
  void declare_lost(Peer& peer, const std::string& why, bool at_once) noexcept;
  void declare_left(Peer& peer, bool comes_back) noexcept;
  void refused(const std::string& why) noexcept;
  void given_up(const std::string& why) noexcept;
  void over_control(Peer& peer, const LinkRef& link, const std::string& why,
                    const std::string& status) noexcept;
  void cannot_reach(Peer& peer, const std::string& status, bool answers) noexcept;

  // ---- leaving.cpp: the end of it ----
  void leave_if_done() noexcept;
  bool all_taken() noexcept;

  // ---- forming.cpp: who takes part ----
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

  // ---- watch.cpp: what is due ----
  static void* watch_main(void* self);
  void watch() noexcept;
  int64_t look(int64_t now, bool paused) noexcept;
  void doubt() noexcept;
  void trust_if_answered() noexcept;

  Memory& memory_;
  const Config config_;
  Digest cluster_{};
  Identity incarnation_{};
  std::deque<Peer> peers_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> to_form_{false};
  std::atomic<int64_t> asked_ns_{0};   // the latest of the peers'
  std::atomic<int64_t> looked_ns_{0};  // when the watcher has
  std::atomic<bool> doubts_{false};    // whether the others still know of this worker

  mutable std::mutex members_;
  std::vector<LinkRef> unproven_;
  int64_t control_retry_ns_ = 0;
  bool refused_ = false;
  bool given_up_ = false;  // by worker 0, before there was a generation: there is a next one
  JobIdentity job_{};
  bool formed_ = false;  // who takes part is known: `generation_`
  Formed generation_;
  int64_t answered_ns_ = 0;      // when worker 0 has answered last, whatever it said
  int64_t nobody_since_ns_ = 0;  // since when nobody listens at its address; 0: somebody may
  bool leader_broke_ = false;    // the link to worker 0 has, without a word
  bool met_ = false;             // worker 0 has let this one in
  uint64_t question_ = 0;        // the latest, to those who are to say that they know of this worker
  std::shared_ptr<grpc::Channel> control_channel_;

  const std::unique_ptr<Carriers> carriers_;
  std::mutex making_;
  std::vector<CarrierRef> made_;  // whose threads have not been waited for

  Service service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  Thread watcher_;

  std::mutex waking_;
  std::condition_variable woken_;
  uint64_t changes_ = 0;  // that somebody may wait for
  bool stopping_ = false;
  int links_ = 0;  // that are

  std::mutex listening_;
  TransportListener* listener_ = nullptr;
};

}  // namespace dist::grpc_link
