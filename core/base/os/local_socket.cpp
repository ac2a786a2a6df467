// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/local_socket.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace dist {
namespace {

Status failed(const char* what) noexcept {
  return fail(DIST_UNAVAILABLE, "%s failed: %s", what, std::strerror(errno));
}

// An abstract address: a zero byte, then the name.
bool address_of(std::string_view name, sockaddr_un* out, socklen_t* out_bytes) noexcept {
  *out = {};
  out->sun_family = AF_UNIX;
  if (name.empty() || name.size() > sizeof out->sun_path - 1) return false;
  std::copy(name.begin(), name.end(), out->sun_path + 1);
  *out_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return true;
}

template <class Use>
Status with_address(std::string_view name, Descriptor* out, const char* what, Use&& use) noexcept {
  sockaddr_un address;
  socklen_t bytes = 0;
  if (!address_of(name, &address, &bytes)) return invalid_argument("the name of a local socket is too long");
  Descriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.is_open()) return failed("socket()");
  if (!use(made.number(), reinterpret_cast<const sockaddr*>(&address), bytes)) return failed(what);
  *out = std::move(made);
  return kOk;
}

}  // namespace

Status listen_locally(std::string_view name, Descriptor* out) noexcept {
  return with_address(name, out, "listening on a local socket",
                      [](int socket, const sockaddr* address, socklen_t bytes) {
                        return bind(socket, address, bytes) == 0 && listen(socket, 64) == 0;
                      });
}

Status connect_locally(std::string_view name, Descriptor* out) noexcept {
  return with_address(name, out, "connecting to its local socket",
                      [](int socket, const sockaddr* address, socklen_t bytes) {
                        return connect(socket, address, bytes) == 0;
                      });
}

Descriptor accept_locally(const Descriptor& listener) noexcept {
  return Descriptor(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

bool process_at(const Descriptor& socket, LocalProcess* out) noexcept {
  ucred who{};
  socklen_t bytes = sizeof who;
  if (getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0 || bytes != sizeof who)
    return false;
  *out = {who.pid, who.uid};
  return true;
}

std::ptrdiff_t send_message(const Descriptor& socket, std::span<const std::byte> message, int pass) noexcept {
  iovec part{const_cast<std::byte*>(message.data()), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof pass)] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (pass >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* const with = CMSG_FIRSTHDR(&header);
    with->cmsg_level = SOL_SOCKET;
    with->cmsg_type = SCM_RIGHTS;
    with->cmsg_len = CMSG_LEN(sizeof pass);
    std::memcpy(CMSG_DATA(with), &pass, sizeof pass);
  }
  ssize_t went;
  do went = sendmsg(socket.number(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (went < 0 && errno == EINTR);
  if (went >= 0) return went;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? 0 : -1;
}

std::ptrdiff_t receive_message(const Descriptor& socket, std::span<std::byte> room,
                               Descriptor* came) noexcept {
  iovec part{room.data(), room.size()};
  // Room for more than one descriptor: if a peer sends several, they arrive here and can be closed.
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t size;
  do size = recvmsg(socket.number(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (size < 0 && errno == EINTR);
  if (size < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number;
      std::memcpy(&number, CMSG_DATA(each) + i * sizeof number, sizeof number);
      Descriptor one(number);
      if (came != nullptr && !came->is_open()) *came = std::move(one);
    }
  }
  return size == 0 ? -1 : size;
}

Descriptor watch_process(int64_t process) noexcept {
#ifdef SYS_pidfd_open
  if (process > 0)
    return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0)));
#endif
  (void)process;
  return {};
}

bool has_ended(const Descriptor& process) noexcept {
  if (!process.is_open()) return false;
  pollfd look{process.number(), POLLIN, 0};
  return poll(&look, 1, 0) > 0;
}

int WatchList::add(int descriptor) noexcept {
  if (descriptor < 0) return -1;
  all_.push_back({descriptor, POLLIN, 0});
  return static_cast<int>(all_.size()) - 1;
}

void WatchList::wait(int timeout_ms) noexcept {
  if (poll(all_.data(), static_cast<nfds_t>(all_.size()), timeout_ms) > 0) return;
  for (pollfd& each : all_) each.revents = 0;
}

bool boot_identity(std::byte (&out)[16]) noexcept {
  const Descriptor file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[37] = {};
  if (!file.is_open() || read(file.number(), text, 36) != 36) return false;
  std::size_t digits = 0;
  for (const char c : text) {
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0) continue;
    if (digits == 32) return false;
    std::byte& into = out[digits / 2];
    into = digits % 2 == 0 ? static_cast<std::byte>(value << 4) : into | static_cast<std::byte>(value);
    ++digits;
  }
  return digits == 32;
}

uint64_t this_user() noexcept { return geteuid(); }

bool random_fill(std::span<std::byte> to) noexcept {
  return getrandom(to.data(), to.size(), 0) == static_cast<ssize_t>(to.size());
}

}  // namespace dist
