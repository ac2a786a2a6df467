// SPDX-License-Identifier: Apache-2.0
// Finds out why a peer cannot be reached. gRPC reports a failed TLS handshake as "Socket closed" on the
// connecting side and not at all on the listening side. So a worker that cannot reach a peer, or that a peer
// does not reach, makes one connection to the address at which that peer listens and examines both
// certificates. The result is only a text for messages; only a token and the handshake are sent on that
// connection.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "core/base/os/dial.hpp"
#include "core/net/grpc/certificates.hpp"

namespace dist::grpc_link {

// The protocol of a peer, determined from the first bytes that it sends.
enum class Speaks { kTls, kPlainText, kOther };
Speaks first_bytes_tell(std::span<const std::byte> bytes) noexcept;

// The process that probes.
struct Self {
  Credentials credentials;  // empty without TLS
  std::string host;         // of its address; empty if it has no address
  std::string secret;
  int number = -1;  // of the worker, for the token; -1: not a worker, like its peers
};

// Presents a token to this peer at `host`, makes a TLS handshake, and returns why the peer and this process
// cannot communicate. Empty if the reason is not known. `early` receives what is known while the peer has not
// answered yet.
std::string probe(const Self& self, uint64_t peer, const std::string& host, Dialled& connection,
                  const std::function<void(const char*)>& early);

// Probes peers on a few threads of its own, which exist only while there are peers to probe. A peer that does
// not answer takes seconds, and the probes of others must not wait for it.
class Prober {
 public:
  // Receives the result for a peer of ask(). If a probe has to wait, `final` is false in an earlier call,
  // which receives what is known so far. Called on one of the threads, without a lock, and not after stop()
  // has returned.
  using Tell = std::function<void(uint64_t peer, const std::string& cause, bool final)>;

  Prober(Self self, Tell tell);
  ~Prober();
  // Has no effect if the peer is waiting to be probed or is being probed. Never throws: a failure only means
  // that no cause is found.
  void ask(uint64_t peer, const std::string& address) noexcept;
  // Waits until each thread has ended or is only resolving a host name.
  void stop() noexcept;

 private:
  static constexpr int kMostThreads = 4;
  struct Asked {
    uint64_t peer = 0;
    std::string address;
    bool taken = false;  // it is being probed now
  };
  struct Shared {
    Self self;
    Tell tell;
    std::atomic<bool> stopped{false};
    std::mutex mutex;  // protects the following
    std::condition_variable changed;
    std::list<Asked> asked;
    int threads = 0;
    int looking_up = 0;  // the number of threads that are resolving a host name
  };
  static void work(const std::shared_ptr<Shared>& shared) noexcept;
  static std::string examine(Shared& shared, const Asked& asked);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace dist::grpc_link
