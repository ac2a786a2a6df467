// SPDX-License-Identifier: Apache-2.0
// Sockets between processes of one machine. Their names exist only in memory. The sockets preserve the
// boundaries of messages and can pass a descriptor. Also identifies the machine, and watches processes and
// descriptors. Nothing here blocks, except WatchList::wait().
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/os/file.hpp"
#include "core/base/status.hpp"

namespace dist {

struct LocalProcess {
  int64_t id = 0;  // 0: this process cannot see it, because it is in another PID namespace
  uint64_t user = 0;
};

// Sockets in another network namespace are not found.
Status listen_locally(std::string_view name, Descriptor* out) noexcept;
Status connect_locally(std::string_view name, Descriptor* out) noexcept;
// Returns a closed descriptor if no process has connected.
Descriptor accept_locally(const Descriptor& listener) noexcept;
// The process that connected, or that listens, as the system reports it.
bool process_at(const Descriptor& socket, LocalProcess* out) noexcept;

// Send or receive one message. Return its size, 0 if that would block, or -1 if the connection is closed.
// `pass`: a descriptor to send along, or -1. `came` receives one; it may be NULL.
std::ptrdiff_t send_message(const Descriptor& socket, std::span<const std::byte> message, int pass) noexcept;
std::ptrdiff_t receive_message(const Descriptor& socket, std::span<std::byte> room,
                               Descriptor* came) noexcept;

// Returns a descriptor that becomes readable when the process ends, or a closed one if the system does not
// support that.
Descriptor watch_process(int64_t process) noexcept;

// Whether that process has ended. Returns false if the descriptor is not open.
bool has_ended(const Descriptor& process) noexcept;

// A set of descriptors that one thread watches.
class WatchList {
 public:
  explicit WatchList(Memory& memory) : all_(&memory) {}

  // Makes room, so that add() needs no memory. Throws std::bad_alloc.
  void reserve(std::size_t count) { all_.reserve(count); }
  bool has_room() const noexcept { return all_.size() < all_.capacity(); }
  void clear() noexcept { all_.clear(); }
  // Returns the descriptor's number for readable(), or -1 if the descriptor is negative. There must be room.
  int add(int descriptor) noexcept;
  // Waits until at least one of them is readable or closed, for at most timeout_ms (< 0: no limit).
  void wait(int timeout_ms) noexcept;
  bool readable(int number) const noexcept {
    return number >= 0 && all_[static_cast<std::size_t>(number)].revents != 0;
  }

 private:
  std::pmr::vector<pollfd> all_;
};

// Identifies the running system: two processes get equal values if and only if they share a kernel. Returns
// false if the identity is unknown.
bool boot_identity(std::byte (&out)[16]) noexcept;
uint64_t this_user() noexcept;
bool random_fill(std::span<std::byte> to) noexcept;

}  // namespace dist
