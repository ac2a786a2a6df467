// SPDX-License-Identifier: Apache-2.0
// Transport: moves bytes between workers. A worker is a process that takes part in training, or a stand-in
// for one in a test.
//
// A message has a sender, a receiver, a key and a size. A send and a receive match if sender, receiver and
// key are equal; their order does not matter. So blocking, asynchronous and planned collectives, which
// workers interleave differently, never receive each other's messages. Both sides begin a transfer and
// continue.
//
// Ownership: the Transfer and the message's buffer belong to the transport until Transfer::over() returns
// true.
//
// Every implementation guarantees the following (tests/unit/transport_suite.hpp):
//
// - A receive specifies its size. A message of another size ends both transfers with kMisfit.
// - A sender may run ahead: messages that fit into credit() bytes complete before their receiver asks for
//   them.
//   Each message counts as at least kLeastCounted bytes.
// - cancel() is acknowledged: the transfer is over soon afterwards, whatever the peer does.
// - The loss of a peer ends the transfers that wait for it with kLost. Messages that it sent before are still
//   received.
// - Transfers wait for a worker that has not joined yet.
// - forget() releases messages that nobody will ask for any more.
// - No connection is made to a worker before the first message from it or to it.
//
// A transport needs no thread of its own: a thread that waits calls progress(). All functions may be called
// by any thread at any time. They do not wait for a peer, and allocate memory only if they cannot avoid it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dist {

struct MessageKey {
  uint32_t generation = 0;  // of the cluster's membership
  uint32_t run = 0;
  int32_t group = 0;    // of replicas, in their strategy
  uint32_t series = 0;  // blocking, asynchronous and planned collectives are numbered apart
  uint64_t number = 0;  // of the collective in its series
  uint32_t part = 0;    // of what one collective sends between two workers

  friend constexpr bool operator==(const MessageKey&, const MessageKey&) noexcept = default;
  constexpr bool before(uint32_t other_generation, uint32_t other_run) const noexcept {
    return generation != other_generation ? generation < other_generation : run < other_run;
  }
};

// One message on its way, in memory of whoever began it.
class Transfer {
 public:
  enum class End : uint32_t {
    kUnderWay,
    kDone,       // received, or copied by the transport
    kCancelled,  // by cancel(), or by close()
    kLost,       // the peer is
    kMisfit      // sender and receiver gave different sizes
  };

  Transfer() noexcept = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Of a send: its owner sends more to the same worker at once, with which this one may go.
  bool followed = false;
  // acquire: what was received is there, what was sent may be written.
  bool over() const noexcept { return end() != End::kUnderWay; }
  End end() const noexcept { return end_.load(std::memory_order_acquire); }

  // ---- For transports ----

  struct Message {
    int worker = -1;  // the peer
    MessageKey key;
    std::byte* data = nullptr;  // of a send it is only read
    std::size_t bytes = 0;
  };
  void begin(const Message& message) noexcept {
    message_ = message;
    end_.store(End::kUnderWay, std::memory_order_relaxed);
  }
  const Message& message() const noexcept { return message_; }
  // After this the transfer is its owner's again, who may have let it go already.
  void finish(End end) noexcept { end_.store(end, std::memory_order_release); }

  // Links of a list that the transfer is in, whose transfer it is, and which half of a message.
  Transfer* next = nullptr;
  Transfer** before = nullptr;
  int owner = -1;
  bool sends = false;
  // For transports between processes: a second list that the transfer is in, the number under which its message was
  // offered, and how much of it has been moved.
  Transfer* next_by_id = nullptr;
  Transfer** before_by_id = nullptr;
  uint64_t id = 0;
  std::size_t moved = 0;

 private:
  std::atomic<End> end_{End::kDone};
  Message message_;
};

// Told whenever something has happened that a waiting member may look at: a transfer is over, or a peer lost.
class TransportListener {
 public:
  // Any thread. It must neither wait nor call the transport.
  virtual void happened() noexcept = 0;

 protected:
  ~TransportListener() = default;
};

class Transport {
 public:
  virtual int num_workers() const noexcept = 0;
  virtual int me() const noexcept = 0;
  // How many bytes a sender may be ahead of each of its receivers.
  static constexpr std::size_t kLeastCounted = 64;
  virtual std::size_t credit() const noexcept = 0;

  // `transfer` is not under way. Neither begins nor ends a transfer to the worker itself, or to one that there
  // is not: that is the caller's mistake.
  virtual void send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
                    Transfer& transfer) noexcept = 0;
  virtual void receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
                       Transfer& transfer) noexcept = 0;
  // Of this worker. A transfer that is just being copied, or is over, ends as it would have.
  virtual void cancel(Transfer& transfer) noexcept = 0;

  // Messages to this worker of runs before this one are let go, now and when they come: their senders' transfers
  // end as if they had been received. None of this worker's receives is of such a run.
  virtual void forget(uint32_t generation, uint32_t run) noexcept = 0;

  // Does what is to be done for transfers under way, and returns.
  virtual void progress() noexcept = 0;
  // False while this worker may have stood still for so long that others have given it up, until it has heard of them again:
  // what came before proves nothing. A listener is told when it is over.
  virtual bool up_to_date() const noexcept { return true; }
  // Whether there is any way to the other workers; where not, they are all lost from the beginning.
  virtual bool reaches_others() const noexcept { return true; }
  // Whether the worker has left, or cannot be reached any more.
  virtual bool lost(int worker) const noexcept = 0;
  // Whether it has said that it leaves.
  virtual bool left(int worker) const noexcept { return (void)worker, false; }
  // Why, as a sentence without its end: "worker 2 (10.0.0.7:2222) was killed or its connection broke". "": it is not
  // lost, or there is nothing to say. Of a worker that is still waited for: why it could not be reached so far.
  virtual void why_lost(int worker, char* text, std::size_t size) const noexcept {
    (void)worker;
    if (size != 0) text[0] = '\0';
  }
  // To how many workers there is a connection.
  virtual int num_connections() const noexcept = 0;

  // One listener, which must stay until it is replaced; NULL: none. When this returns the old one is not called
  // any more.
  virtual void listen(TransportListener* listener) noexcept = 0;
  // The worker leaves: its transfers end with kCancelled, those of others to it and from it with kLost.
  virtual void close() noexcept = 0;

 protected:
  ~Transport() = default;
};

}  // namespace dist
