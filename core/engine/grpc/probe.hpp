// SPDX-License-Identifier: Apache-2.0
// Finds out why a peer cannot be reached. gRPC reports a failed TLS handshake as "Socket closed" on the connecting side
// and not at all on the listening side. So a worker that cannot reach a peer, or that a peer does not reach, makes one
// connection to the address at which that peer listens, and looks at both certificates itself. The result is only a
// text for messages; nothing but a token and the handshake is sent on that connection.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "core/base/os/dial.hpp"
#include "core/engine/grpc/certificates.hpp"

namespace dist::grpc_link {

// The protocol of a peer, by the first bytes that it sends, on a connection in either direction.
enum class Speaks { kTls, kPlainText, kOther };
Speaks first_bytes_tell(std::span<const std::byte> bytes) noexcept;

// The process that probes.
struct Self {
  Credentials credentials;  // empty without TLS
  std::string host;         // of its address; empty if it has none
  std::string secret;
  int number = -1;  // of the worker, for the token
};

// Presents a token to the peer at `host`, makes a TLS handshake, and returns why the peer and this process cannot
// communicate. Empty if that is not known.
std::string probe(const Self& self, const std::string& host, Dialled& connection);

// Probes one peer at a time on a thread of its own, which exists while there are peers to probe.
class Prober {
 public:
  // Receives the result for a peer of ask(). Called on the thread, without a lock, and not after stop() has returned.
  using Tell = std::function<void(uint64_t peer, const std::string& cause)>;

  Prober(Self self, Tell tell);
  ~Prober();
  // No effect if the peer is already waiting to be probed. Never throws: a failure only means that no cause is found.
  void ask(uint64_t peer, const std::string& address) noexcept;
  // Waits until the thread has ended or is only looking up a name.
  void stop() noexcept;

 private:
  struct Shared {
    Self self;
    Tell tell;
    std::atomic<bool> stopped{false};
    std::mutex mutex;  // protects the following
    std::condition_variable changed;
    std::deque<std::pair<uint64_t, std::string>> waiting;  // the first one is being probed
    bool has_thread = false;
    bool looks_up = false;  // the thread is looking up a name
  };
  static void work(const std::shared_ptr<Shared>& shared) noexcept;
  static bool connect(Shared& shared, const std::string& address, Dialled& connection, std::string* cause);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace dist::grpc_link
