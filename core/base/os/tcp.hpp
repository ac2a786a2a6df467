// SPDX-License-Identifier: Apache-2.0
// TCP connections as a listener sees them: listening on an address, accepting, and what the kernel knows about a
// connection that another part of the process reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dist {

// Owns the file descriptor of a socket.
class Socket {
 public:
  Socket() noexcept = default;
  explicit Socket(int number) noexcept : number_(number) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : number_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      close();
      number_ = other.release();
    }
    return *this;
  }

  bool is_open() const noexcept { return number_ >= 0; }
  int number() const noexcept { return number_; }
  // The caller closes it.
  int release() noexcept { return std::exchange(number_, -1); }
  void close() noexcept;

 private:
  int number_ = -1;
};

// The number of descriptors that this process may have open.
std::size_t descriptor_limit() noexcept;
// A descriptor whose only purpose is to be closed when the process has no other one left.
Socket spare_descriptor() noexcept;
// Another descriptor of the same connection; closed if the process has none left.
Socket duplicate(const Socket& socket) noexcept;

struct Listening {
  std::vector<Socket> sockets;
  int port = 0;
  std::string why;  // if there are no sockets: why not
};

// Listens on these IP addresses. Port 0: the system chooses one, the same for all of them. 0.0.0.0 and :: stand for all
// interfaces, over both versions of IP if the system has them. `user_timeout_ms`: how long sent data may stay
// unacknowledged before a connection breaks. Throws std::bad_alloc.
Listening listen_on(const std::vector<std::string>& hosts, const std::string& port, int user_timeout_ms);

enum class Accept { kAccepted, kNone, kNoDescriptor };
// Takes the next connection, if there is one. `peer` receives its address as an URI, like "ipv4:10.0.0.7:40000" or
// "ipv6:[fd00::7]:40000".
Accept accept_on(const Socket& listening, Socket* socket, std::string* peer);

// Shuts the connection down for all descriptors that refer to it. The last one to be closed resets it.
void shut_down(const Socket& socket) noexcept;
// Whether the connection has been shut down, by this process or by an error.
bool is_shut_down(const Socket& socket) noexcept;
// The number of bytes that have arrived, whether they have been read or not.
uint64_t received_bytes(const Socket& socket) noexcept;

// Waits until one of the descriptors is readable or has failed. `timeout_ms` < 0: for any time. `ready` receives, for
// each of them, whether it is.
void wait_readable(std::span<const int> descriptors, int timeout_ms, std::vector<bool>* ready);

}  // namespace dist
