// SPDX-License-Identifier: Apache-2.0
// A TCP connection for a short exchange. Its functions block, but only until a deadline or until they are
// stopped, and never raise a signal.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/os/addresses.hpp"
#include "core/base/os/file.hpp"

namespace dist {

class Dialled {
 public:
  // `stopped` must outlive the object. The functions return soon after it becomes true.
  explicit Dialled(const std::atomic<bool>& stopped) noexcept : stopped_(stopped) {}

  // Finds the IP addresses of a host, which is a name or an IP address. Returns an empty text, or the reason
  // if none was found. Looking up a name may take long and cannot be stopped. Throws std::bad_alloc.
  std::string look_up(const std::string& host, const std::string& port);
  // Connects to the host that was looked up. Returns false if that fails.
  bool connect(int64_t until_ns) noexcept;
  // Sends all bytes. Returns false if the connection is closed or the deadline expires.
  bool send(std::span<const std::byte> bytes, int64_t until_ns) noexcept;
  // Returns the number of bytes received, 0 if the deadline expires first, or -1 if the connection is closed.
  std::ptrdiff_t receive(std::span<std::byte> to, int64_t until_ns) noexcept;

 private:
  bool await(short events, int64_t until_ns) noexcept;

  const std::atomic<bool>& stopped_;
  HostAddresses found_;
  std::string port_;
  Descriptor socket_;
};

}  // namespace dist
