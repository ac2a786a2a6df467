// SPDX-License-Identifier: Apache-2.0
// Link: the messages between this process and one other process of the same machine.
//
// The sender copies a message that fits into the credit to the ring in the receiver's region, and the send
// has then completed. It offers a larger message by writing its address and size to the ring. When a receive
// asks for the message, the receiver reads the data from the sender's memory if the system allows it.
// Otherwise the sender copies them through the ring in chunks.
//
// A link has no thread; the threads that call it move the data. A thread that publishes something rings the
// peer's bell if the peer has asked for that. The peer asks for it if none of its threads polls, and
// transfers wait or a thread sleeps.
//
// Invariant: the peer may write anything into the shared memory at any time. The only consequences are that
// this process ends the link, or receives other bytes than the peer meant to send. The memory that a peer can
// make it keep is bounded by the credit and by the number of slots.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/os/file.hpp"
#include "core/base/os/shared_memory.hpp"
#include "core/net/shm/region.hpp"
#include "core/net/transport.hpp"

namespace dist::shm {

class Link {
 public:
  // What connects this process to the peer.
  struct Connection {
    SharedMemory own;     // this end receives from it
    SharedMemory theirs;  // this end sends into it
    Descriptor socket;    // connected to the peer; a byte on it wakes the peer
    int64_t process = 0;  // the peer's process id as seen here; 0: unknown
    Descriptor ends;      // readable when the peer has ended; not open if the system has no such descriptor
    uint64_t own_salt = 0;
    uint64_t their_salt = 0;
    bool reads = false;  // this process may read the peer's memory; needs `ends`
  };

  Link(Memory& memory, std::size_t credit, const std::atomic<int>& pollers,
       const std::atomic<int>& sleepers) noexcept;
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Must be called before any other function.
  void open(Connection connection) noexcept;

  // The functions of Transport. They return true if a transfer has ended, so that the listener must be
  // notified.
  bool send(const Transfer::Message& message, Transfer& transfer) noexcept;
  bool receive(const Transfer::Message& message, Transfer& transfer) noexcept;
  bool cancel(Transfer& transfer) noexcept;
  bool forget(uint32_t generation, uint32_t run) noexcept;
  bool progress() noexcept {
    // acquire: pairs with the sender's release of the mark.
    const bool news =
        own_.header(next_at_.load(std::memory_order_relaxed)).mark.load(std::memory_order_acquire) ==
        next_mark_.load(std::memory_order_relaxed);
    // relaxed: a thread that acts on this takes the lock.
    if (!news && busy_.load(std::memory_order_relaxed) == 0 &&
        own_.control().wants_room.load(std::memory_order_relaxed) == 0) [[likely]]
      return false;
    return advance();
  }
  // Nothing more will arrive from the peer. Messages that it has sent can still be received.
  bool lose() noexcept;
  // This worker leaves.
  bool close() noexcept;

  // Must be called after the number of polling or sleeping threads has changed. Asks the peer to ring the
  // bell, or not to.
  bool attend() noexcept;
  // Whether attend() may have something to do after a thread has begun or stopped polling.
  bool must_attend() const noexcept {
    // seq_cst: either this thread sees the waiting transfer, or the thread that began it sees that no thread
    // polls.
    return waiting_.load(std::memory_order_seq_cst) != 0 ||
           own_.control().bell.load(std::memory_order_relaxed) != 0;
  }
  // A thread polls on `cpu` (-1: unknown). Returns whether the last thread of the peer that polled did so on
  // the same CPU.
  bool shares_cpu(int cpu) noexcept {
    const auto here = static_cast<uint32_t>(cpu + 1);
    std::atomic<uint32_t>& own = own_.control().cpu;
    if (own.load(std::memory_order_relaxed) != here) own.store(here, std::memory_order_relaxed);
    return here != 0 && theirs_.control().cpu.load(std::memory_order_relaxed) == here;
  }
  // Call this when the socket has woken a thread. Returns false if the peer has closed the socket.
  bool take_bell() noexcept;

  const Descriptor& socket() const noexcept { return connection_.socket; }
  int64_t process() const noexcept { return connection_.process; }
  const Descriptor& ends() const noexcept { return connection_.ends; }
  bool reads() const noexcept { return reads_.load(std::memory_order_relaxed); }
  std::size_t shared_bytes() const noexcept { return connection_.own.bytes() + connection_.theirs.bytes(); }
  // The rule that the peer has broken; NULL: none. Can be called on any thread.
  const char* violation() const noexcept { return violation_.load(std::memory_order_acquire); }

 private:
  static constexpr std::size_t kBuckets = 64;
  // Number of bytes read from the peer's memory at a time. Between two reads, other threads can cancel.
  static constexpr std::size_t kSlice = std::size_t{1} << 20;

  // A message that has no receive yet, or an offer. A message's data follow the object in memory.
  struct Entry {
    MessageKey key;
    std::size_t bytes = 0;
    std::size_t room = 0;
    std::size_t moved = 0;
    uint64_t place = 0;
    int slot = -1;                // -1: a message that was sent ahead
    Transfer* receive = nullptr;  // of a granted offer
    enum class How : uint8_t { kWaits, kPulls, kChunks, kVoid } how = How::kWaits;
    Entry* next = nullptr;  // in its bucket
    Entry** before = nullptr;
    std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  };
  struct Bucket {
    Transfer* receives = nullptr;
    Entry* entries = nullptr;
  };
  struct List {
    Transfer* first = nullptr;
    Transfer** end = &first;
  };

  static std::size_t bucket_of(const MessageKey& key) noexcept { return key.hash() % kBuckets; }
  bool forgotten(const MessageKey& key) const noexcept { return key.before(first_generation_, first_run_); }
  static void begin(const Transfer::Message& message, bool sends, Transfer& transfer) noexcept;
  void end(Transfer& transfer, Transfer::End end) noexcept;
  // Ends a transfer during the call that began it, so that no other thread can be waiting for it.
  static void end_at_once(Transfer& transfer, Transfer::End end) noexcept { transfer.finish(end); }
  bool take_ended() noexcept;
  bool advance() noexcept;
  void work() noexcept;
  bool settle(std::unique_lock<std::mutex>& lock) noexcept;
  void finish_pulls(std::unique_lock<std::mutex>& lock) noexcept;
  void began_to_wait(Transfer& transfer) noexcept;
  void violated(const char* rule) noexcept;
  bool open_for_use() const noexcept { return !gone_ && !closed_; }

  // ---- Sending ----
  bool has_room(std::size_t bytes) noexcept;
  bool has_credit(std::size_t bytes) noexcept;
  // Writes `bytes` bytes of the data.
  void put(const Frame& frame, const std::byte* data, std::size_t bytes) noexcept;
  void fetch_ahead(std::size_t bytes) const noexcept;
  bool offer(Transfer& transfer) noexcept;
  int free_slot() noexcept;
  void must_drop(std::size_t slot) noexcept;
  void put_drops() noexcept;
  void look_at_slots() noexcept;
  void put_chunks(std::size_t slot) noexcept;
  bool withdraw(std::size_t slot) noexcept;
  void end_sends(Transfer::End end) noexcept;
  void append(Transfer& transfer) noexcept;
  void take_out(Transfer& transfer) noexcept;
  void ring() noexcept;

  // ---- Receiving ----
  void drain() noexcept;
  void take(const Frame& frame, uint64_t at) noexcept;
  void take_message(const Frame& frame, uint64_t at) noexcept;
  void take_offer(const Frame& frame) noexcept;
  void take_chunk(const Frame& frame, uint64_t at) noexcept;
  void take_drop(const Frame& frame) noexcept;
  void copy_out(uint64_t at, std::byte* to, std::size_t bytes) const noexcept;
  void match(Transfer& transfer, bool begins) noexcept;
  void wait(Transfer& transfer) noexcept;
  Transfer* take_receive(const MessageKey& key) noexcept;
  void unlink(Transfer& transfer) noexcept;
  Entry* make(const MessageKey& key, std::size_t bytes, std::size_t room) noexcept;
  void link_by_key(Entry& entry) noexcept;
  void unlink_by_key(Entry& entry) noexcept;
  void remove(Entry* entry) noexcept;
  bool grant(Entry& entry, Transfer& transfer) noexcept;
  void pull(std::size_t slot) noexcept;
  void cannot_pull(std::size_t slot) noexcept;
  bool answer(std::size_t slot, SlotState from, SlotState to) noexcept;
  void wait_again(Entry& entry) noexcept;
  void give_back(std::size_t bytes) noexcept;
  void tell_read() noexcept;
  void end_receives(Transfer::End end) noexcept;

  Memory& memory_;
  const std::size_t credit_;
  const Layout layout_;
  const std::atomic<int>& pollers_;
  const std::atomic<int>& sleepers_;
  Connection connection_;
  std::atomic<bool> reads_{false};
  Region own_;
  Region theirs_;

  // The next frame to read: the position of its header, and the mark that the header will have. Written under
  // the lock.
  alignas(kLine) std::atomic<std::size_t> next_at_{0};
  std::atomic<uint64_t> next_mark_{0};
  // Number of transfers and slots that progress() must check besides the ring.
  std::atomic<int> busy_{0};

  alignas(kLine) std::mutex mutex_;
  bool ended_ = false;
  bool gone_ = false;
  bool closed_ = false;
  std::atomic<const char*> violation_{nullptr};
  std::atomic<int> waiting_{0};  // transfers whose owners may sleep: hurried receives that wait, and sends

  // ---- Sending; positions count bytes since the beginning ----
  uint64_t written_ = 0;
  uint64_t read_by_peer_ = 0;
  uint64_t sent_ahead_ = 0;
  uint64_t returned_ = 0;
  List queued_;  // sends that have no slot or no room for their offers yet
  Transfer* offered_[kSlots] = {};
  enum class Mine : uint8_t { kFree, kInUse, kAwaitsRelease, kMustDrop };
  Mine mine_[kSlots] = {};
  int slots_in_use_ = 0;
  int drops_ = 0;           // slots in state kMustDrop
  bool published_ = false;  // the peer may have to be woken

  // ---- Receiving ----
  uint64_t read_ = 0;
  uint64_t told_read_ = 0;
  // Credit in bytes since the beginning: the peer has used `came_ahead_`, and `gave_back_` has been returned.
  // `owed_` will be returned next.
  uint64_t came_ahead_ = 0;
  uint64_t gave_back_ = 0;
  uint64_t owed_ = 0;
  uint32_t first_generation_ = 0;
  uint32_t first_run_ = 0;
  Bucket buckets_[kBuckets];
  Entry* offers_[kSlots] = {};
  int pulls_ = 0;  // offers whose data are being read from the peer's memory
};

}  // namespace dist::shm
