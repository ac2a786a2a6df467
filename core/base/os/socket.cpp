// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/socket.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace dist {
namespace {

// Calls move(message) again if a signal interrupts it.
template <class Byte, class Move>
std::ptrdiff_t move_now(std::span<const std::span<Byte>> parts, Move&& move) noexcept {
  iovec places[kMostSocketParts];
  msghdr message{};
  message.msg_iov = places;
  for (const std::span<Byte> each : parts) {
    places[message.msg_iovlen++] = {const_cast<std::byte*>(each.data()), each.size()};
  }
  for (;;) {
    const auto moved = move(&message);
    if (moved >= 0) return moved;
    if (errno != EINTR) return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
  }
}

}  // namespace

std::ptrdiff_t send_now(int socket, std::span<const std::span<const std::byte>> parts) noexcept {
  return move_now(parts,
                  [&](msghdr* message) { return ::sendmsg(socket, message, MSG_DONTWAIT | MSG_NOSIGNAL); });
}

std::ptrdiff_t receive_now(int socket, std::span<const std::span<std::byte>> parts) noexcept {
  return move_now(parts, [&](msghdr* message) {
    const auto came = ::recvmsg(socket, message, MSG_DONTWAIT);
    // The connection has been closed.
    return came != 0 ? came : (errno = ENOTCONN, -1);
  });
}

void limit_unacknowledged(int socket, unsigned milliseconds) noexcept {
  (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

bool is_ip_address(std::string_view text) noexcept {
  char terminated[INET6_ADDRSTRLEN];
  if (text.size() >= sizeof terminated) return false;
  terminated[text.copy(terminated, text.size())] = '\0';
  unsigned char address[sizeof(in6_addr)];
  return inet_pton(AF_INET, terminated, address) == 1 || inet_pton(AF_INET6, terminated, address) == 1;
}

}  // namespace dist
