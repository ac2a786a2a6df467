// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/local_setup.hpp"

#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "capi/tools/fd.hpp"

namespace dist::launch {
namespace {

// A socket bound to a free port; not open if that failed, with errno set.
Fd bind_free_port(uint16_t* port) {
  Fd found(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  // Otherwise the port might be blocked for the task that needs it.
  const int on = 1;
  if (!found.is_open() || setsockopt(found.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(found.get(), any, size) != 0 || getsockname(found.get(), any, &size) != 0) {
    return {};
  }
  *port = ntohs(address.sin_port);
  return found;
}

}  // namespace

bool hold_free_ports(int32_t n, std::vector<HeldPort>* out) {
  constexpr int kMostTries = 1024;
  for (int tries = 0; static_cast<int32_t>(out->size()) < n; ++tries) {
    if (tries == kMostTries) {
      errno = EADDRINUSE;
      return false;
    }
    HeldPort found;
    found.socket = bind_free_port(&found.port);
    if (!found.socket.is_open()) return false;
    // With SO_REUSEADDR, a system that is short of ports may return one twice.
    const auto is_same = [&](const HeldPort& each) { return each.port == found.port; };
    if (std::none_of(out->begin(), out->end(), is_same)) out->push_back(std::move(found));
  }
  return true;
}

bool make_secret(std::string* out) {
  unsigned char bits[32];
  for (std::size_t have = 0; have < sizeof bits;) {
    const ssize_t n = getrandom(bits + have, sizeof bits - have, 0);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) have += static_cast<std::size_t>(n);
  }
  out->clear();
  for (const unsigned char byte : bits) {
    out->push_back("0123456789abcdef"[byte >> 4]);
    out->push_back("0123456789abcdef"[byte & 15]);
  }
  return true;
}

}  // namespace dist::launch
