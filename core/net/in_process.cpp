// SPDX-License-Identifier: Apache-2.0
#include "core/net/in_process.hpp"

#include <cstdio>
#include <cstring>
#include <new>

namespace dist {

// What one worker knows about one of the others.
struct InProcessNetwork::Pair {
  std::atomic<std::size_t> ahead{0};  // number of bytes by which the other worker is ahead of this one
  std::atomic<bool> connected{false};
};

class InProcessNetwork::Endpoint final : public Transport {
 public:
  Endpoint(InProcessNetwork& network, int me) noexcept : network_(network), me_(me) {}

  int num_workers() const noexcept override { return network_.num_workers_; }
  int me() const noexcept override { return me_; }
  std::size_t credit() const noexcept override { return network_.credit_; }
  void send(int to, const MessageKey& key, const std::byte* data, std::size_t bytes,
            Transfer& transfer) noexcept override {
    transfer.begin({to, key, const_cast<std::byte*>(data), bytes});
    transfer.owner = me_;
    transfer.sends = true;
    network_.send(*this, transfer);
  }
  void receive(int from, const MessageKey& key, std::byte* data, std::size_t bytes,
               Transfer& transfer) noexcept override {
    transfer.begin({from, key, data, bytes});
    transfer.owner = me_;
    transfer.sends = false;
    network_.receive(*this, transfer);
  }
  void cancel(Transfer& transfer) noexcept override { network_.cancel(*this, transfer); }
  void forget(uint32_t generation, uint32_t run) noexcept override {
    network_.forget(*this, generation, run);
  }
  void progress() noexcept override {}
  bool lost(int worker) const noexcept override { return network_.at(worker).gone(); }
  int num_connections() const noexcept override {
    int connections = 0;
    for (int w = 0; w < num_workers(); ++w)
      connections += network_.pair(me_, w).connected.load(std::memory_order_relaxed) ? 1 : 0;
    return connections;
  }
  void listen(TransportListener* listener) noexcept override {
    const std::scoped_lock lock(listening_);
    listener_ = listener;
  }
  void close() noexcept override { network_.close(*this); }

  void tell() noexcept {
    const std::scoped_lock lock(listening_);
    if (listener_ != nullptr) listener_->happened();
  }
  bool gone() const noexcept { return life.load(std::memory_order_seq_cst) == Life::kGone; }

  // Messages to this worker.
  std::mutex mutex;
  Bucket buckets[kBuckets];
  // Messages of earlier runs have been forgotten.
  uint32_t first_generation = 0;
  uint32_t first_run = 0;
  std::atomic<Life> life{Life::kAbsent};

 private:
  InProcessNetwork& network_;
  const int me_;
  std::mutex listening_;
  TransportListener* listener_ = nullptr;
};

Status InProcessNetwork::create(const dist_allocator& allocator, int num_workers, int64_t credit,
                                Ref<InProcessNetwork>* out) {
  if (num_workers < 1) return invalid_argument("`num_workers` is %d, but must be at least 1", num_workers);
  if (credit != 0 && credit < static_cast<int64_t>(kLeastCredit)) {
    return invalid_argument("`credit_bytes` is %lld; use %zu or more, or 0", static_cast<long long>(credit),
                            kLeastCredit);
  }
  Ref<Memory> memory;
  DIST_TRY(create_memory(allocator, "allocator", &memory));
  *out = make_counted<InProcessNetwork>(*memory, num_workers,
                                        credit == 0 ? kDefaultCredit : static_cast<std::size_t>(credit));
  return kOk;
}

InProcessNetwork::InProcessNetwork(Memory& memory, int num_workers, std::size_t credit)
    : Network(memory), num_workers_(num_workers), credit_(credit) {
  const auto n = static_cast<std::size_t>(num_workers);
  if (n * n > most_of<Pair>()) throw std::bad_alloc();
  endpoints_ = static_cast<Endpoint*>(memory.try_allocate(n * sizeof(Endpoint), alignof(Endpoint)));
  pairs_ = static_cast<Pair*>(memory.try_allocate(n * n * sizeof(Pair), alignof(Pair)));
  if (endpoints_ == nullptr || pairs_ == nullptr) {
    free_all();
    throw std::bad_alloc();
  }
  for (std::size_t i = 0; i < n * n; ++i) new (&pairs_[i]) Pair();
  for (int w = 0; w < num_workers; ++w) new (&endpoints_[w]) Endpoint(*this, w);
}

void InProcessNetwork::free_all() noexcept {
  const auto n = static_cast<std::size_t>(num_workers_);
  memory().free(endpoints_, n * sizeof(Endpoint), alignof(Endpoint));
  memory().free(pairs_, n * n * sizeof(Pair), alignof(Pair));
}

InProcessNetwork::Pair& InProcessNetwork::pair(int worker, int peer) const noexcept {
  return pairs_[static_cast<std::size_t>(worker) * static_cast<std::size_t>(num_workers_) +
                static_cast<std::size_t>(peer)];
}

InProcessNetwork::~InProcessNetwork() {
  for (int w = 0; w < num_workers_; ++w) {
    Endpoint& endpoint = endpoints_[w];
    for (Bucket& bucket : endpoint.buckets) {
      while (bucket.ahead != nullptr) {
        Ahead* const ahead = bucket.ahead;
        bucket.ahead = ahead->next;
        drop(ahead, w);
      }
    }
    endpoint.~Endpoint();
  }
  free_all();
}

Status InProcessNetwork::join(int worker, Transport** out) noexcept {
  if (worker < 0 || worker >= num_workers_) {
    return invalid_argument("`worker` is %d, but this network's workers are 0 to %d", worker,
                            num_workers_ - 1);
  }
  Life absent = Life::kAbsent;
  if (!at(worker).life.compare_exchange_strong(absent, Life::kHere, std::memory_order_seq_cst)) {
    return failed_precondition("worker %d has already joined this network", worker);
  }
  *out = &at(worker);
  return kOk;
}

InProcessNetwork::Endpoint& InProcessNetwork::at(int worker) const noexcept { return endpoints_[worker]; }

std::size_t InProcessNetwork::bucket_of(int from, const MessageKey& key) noexcept {
  return (key.hash() ^ static_cast<uint32_t>(from) * 0xD6E8FEB86659FD93u) % kBuckets;
}

void InProcessNetwork::link(Transfer*& list, Transfer& transfer) noexcept {
  transfer.next = list;
  transfer.before = &list;
  if (list != nullptr) list->before = &transfer.next;
  list = &transfer;
}

void InProcessNetwork::unlink(Transfer& transfer) noexcept {
  *transfer.before = transfer.next;
  if (transfer.next != nullptr) transfer.next->before = transfer.before;
  transfer.before = nullptr;
}

// Finds the transfer with this sender and key in a list.
Transfer* InProcessNetwork::find(Transfer* list, int from, const MessageKey& key) noexcept {
  for (Transfer* each = list; each != nullptr; each = each->next) {
    const int sender = each->sends ? each->owner : each->message().worker;
    if (sender == from && each->message().key == key) return each;
  }
  return nullptr;
}

void InProcessNetwork::end(Transfer& transfer, Transfer::End end) noexcept {
  // Read this first: once the transfer has ended, its owner may destroy it.
  Endpoint& owner = at(transfer.owner);
  transfer.finish(end);
  owner.tell();
}

// Both transfers have been removed from their lists, so no other thread can end them.
void InProcessNetwork::copy(Transfer& send, Transfer& receive) noexcept {
  const std::size_t bytes = send.message().bytes;
  const bool fits = bytes == receive.message().bytes;
  if (fits && bytes != 0) std::memcpy(receive.message().data, send.message().data, bytes);
  const Transfer::End ended = fits ? Transfer::End::kDone : Transfer::End::kMisfit;
  end(send, ended);
  end(receive, ended);
}

// Returns NULL if the credit or the memory is exhausted. The message then waits for its receiver.
InProcessNetwork::Ahead* InProcessNetwork::copy_ahead(const Transfer& transfer) noexcept {
  const Transfer::Message& message = transfer.message();
  const std::size_t more = Transport::counted(message.bytes);
  std::atomic<std::size_t>& used = pair(message.worker, transfer.owner).ahead;
  std::size_t before = used.load(std::memory_order_relaxed);
  do {
    if (more > credit_ - before) return nullptr;
    // relaxed: only a counter; the data are published under the receiver's lock.
  } while (!used.compare_exchange_weak(before, before + more, std::memory_order_relaxed));
  void* const room = memory().try_allocate(sizeof(Ahead) + message.bytes, alignof(Ahead));
  if (room == nullptr) {
    used.fetch_sub(more, std::memory_order_relaxed);
    return nullptr;
  }
  auto* const ahead = new (room) Ahead{transfer.owner, message.key, message.bytes, nullptr};
  if (message.bytes != 0) std::memcpy(ahead->data(), message.data, message.bytes);
  return ahead;
}

void InProcessNetwork::drop(Ahead* ahead, int to) noexcept {
  pair(to, ahead->from).ahead.fetch_sub(Transport::counted(ahead->bytes), std::memory_order_relaxed);
  memory().free(ahead, sizeof(Ahead) + ahead->bytes, alignof(Ahead));
}

void InProcessNetwork::send(Endpoint& from, Transfer& transfer) noexcept {
  const Transfer::Message& message = transfer.message();
  Endpoint& to = at(message.worker);
  pair(from.me(), message.worker).connected.store(true, std::memory_order_relaxed);
  Bucket& bucket = to.buckets[bucket_of(from.me(), message.key)];
  Transfer* receive = nullptr;
  Ahead* ahead = nullptr;
  bool gone = false;
  bool forgotten = false;
  const auto look = [&] {
    gone = from.gone() || to.gone();
    forgotten = message.key.before(to.first_generation, to.first_run);
    if (gone || forgotten) return true;
    receive = find(bucket.receives, from.me(), message.key);
    if (receive != nullptr) unlink(*receive);
    return receive != nullptr;
  };
  bool met;
  {
    const std::scoped_lock lock(to.mutex);
    met = look();
  }
  // The data are copied without the lock. Then check again, because the receive may have been posted
  // meanwhile.
  if (!met) {
    ahead = copy_ahead(transfer);
    const std::scoped_lock lock(to.mutex);
    met = look();
    if (!met && ahead != nullptr) {
      ahead->next = bucket.ahead;
      bucket.ahead = ahead;
    } else if (!met) {
      // From here on another thread may end the transfer.
      return link(bucket.sends, transfer);
    }
  }
  if (!met) return end(transfer, Transfer::End::kDone);
  if (ahead != nullptr) drop(ahead, message.worker);
  if (forgotten && !gone) return end(transfer, Transfer::End::kDone);
  if (gone) return end(transfer, from.gone() ? Transfer::End::kCancelled : Transfer::End::kLost);
  copy(transfer, *receive);
}

void InProcessNetwork::receive(Endpoint& to, Transfer& transfer) noexcept {
  const Transfer::Message& message = transfer.message();
  Endpoint& from = at(message.worker);
  pair(to.me(), message.worker).connected.store(true, std::memory_order_relaxed);
  Bucket& bucket = to.buckets[bucket_of(message.worker, message.key)];
  Transfer* send = nullptr;
  Ahead* ahead = nullptr;
  {
    const std::scoped_lock lock(to.mutex);
    Ahead** at = &bucket.ahead;
    while (*at != nullptr && !((*at)->from == message.worker && (*at)->key == message.key)) at = &(*at)->next;
    if (!to.gone() && *at != nullptr) {
      ahead = *at;
      *at = ahead->next;
    } else if (!to.gone() && !from.gone()) {
      send = find(bucket.sends, message.worker, message.key);
      if (send == nullptr) return link(bucket.receives, transfer);
      unlink(*send);
    }
  }
  if (send != nullptr) return copy(*send, transfer);
  if (ahead == nullptr) return end(transfer, to.gone() ? Transfer::End::kCancelled : Transfer::End::kLost);
  const bool fits = ahead->bytes == message.bytes;
  if (fits && message.bytes != 0) std::memcpy(message.data, ahead->data(), message.bytes);
  drop(ahead, to.me());
  end(transfer, fits ? Transfer::End::kDone : Transfer::End::kMisfit);
}

void InProcessNetwork::cancel(Endpoint& of, Transfer& transfer) noexcept {
  if (transfer.over()) return;
  Endpoint& mailbox = transfer.sends ? at(transfer.message().worker) : of;
  {
    const std::scoped_lock lock(mailbox.mutex);
    if (transfer.before == nullptr) return;
    unlink(transfer);
  }
  end(transfer, Transfer::End::kCancelled);
}

void InProcessNetwork::forget(Endpoint& of, uint32_t generation, uint32_t run) noexcept {
  Transfer* ended = nullptr;
  {
    const std::scoped_lock lock(of.mutex);
    of.first_generation = generation;
    of.first_run = run;
    for (Bucket& bucket : of.buckets) {
      for (Ahead** at = &bucket.ahead; *at != nullptr;) {
        Ahead* const ahead = *at;
        if (!ahead->key.before(generation, run)) {
          at = &ahead->next;
          continue;
        }
        *at = ahead->next;
        drop(ahead, of.me());
      }
      for (Transfer* each = bucket.sends; each != nullptr;) {
        Transfer& send = *each;
        each = each->next;
        if (!send.message().key.before(generation, run)) continue;
        unlink(send);
        send.next = ended;
        ended = &send;
      }
    }
  }
  while (ended != nullptr) {
    Transfer& each = *ended;
    ended = each.next;
    end(each, Transfer::End::kDone);
  }
}

// A thread that examines a mailbox under its lock either sees that this worker has left, or its transfer is
// ended here.
void InProcessNetwork::close(Endpoint& of) noexcept {
  if (of.life.exchange(Life::kGone, std::memory_order_seq_cst) == Life::kGone) return;
  for (int w = 0; w < num_workers_; ++w) sweep(at(w), of);
  for (int w = 0; w < num_workers_; ++w) at(w).tell();
}

void InProcessNetwork::sweep(Endpoint& mailbox, Endpoint& gone) noexcept {
  Transfer* ended = nullptr;
  {
    const std::scoped_lock lock(mailbox.mutex);
    const auto take = [&](Transfer* list) {
      while (list != nullptr) {
        Transfer& each = *list;
        list = each.next;
        if (&mailbox != &gone && each.owner != gone.me() && each.message().worker != gone.me()) continue;
        unlink(each);
        each.next = ended;
        ended = &each;
      }
    };
    for (Bucket& bucket : mailbox.buckets) {
      take(bucket.sends);
      take(bucket.receives);
      while (&mailbox == &gone && bucket.ahead != nullptr) {
        Ahead* const ahead = bucket.ahead;
        bucket.ahead = ahead->next;
        drop(ahead, mailbox.me());
      }
    }
  }
  while (ended != nullptr) {
    Transfer& each = *ended;
    ended = each.next;
    end(each, each.owner == gone.me() ? Transfer::End::kCancelled : Transfer::End::kLost);
  }
}

void InProcessNetwork::describe(char* text, std::size_t size) const noexcept {
  std::snprintf(text, size, "other strategies of this process");
}

}  // namespace dist
