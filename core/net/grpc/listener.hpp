// SPDX-License-Identifier: Apache-2.0
// Listener: accepts the connections of a process, in place of gRPC, and hands them over in two stages.
//
// A *newcomer* has not presented a token (connect_token.hpp) yet. It costs a descriptor and 1 KiB, and gRPC
// does not know of it. It is closed after 5 s. If there are too many newcomers, the oldest one is closed.
//
// An *unproven* connection has presented a token and belongs to gRPC, but none of its links has proven that
// it knows the secret (hello.hpp). The listener keeps a second descriptor of it. It shuts the connection down
// if the peer sends more than 64 KiB or exceeds the time limit of a handshake. After proven(), the listener
// forgets the connection.
//
// A process without free descriptors cannot accept a waiting connection, and the thread would find that
// connection again and again. The listener therefore holds a spare descriptor. It closes the spare one,
// accepts and closes the connection, whose peer tries again, and opens another spare.
#pragma once

#include <grpcpp/server_builder.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/os/event.hpp"
#include "core/base/os/tcp.hpp"
#include "core/base/os/thread.hpp"
#include "core/net/grpc/config.hpp"
#include "core/net/grpc/connect_token.hpp"

namespace dist::grpc_link {

class Listener {
 public:
  static constexpr uint64_t kMostUnprovenBytes = 64 << 10;

  // Both functions are called on the listener's thread, without a lock. Their argument is the worker that the
  // peer claims to be, or -1. `wrong_secret`: a peer has presented a token made with another secret.
  // `ended_unproven`: a connection with a token has ended and was not proven.
  explicit Listener(
      std::function<void(int)> wrong_secret, std::function<void(int)> ended_unproven = [](int) {})
      : wrong_secret_(std::move(wrong_secret)), ended_unproven_(std::move(ended_unproven)) {}
  ~Listener() { stop(); }

  // Listens on these addresses (listening_addresses()), or through Config::sockets if there are any, and
  // registers with the builder. Connections wait until start(). Returns an empty string, or the error
  // message.
  std::string listen(const Config& config, const std::vector<std::string>& addresses,
                     grpc::ServerBuilder& builder);
  // Call this when the server has been started. Returns false if the system has no more threads or
  // descriptors.
  bool start();
  // Call this before the server is shut down. Further calls have no effect.
  void stop() noexcept;

  int port() const noexcept { return listening_.port; }
  // A link of the connection from this peer (grpc::ServerContext::peer()) has proven that it knows the
  // secret.
  void proven(const std::string& peer) noexcept;
  // The number of connections that belong to gRPC and have not been proven.
  std::size_t num_unproven() noexcept;

 private:
  struct Newcomer {
    Descriptor socket;
    std::string peer;
    int64_t since_ns = 0;
    bool has_token = false;  // it waits until another connection has been proven or has ended
    int from = -1;           // the worker that it claims to be
    std::size_t used = 0;
    std::array<char, kMostRequestBytes> bytes{};
  };
  struct Unproven {
    Descriptor socket;
    std::string peer;
    int from = -1;
    int64_t since_ns = 0;
  };

  std::string open(const Config& config, const std::vector<std::string>& addresses);
  static void* main(void* self);
  void run() noexcept;
  void turn();
  bool has_room(int64_t now) const noexcept;
  void accept_some(const Descriptor& listening, int64_t now);
  bool read(Newcomer& newcomer);
  bool hand_over(Newcomer& newcomer, int64_t now);
  void watch(int64_t now);

  const std::function<void(int)> wrong_secret_;
  const std::function<void(int)> ended_unproven_;
  std::string secret_;
  int64_t prove_within_ns_ = 0;
  int64_t token_within_ns_ = 0;
  std::size_t most_newcomers_ = 0;
  std::size_t most_unproven_ = 0;
  Listening listening_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;

  // ---- Used only by the thread ----
  Descriptor spare_;
  int64_t accept_again_ns_ = 0;                       // after the system had no descriptors
  int64_t due_ns_ = 0;                                // when the thread should run next
  std::vector<std::unique_ptr<Newcomer>> newcomers_;  // the oldest first

  std::mutex mutex_;
  std::vector<Unproven> unproven_;

  std::atomic<bool> stopping_{false};
  EventDescriptor wakes_;
  Thread thread_;
};

}  // namespace dist::grpc_link
