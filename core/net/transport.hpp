// SPDX-License-Identifier: Apache-2.0
// Transport: moves bytes between workers. A worker is a process that takes part in training, or a stand-in
// for one in a test.
//
// A message has a sender, a receiver, a key and a size. A send and a receive match if sender, receiver and
// key are equal. Their order does not matter, so blocking, asynchronous and planned collectives, which
// workers interleave differently, never receive each other's messages. Both sides begin a transfer without
// waiting.
//
// Ownership: the Transfer and the message's buffer belong to the transport until Transfer::over() returns
// true.
//
// Every implementation guarantees the following (tests/unit/transport_suite.hpp):
//
// - A receive specifies its size. A message of another size ends both transfers with kMisfit.
// - A sender may run ahead: messages that fit into credit() bytes complete before their receiver asks for
//   them. Each message counts as at least kLeastCounted bytes.
// - cancel() is acknowledged: the transfer ends soon afterwards, regardless of the peer.
// - The loss of a peer ends the transfers that wait for it with kLost. Messages that it sent before are still
//   received.
// - Transfers wait for a worker that has not joined yet.
// - forget() releases messages for which no receive will be posted.
// - No connection is made to a worker before the first message from it or to it.
//
// A transport needs no thread of its own: waiting threads call progress(). All functions may be called by any
// thread at any time. They do not wait for a peer, and allocate memory only if it cannot be avoided.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dist {

struct Host;

struct MessageKey {
  uint32_t generation = 0;  // number of the generation
  uint32_t run = 0;
  int32_t group = 0;    // group of replicas; groups are numbered by their strategy
  uint32_t series = 0;  // blocking, asynchronous and planned collectives have separate series
  uint64_t number = 0;  // of the collective in its series
  uint32_t part = 0;    // counts the messages that one collective sends from one worker to another

  friend constexpr bool operator==(const MessageKey&, const MessageKey&) noexcept = default;
  constexpr bool before(uint32_t other_generation, uint32_t other_run) const noexcept {
    return generation != other_generation ? generation < other_generation : run < other_run;
  }
  // For hash tables.
  constexpr uint64_t hash() const noexcept {
    uint64_t hash = number * 0x9E3779B97F4A7C15u;
    hash ^= (static_cast<uint64_t>(static_cast<uint32_t>(group)) << 32 | part) * 0xC2B2AE3D27D4EB4Fu;
    hash ^= (static_cast<uint64_t>(series) << 32 | run) * 0x165667B19E3779F9u;
    return hash ^ hash >> 32;
  }
};

// One message in flight. The caller that began it owns the memory of this object.
class Transfer {
 public:
  enum class End : uint32_t {
    kUnderWay,
    kDone,       // received, or copied by the transport
    kCancelled,  // by cancel() or close()
    kLost,       // the peer is lost
    kMisfit      // sender and receiver specified different sizes
  };

  Transfer() noexcept = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // For a send: its owner will immediately send more to the same worker, so the transport may delay the
  // message and combine them.
  bool followed = false;
  // For a receive: no thread sleeps until it ends, so its message may stay with the transport until a thread
  // calls progress().
  bool unhurried = false;
  // The owner polls. It sleeps until the listener is notified only after it has called Transport::sleep() and
  // checked again. So the listener need not be notified of this transfer's end unless a thread is in sleep().
  bool polled = false;
  // For a send: only this many bytes at the beginning have a meaning. The transport need not move the others.
  std::size_t used = SIZE_MAX;
  // acquire: received data are visible, and the buffer of a send may be overwritten.
  bool over() const noexcept { return end() != End::kUnderWay; }
  End end() const noexcept { return end_.load(std::memory_order_acquire); }

  // ---- For implementations of Transport ----

  struct Message {
    int worker = -1;  // the peer
    MessageKey key;
    std::byte* data = nullptr;  // only read if the transfer is a send
    std::size_t bytes = 0;
  };
  // Has no effect if the transfer has begun: a transport may pass it on to another one later, while its owner
  // reads it.
  void begin(const Message& message) noexcept {
    if (end_.load(std::memory_order_relaxed) == End::kUnderWay) return;
    message_ = message;
    end_.store(End::kUnderWay, std::memory_order_relaxed);
  }
  const Message& message() const noexcept { return message_; }
  // Ends the transfer. Its owner may then destroy it at once.
  void finish(End end) noexcept { end_.store(end, std::memory_order_release); }

  // The list that contains the transfer, the worker to which it belongs, and whether it is the sending side.
  Transfer* next = nullptr;
  Transfer** before = nullptr;
  int owner = -1;
  bool sends = false;
  // For transports between processes: a second list that contains the transfer, the id under which its
  // message was offered, and how many bytes have been moved.
  Transfer* next_by_id = nullptr;
  Transfer** before_by_id = nullptr;
  uint64_t id = 0;
  std::size_t moved = 0;

 private:
  std::atomic<End> end_{End::kDone};
  Message message_;
};

// Is notified when something has happened that a waiting member may check: a transfer has ended, or a peer is
// lost.
class TransportListener {
 public:
  // Called on any thread. It must neither wait nor call the transport.
  virtual void happened() noexcept = 0;

 protected:
  ~TransportListener() = default;
};

class Transport {
 public:
  virtual int num_workers() const noexcept = 0;
  virtual int me() const noexcept = 0;
  // credit() is the number of bytes that a sender may be ahead of each of its receivers.
  static constexpr std::size_t kLeastCounted = 64;
  static constexpr std::size_t counted(std::size_t bytes) noexcept {
    return bytes > kLeastCounted ? bytes : kLeastCounted;
  }
  virtual std::size_t credit() const noexcept = 0;

  // `transfer` must not be in flight. A transfer to the worker itself, or to a worker that does not exist, is
  // an error of the caller and is not begun.
  virtual void send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
                    Transfer& transfer) noexcept = 0;
  virtual void receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
                       Transfer& transfer) noexcept = 0;
  // Cancels a transfer of this worker. If the transfer is being copied or has ended, this has no effect.
  virtual void cancel(Transfer& transfer) noexcept = 0;

  // Discards messages to this worker from runs before this one, now and when they arrive; their senders'
  // transfers end as if they had been received. This worker must have no receive for such a run.
  virtual void forget(uint32_t generation, uint32_t run) noexcept = 0;

  // Advances the transfers in flight. Does not wait.
  virtual void progress() noexcept = 0;
  // Whether a waiting thread should call progress() repeatedly before it sleeps. Such a thread calls
  // poll(true) before and poll(false) after, and encloses its sleeps in sleep(true) and sleep(false). During
  // a sleep, the listener is also notified of messages for unhurried receives.
  virtual bool polls() const noexcept { return false; }
  virtual void poll(bool begins) noexcept { (void)begins; }
  virtual void sleep(bool begins) noexcept { (void)begins; }
  // A polling thread calls this from time to time. Returns whether a thread of another worker polls on the
  // same CPU. The caller should then yield, because that thread may have to run first.
  virtual bool shares_cpu() noexcept { return false; }
  // Returns false while this worker may not have run for so long that others consider it lost, and has not
  // received an answer from them since. Messages that arrived before are no answer. The listener is notified
  // when this becomes true again.
  virtual bool up_to_date() const noexcept { return true; }
  // Returns false if there is no way to reach the other workers. All of them are then lost from the
  // beginning.
  virtual bool reaches_others() const noexcept { return true; }
  // Whether the other workers consider this one lost. If so, all of them are lost, and why_lost() of this
  // worker returns the reason.
  virtual bool given_up() const noexcept { return false; }
  // Whether the worker has left or can no longer be reached.
  virtual bool lost(int worker) const noexcept = 0;
  // Whether the worker has announced that it leaves.
  virtual bool left(int worker) const noexcept { return (void)worker, false; }
  // Whether the worker is lost because it, or worker 0, has rejected this worker. why_lost() returns their
  // reason.
  virtual bool rejected(int worker) const noexcept { return (void)worker, false; }
  // The reason, as a sentence without a final period: "worker 2 (10.0.0.7:2222) was killed or its connection
  // broke". Empty if the worker is not lost or nothing is known. For a worker that has not joined yet: why it
  // could not be reached so far.
  virtual void why_lost(int worker, char* text, std::size_t size) const noexcept {
    (void)worker;
    if (size != 0) text[0] = '\0';
  }
  // Number of workers to which there is a connection.
  virtual int num_connections() const noexcept = 0;

  // Sets the log for unusual events of the connections. Must be called before the first message.
  virtual void log_to(const Host& host) noexcept { (void)host; }

  // Sets the only listener, which must exist until it is replaced; NULL: none. When this returns, the
  // previous one is no longer called.
  virtual void listen(TransportListener* listener) noexcept = 0;
  // This worker leaves: its transfers end with kCancelled, and those of peers with this worker end with
  // kLost.
  virtual void close() noexcept = 0;

 protected:
  ~Transport() = default;
};

}  // namespace dist
