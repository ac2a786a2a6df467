// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/dial.hpp"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "core/base/os/clock.hpp"
#include "core/base/os/socket.hpp"

namespace dist {
namespace {

// The longest time until a waiting function notices that it should stop.
constexpr int kSliceMs = 50;

}  // namespace

// Waits until the socket is ready for `events`. Returns false if the deadline expires first, or if `stopped`
// is true.
bool Dialled::await(short events, int64_t until_ns) noexcept {
  while (!stopped_.load(std::memory_order_relaxed)) {
    const int64_t left = until_ns - steady_now_ns();
    if (left <= 0) return false;
    pollfd one{socket_.number(), events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::clamp<int64_t>(left / 1'000'000, 1, kSliceMs)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
  return false;
}

std::string Dialled::look_up(const std::string& host, const std::string& port) {
  found_ = dist::look_up(host);
  port_ = port;
  return found_.why;
}

bool Dialled::connect(int64_t until_ns) noexcept {
  for (const std::string& each : found_.list) {
    socket_ = begin_to_connect(each, port_);
    if (!socket_.is_open() || !await(POLLOUT, until_ns)) continue;
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(socket_.number(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0) return true;
  }
  return false;
}

bool Dialled::send(std::span<const std::byte> bytes, int64_t until_ns) noexcept {
  while (!bytes.empty()) {
    if (!await(POLLOUT, until_ns)) return false;
    const std::ptrdiff_t sent = send_now(socket_.number(), {&bytes, 1});
    if (sent < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

std::ptrdiff_t Dialled::receive(std::span<std::byte> to, int64_t until_ns) noexcept {
  while (await(POLLIN, until_ns)) {
    const std::ptrdiff_t came = receive_now(socket_.number(), {&to, 1});
    if (came != 0) return came;
  }
  return 0;
}

}  // namespace dist
