// SPDX-License-Identifier: Apache-2.0
// InProcessNetwork: workers that are strategies of one process. The second of the two sides copies the
// message from the sender's buffer to the receiver's. A message that is sent ahead of its receive is copied
// twice.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/net/network.hpp"
#include "core/net/transport.hpp"

namespace dist {

class InProcessNetwork final : public Network {
 public:
  static constexpr std::size_t kDefaultCredit = std::size_t{1} << 20;
  static constexpr std::size_t kLeastCredit = 4096;

  // Allocates from the host's memory. credit 0 selects kDefaultCredit.
  static Status create(const dist_allocator& allocator, int num_workers, int64_t credit,
                       Ref<InProcessNetwork>* out);
  // `credit`: see Transport::credit(). Throws std::bad_alloc.
  InProcessNetwork(Memory& memory, int num_workers, std::size_t credit);
  ~InProcessNetwork() override;

  int num_workers() const noexcept override { return num_workers_; }
  Status join(int worker, Transport** out) noexcept override;
  void describe(char* text, std::size_t size) const noexcept override;

 private:
  class Endpoint;
  struct Pair;
  // A message that was sent ahead of its receive. Its data follow the object in memory.
  struct Ahead {
    int from;
    MessageKey key;
    std::size_t bytes;
    Ahead* next;
    std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  };
  // The transfers and messages of a worker that wait for their counterpart, hashed by sender and key.
  static constexpr std::size_t kBuckets = 256;
  struct Bucket {
    Transfer* sends = nullptr;
    Transfer* receives = nullptr;
    Ahead* ahead = nullptr;
  };
  enum class Life : uint32_t { kAbsent, kHere, kGone };

  static std::size_t bucket_of(int from, const MessageKey& key) noexcept;
  static void link(Transfer*& list, Transfer& transfer) noexcept;
  static void unlink(Transfer& transfer) noexcept;
  static Transfer* find(Transfer* list, int from, const MessageKey& key) noexcept;
  Endpoint& at(int worker) const noexcept;
  Pair& pair(int worker, int peer) const noexcept;
  void free_all() noexcept;
  void end(Transfer& transfer, Transfer::End end) noexcept;
  void send(Endpoint& from, Transfer& transfer) noexcept;
  void receive(Endpoint& to, Transfer& transfer) noexcept;
  void copy(Transfer& send, Transfer& receive) noexcept;
  Ahead* copy_ahead(const Transfer& transfer) noexcept;
  void drop(Ahead* ahead, int to) noexcept;
  void cancel(Endpoint& of, Transfer& transfer) noexcept;
  void forget(Endpoint& of, uint32_t generation, uint32_t run) noexcept;
  void close(Endpoint& of) noexcept;
  void sweep(Endpoint& mailbox, Endpoint& gone) noexcept;

  const int num_workers_;
  const std::size_t credit_;
  Endpoint* endpoints_ = nullptr;
  Pair* pairs_ = nullptr;
};

}  // namespace dist
