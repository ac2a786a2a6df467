// SPDX-License-Identifier: Apache-2.0
// ShmTransport: a transport on top of another one. Messages to workers on the same machine use shared memory
// (link.hpp). All others use the transport below, which also decides which workers have joined, left or are
// lost.
//
// The first transfer between two workers begins their introduction (introduction.hpp). Until both ends know
// whether it has succeeded, the transfers of this pair are held back. Then all of them use the same
// connection. Meanwhile, messages that fit into the credit are copied. So their sends complete as usual, and
// the messages arrive even if the sender leaves at once; in that case they use the transport below. A worker
// that must not use shared memory says so in its introduction and does not wait.
//
// One thread for all peers makes and answers introductions, is woken by the bells of peers, and notices the
// end of processes.
//
// Lock order: a peer's lock, a link's lock, locks of the transport below. None is held while the listener is
// called.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <mutex>
#include <vector>

#include "core/base/host.hpp"
#include "core/base/memory.hpp"
#include "core/base/os/event.hpp"
#include "core/base/os/file.hpp"
#include "core/base/os/local_socket.hpp"
#include "core/base/os/thread.hpp"
#include "core/net/forwarding_transport.hpp"
#include "core/net/shm/introduction.hpp"
#include "core/net/shm/link.hpp"

namespace dist {

class ShmTransport final : public ForwardingTransport, private TransportListener {
 public:
  struct Options {
    char refuses[48] = "";  // why this worker does not use shared memory; "" if it does
    bool reads = true;      // it may read the memory of its peers
  };

  // `below` must outlive this object and have no transfer. Throws std::bad_alloc.
  ShmTransport(Memory& memory, Transport& below, const Options& options);
  // The transport must have been closed.
  ~ShmTransport();

  std::size_t credit() const noexcept override { return credit_; }
  void send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
            Transfer& transfer) noexcept override;
  void receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
               Transfer& transfer) noexcept override;
  void cancel(Transfer& transfer) noexcept override;
  void forget(uint32_t generation, uint32_t run) noexcept override;
  void progress() noexcept override;
  bool lost(int worker) const noexcept override;
  void why_lost(int worker, char* text, std::size_t size) const noexcept override;
  int num_connections() const noexcept override;
  void listen(TransportListener* listener) noexcept override;
  void close() noexcept override;
  bool polls() const noexcept override { return links_.load(std::memory_order_relaxed) != 0; }
  void poll(bool begins) noexcept override;
  void sleep(bool begins) noexcept override;
  bool shares_cpu() noexcept override;
  void log_to(const Host& host) noexcept override;

  // How this worker communicates with the others: "worker 1 by shared memory". Adds nothing for a worker with
  // which no message has been exchanged.
  void describe(char* text, std::size_t size) const noexcept;
  // This worker leaves; the transport below will be closed next.
  void close_links() noexcept;

 private:
  // The connection that a peer's transfers use.
  enum class Mode : uint32_t { kUnknown, kShared, kBelow };
  enum class Stage : uint8_t {
    kUntouched,
    kIntroducing,  // waits for the peer's introduction
    kMeeting,      // waits for a handshake
    kConcluding,   // waits for the peer's outcome
    kDecided
  };

  // A message that is held back, although its send has completed. The data follow the object in memory.
  struct Copy : Transfer {
    std::size_t bytes = 0;
    Copy* next_copy = nullptr;
    std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  };

  struct Peer {
    explicit Peer(int worker) noexcept : number(worker) {}

    const int number;
    std::atomic<Mode> mode{Mode::kUnknown};
    std::atomic<bool> touched{false};
    std::atomic<bool> broken{false};  // lost according to this transport
    shm::Link* link = nullptr;        // used if the mode is kShared

    mutable std::mutex mutex;
    Transfer* held = nullptr;          // transfers that are held back, the latest first
    Copy* copies = nullptr;            // until they have been sent
    std::size_t copied_bytes = 0;      // as counted against the credit
    bool swept = false;                // its transfers have been ended because it is lost
    char why[shm::kReasonBytes] = "";  // why it does not use shared memory

    // ---- Used only by the thread, or before it starts ----
    Stage stage = Stage::kUntouched;
    Transfer introduction_out, receive_introduction, outcome_out, receive_outcome;
    std::byte own_introduction[shm::Introduction::kBytes];
    std::byte their_introduction[shm::Introduction::kBytes];
    std::byte own_outcome[shm::Outcome::kBytes];
    std::byte their_outcome[shm::Outcome::kBytes];
    shm::Token token{};
    shm::Introduction introduced;
    std::size_t credit = 0;
    shm::Link::Connection connection;
    int64_t until_ns = 0;
    int64_t ended_ns = 0;  // when the end of its process was noticed; 0: not yet
    bool socket_ended = false;
    int bell_at = -1;  // indexes of its descriptors in watched_
    int end_at = -1;
  };
  // A process that has connected to the local socket and has not identified itself.
  struct Stranger {
    Descriptor socket;
    int64_t until_ns;
    bool heard = false;
    shm::Handshake said = {};
  };

  Peer& at(int worker) noexcept { return peers_[static_cast<std::size_t>(worker)]; }
  const Peer& at(int worker) const noexcept { return peers_[static_cast<std::size_t>(worker)]; }
  void happened() noexcept override;
  void tell() noexcept;
  void wake() noexcept;
  void touch(Peer& peer) noexcept;
  bool hold(Peer& peer, const Transfer::Message& message, bool sends, Transfer& transfer) noexcept;
  Copy* copy(Peer& peer, const Transfer::Message& message, std::size_t used) noexcept;
  Transfer* take_held(Peer& peer) noexcept;
  void free_copies(Peer& peer) noexcept;
  [[nodiscard]] bool decide(Peer& peer, Mode mode) noexcept;
  void leave(Peer& peer) noexcept;
  void sweep() noexcept;
  void describe_way(const Peer& peer, char* text, std::size_t size) const noexcept;
  bool gone(const Peer& peer) const noexcept { return peer.broken || below_.lost(peer.number); }

  // ---- shm_introduction.cpp: on the thread ----
  static void* thread_main(void* self);
  void start_thread() noexcept;
  void run() noexcept;
  int look(int64_t now) noexcept;
  void introduce(Peer& peer) noexcept;
  void send_introduction(Peer& peer, const char* refuses) noexcept;
  void go_on(Peer& peer, int64_t now) noexcept;
  void took_introduction(Peer& peer, int64_t now) noexcept;
  void connect(Peer& peer, int64_t now) noexcept;
  void take_handshake(Peer& peer) noexcept;
  void take_strangers(int64_t now) noexcept;
  bool take_stranger(Stranger& stranger) noexcept;
  bool say(Peer& peer, bool with_memory) noexcept;
  Status take_memory(Peer& peer, const shm::Handshake& said, const Descriptor& descriptor) noexcept;
  void conclude(Peer& peer, const char* failed) noexcept;
  void send_outcome(Peer& peer, const char* failed) noexcept;
  void works(Peer& peer) noexcept;
  void take_outcome(Peer& peer) noexcept;
  void settle(Peer& peer, bool works, const char* why) noexcept;
  void watch(int timeout_ms) noexcept;
  bool note_changes() noexcept;

  Memory& memory_;
  const Options options_;
  const std::size_t credit_;
  std::pmr::deque<Peer> peers_;
  std::atomic<bool> closed_{false};
  std::atomic<int> links_{0};
  std::atomic<int> pollers_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> news_{false};  // the transport below has called happened()

  mutable std::mutex listening_;
  TransportListener* listener_ = nullptr;
  Host host_;

  std::atomic<bool> running_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> woken_{false};
  Thread thread_;
  EventDescriptor event_;

  // ---- Used only by the thread ----
  Descriptor listener_socket_;
  std::byte boot_[16] = {};
  char name_[shm::Introduction::kNameBytes] = "";
  std::pmr::vector<Stranger> strangers_;
  WatchList watched_;
  std::pmr::vector<uint8_t> known_;  // what the listener was last notified of, for each worker
  bool was_up_to_date_ = true;
};

}  // namespace dist
