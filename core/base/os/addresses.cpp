// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/addresses.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

namespace dist {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};
using Found = std::unique_ptr<addrinfo, FreeAddresses>;

// Returns getaddrinfo()'s error code.
int find(const char* host, const char* port, int flags, Found* out) noexcept {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host, port, &wanted, &found);
  out->reset(found);
  return error;
}

// Returns an empty text on failure.
std::string text_of(const sockaddr* address, socklen_t bytes) {
  char text[NI_MAXHOST];
  if (getnameinfo(address, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

}  // namespace

std::string why_not_bound(int error) {
  switch (error) {
    case EADDRINUSE: return "the port is in use, perhaps by another strategy or server of this process";
    case EADDRNOTAVAIL: return "the address belongs to no interface of this machine";
    case EACCES: return "this user may not use a port below 1024";
    default: return strerrordesc_np(error) != nullptr ? strerrordesc_np(error) : "unknown error";
  }
}

HostAddresses look_up(const std::string& host) {
  HostAddresses answer;
  Found found;
  const int error = find(host.c_str(), nullptr, 0, &found);
  for (const addrinfo* each = error == 0 ? found.get() : nullptr; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    std::string text = text_of(each->ai_addr, each->ai_addrlen);
    const bool known = std::find(answer.list.begin(), answer.list.end(), text) != answer.list.end();
    if (!text.empty() && !known) answer.list.push_back(std::move(text));
  }
  if (!answer.list.empty()) return answer;
  const char* const why = error == 0            ? "it has no IP address"
                          : error == EAI_SYSTEM ? strerrordesc_np(errno)
                                                : gai_strerror(error);
  answer.why = why != nullptr ? why : "unknown error";
  return answer;
}

std::string address_towards(const std::string& address) {
  Found found;
  // Connecting a datagram socket chooses a route but sends nothing, so any port will do.
  if (find(address.c_str(), "9", AI_NUMERICHOST | AI_NUMERICSERV, &found) != 0) return "";
  const Descriptor socket(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.number() < 0 || ::connect(socket.number(), found->ai_addr, found->ai_addrlen) != 0) return "";
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  if (::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0) return "";
  return text_of(reinterpret_cast<const sockaddr*>(&own), bytes);
}

Descriptor begin_to_connect(const std::string& address, const std::string& port) noexcept {
  Found found;
  if (find(address.c_str(), port.c_str(), AI_NUMERICHOST | AI_NUMERICSERV, &found) != 0) return {};
  Descriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return {};
  const bool begun =
      ::connect(socket.number(), found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS;
  return begun ? std::move(socket) : Descriptor();
}

std::string why_not_bind(const std::string& address, int port) {
  Found found;
  const std::string number = std::to_string(port);
  if (find(address.c_str(), number.c_str(), AI_NUMERICHOST | AI_NUMERICSERV, &found) != 0) {
    return "it is not an IP address";
  }
  const Descriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.number() < 0) {
    const int error = errno;
    return error == EAFNOSUPPORT && address == "::" ? why_not_bind("0.0.0.0", port) : why_not_bound(error);
  }
  // Allows a port on which earlier connections are still being closed.
  const int on = 1;
  const int off = 0;
  (void)::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address == "::") (void)::setsockopt(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(socket.number(), found->ai_addr, found->ai_addrlen) == 0) return "";
  const int error = errno;
  return error == EADDRNOTAVAIL && address == "::" ? why_not_bind("0.0.0.0", port) : why_not_bound(error);
}

}  // namespace dist
