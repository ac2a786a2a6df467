// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/tcp.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "core/base/os/addresses.hpp"

namespace dist {
namespace {

constexpr int kBacklog = 4096;

void set(int socket, int level, int name, int value) noexcept {
  (void)setsockopt(socket, level, name, &value, sizeof value);
}

bool is_wildcard(const sockaddr* address) noexcept {
  if (address->sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == htonl(INADDR_ANY);
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

uint16_t& port_of(sockaddr_storage& address) noexcept {
  return address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                      : reinterpret_cast<sockaddr_in6&>(address).sin6_port;
}

// Creates one listening socket. Returns 0 or the error. `only_v6`: for IPv6, whether the socket refuses IPv4.
int listen_at(sockaddr_storage address, bool only_v6, int user_timeout_ms, Listening* listening) {
  const socklen_t size = address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  // If the system chose the port of the first socket, the other sockets get the same port.
  if (listening->port != 0) port_of(address) = htons(static_cast<uint16_t>(listening->port));
  Descriptor made(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.is_open()) return errno;
  // Accepted connections inherit all of these.
  set(made.number(), SOL_SOCKET, SO_REUSEADDR, 1);
  set(made.number(), IPPROTO_TCP, TCP_NODELAY, 1);
  set(made.number(), IPPROTO_TCP, TCP_USER_TIMEOUT, user_timeout_ms);
  if (address.ss_family == AF_INET6) set(made.number(), IPPROTO_IPV6, IPV6_V6ONLY, only_v6 ? 1 : 0);
  sockaddr_storage bound{};
  socklen_t bound_size = sizeof bound;
  if (::bind(made.number(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(made.number(), kBacklog) != 0 ||
      ::getsockname(made.number(), reinterpret_cast<sockaddr*>(&bound), &bound_size) != 0) {
    return errno;
  }
  listening->port = ntohs(port_of(bound));
  listening->sockets.push_back(std::move(made));
  return 0;
}

int listen_everywhere(uint16_t port, int user_timeout_ms, Listening* listening) {
  sockaddr_storage address{};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = port;
  const int error = listen_at(address, false, user_timeout_ms, listening);
  if (error != EAFNOSUPPORT && error != EADDRNOTAVAIL) return error;
  address = {};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  v4.sin_family = AF_INET;
  v4.sin_port = port;
  return listen_at(address, false, user_timeout_ms, listening);
}

std::string uri_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return std::string("ipv4:") + text + ":" + std::to_string(ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  const std::string port = std::to_string(ntohs(v6.sin6_port));
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, text, sizeof text);
    return std::string("ipv4:") + text + ":" + port;
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return std::string("ipv6:[") + text + "]:" + port;
}

}  // namespace

std::size_t descriptor_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  return static_cast<std::size_t>(limit.rlim_cur);
}

Descriptor spare_descriptor() noexcept { return Descriptor(::eventfd(0, EFD_CLOEXEC)); }

Descriptor duplicate(const Descriptor& socket) noexcept { return duplicate(socket.number()); }

Descriptor duplicate(int socket) noexcept { return Descriptor(::fcntl(socket, F_DUPFD_CLOEXEC, 0)); }

namespace {

// Listens on all addresses of one host. Returns the error of the address that failed, or 0.
int listen_on_one(const std::string& host, const std::string& port, int user_timeout_ms,
                  Listening* listening) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return EADDRNOTAVAIL;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  sockaddr_storage address{};
  memcpy(&address, found->ai_addr, found->ai_addrlen);
  return is_wildcard(found->ai_addr) ? listen_everywhere(port_of(address), user_timeout_ms, listening)
                                     : listen_at(address, true, user_timeout_ms, listening);
}

}  // namespace

Listening listen_on(const std::vector<std::string>& hosts, const std::string& port, int user_timeout_ms) {
  // If the system chooses the port, the port that it chose for one address may be in use on another one.
  for (int attempts = port == "0" ? 16 : 1;;) {
    Listening listening;
    int error = 0;
    for (const std::string& each : hosts) {
      if (error = listen_on_one(each, port, user_timeout_ms, &listening); error != 0) break;
    }
    if (error == 0) return listening;
    if (--attempts > 0 && error == EADDRINUSE) continue;
    return {{}, 0, why_not_bound(error)};
  }
}

Accept accept_on(const Descriptor& listening, Descriptor* socket, std::string* peer) {
  for (;;) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    const int made = ::accept4(listening.number(), reinterpret_cast<sockaddr*>(&address), &size,
                               SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (made >= 0) {
      *socket = Descriptor(made);
      *peer = uri_of(address);
      return Accept::kAccepted;
    }
    switch (errno) {
      case EAGAIN:
#if EAGAIN != EWOULDBLOCK
      case EWOULDBLOCK:
#endif
        return Accept::kNone;
      case EINTR:
      case ECONNABORTED:
      // Linux reports errors of the new connection, which accept() has removed from the queue.
      case EPROTO:
      case ENOPROTOOPT:
      case EOPNOTSUPP:
      case EPERM:
      case ENETDOWN:
      case ENETUNREACH:
      case EHOSTDOWN:
      case EHOSTUNREACH: continue;
      default: return Accept::kNoDescriptor;  // EMFILE, ENFILE, ENOBUFS, ENOMEM
    }
  }
}

void shut_down(const Descriptor& socket) noexcept {
  // Without this, the kernel keeps the connection until the peer has received everything.
  const linger discard{1, 0};
  (void)setsockopt(socket.number(), SOL_SOCKET, SO_LINGER, &discard, sizeof discard);
  (void)::shutdown(socket.number(), SHUT_RDWR);
}

bool is_shut_down(const Descriptor& socket) noexcept {
  pollfd look{socket.number(), 0, 0};
  return ::poll(&look, 1, 0) > 0;
}

uint64_t received_bytes(const Descriptor& socket) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket.number(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return size >= offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received
             ? info.tcpi_bytes_received
             : 0;
}

void wait_readable(std::span<const int> descriptors, int timeout_ms, std::vector<bool>* ready) {
  std::vector<pollfd> looks;
  looks.reserve(descriptors.size());
  for (const int each : descriptors) looks.push_back({each, POLLIN, 0});
  (void)::poll(looks.data(), looks.size(), timeout_ms);
  ready->clear();
  for (const pollfd& each : looks) ready->push_back(each.revents != 0);
}

}  // namespace dist
