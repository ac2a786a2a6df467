// SPDX-License-Identifier: Apache-2.0
// GuardedContext: a two-rank context of Gloo's tcp transport that never terminates the process, and that
// notifies its user of arrivals.
//
// Gloo throws on its own thread, where nobody catches the exception, if a peer resets a new connection or
// sends something that Gloo does not expect. It also writes on the calling thread, which raises SIGPIPE if
// the connection is gone. Here an exception fails the connection, so that waits on it throw, and SIGPIPE is
// suppressed.
//
// Invariant: one Gloo thread serves all connections of a worker, and closing a connection waits for that
// thread while holding the connection's lock. Therefore a callback on that thread never takes a connection
// lock that a closing thread may hold, and closes no connection except its own.
#pragma once

#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/os/file.hpp"
#include "core/engine/grpc/piece.hpp"

namespace dist::grpc_link {

class ConnectionUser {
 public:
  // On Gloo's thread, under the connection's lock: something has arrived completely, possibly a notice of
  // Gloo's own.
  virtual void one_came() noexcept = 0;
  // On Gloo's thread, after one_came(), without a lock of Gloo.
  virtual void came() noexcept = 0;
  // Any thread, under the connection's lock: the connection is closed. came() may be called once more.
  virtual void closed() noexcept = 0;
  // On Gloo's thread, under the connection's lock: a piece begins to arrive. Returns false to end the
  // connection.
  virtual bool begin_apart(const Piece& piece) noexcept = 0;
  // Likewise: moves data from the socket, as in CarrierUser.
  virtual std::ptrdiff_t receive_apart(int socket, std::size_t most) noexcept = 0;
  // Likewise, to the socket; also on the thread that calls GuardedContext::send_apart().
  virtual std::ptrdiff_t send_apart(int socket, std::span<const std::byte> before) noexcept = 0;

 protected:
  ~ConnectionUser() = default;
};

// Gloo's thread for one worker, and its listening address.
class GuardedDevice {
 public:
  // Throws Gloo's exceptions and std::bad_alloc.
  explicit GuardedDevice(const std::string& host);
  const std::shared_ptr<gloo::transport::tcp::Device>& get() const noexcept { return device_; }
  // Waits until Gloo's thread no longer uses anything that has been unregistered. Gloo itself waits for that
  // with a condition variable without a predicate, which may wake spuriously, or not at all if that thread
  // itself has closed the connection. Must not be called on that thread.
  void await_turn() noexcept;
  // Runs `job` on Gloo's thread, waits for it, and throws what it throws. Must not be called on that thread.
  void run(const std::function<void()>& job);

 private:
  class Turns final : public gloo::transport::tcp::Handler {
   public:
    void handleEvents(int events) override;
    // Runs `job` in the next turn, and waits for the end of that turn.
    void await_next(gloo::transport::tcp::Device& device, const std::function<void()>& job);
    const Descriptor readable = always_readable();

   private:
    std::mutex mutex_;
    std::condition_variable turned_;
    uint64_t count_ = 0;
    std::vector<const std::function<void()>*> jobs_;
  };
  Turns turns_;
  std::shared_ptr<gloo::transport::tcp::Device> device_;
};

class GuardedContext final : public gloo::transport::tcp::Context {
 public:
  // `user` is notified of arrivals until stop(). NULL: nobody is.
  GuardedContext(std::shared_ptr<GuardedDevice> device, int me, ConnectionUser* user)
      : Context(device->get(), me, 2), device_(std::move(device)), user_(user) {}
  // The connection fails if the peer's system acknowledges nothing for this long. 0: it does not. Call it before
  // createPair().
  void limit_unacknowledged(std::chrono::milliseconds limit) noexcept { unacknowledged_ = limit; }
  ~GuardedContext() override { stop(); }
  // Throws Gloo's exceptions.
  std::unique_ptr<gloo::transport::Pair>& createPair(int other) override;
  gloo::transport::Pair& connection() { return *getPair(1 - rank); }
  // Sends a piece, in order with other messages; the users at both ends move its data. Throws Gloo's
  // exceptions.
  void send_apart(const Piece& piece);
  // Makes a thread that waits in connect() throw soon. Any thread. Does not wait.
  void give_up() noexcept;
  // Closes the connection as its failure does, and waits until Gloo's thread no longer uses it. Must not be
  // called on that thread, nor with a lock that the user takes, nor while another thread sends.
  void stop() noexcept;

 private:
  const std::shared_ptr<GuardedDevice> device_;
  ConnectionUser* const user_;
  std::chrono::milliseconds unacknowledged_{0};
};

}  // namespace dist::grpc_link
