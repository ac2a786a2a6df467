// SPDX-License-Identifier: Apache-2.0
// GuardedPair: a Gloo tcp connection that never terminates the process, and that moves messages directly
// between the socket and the caller's memory.
//
// If a peer resets a new connection or sends an unexpected message, Gloo throws an exception on its own
// thread, which would terminate the process. GuardedPair catches it and fails the connection. It does not use
// Gloo's buffers, because an operation on a buffer cannot be cancelled and has no time limit. Instead,
// write_now() writes a message as Gloo does, with the caller's data, and the data of an arriving message stay
// in the socket until the caller calls read_now().
//
// Invariant: only Gloo's thread changes the state of a connection, and each worker has one such thread. So a
// thread that holds a connection's lock never waits for Gloo's thread.
#pragma once

#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/pair.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/os/file.hpp"

namespace dist::gloo_link {

class ConnectionUser {
 public:
  // Called on Gloo's thread without any of Gloo's locks held: the connection is established, or read_now() or
  // write_now() may move more.
  virtual void ready() noexcept = 0;
  // Called on Gloo's thread, under the connection's lock: the connection is closed.
  virtual void closed() noexcept = 0;

 protected:
  ~ConnectionUser() = default;
};

// Gloo's thread for one worker, and its listening address.
class GuardedDevice {
 public:
  // Throws Gloo's exceptions and std::bad_alloc.
  explicit GuardedDevice(const std::string& host);
  const std::shared_ptr<gloo::transport::tcp::Device>& get() const noexcept { return device_; }

  // A task that runs on Gloo's thread.
  class Job {
   public:
    virtual ~Job() = default;
    virtual void run() noexcept = 0;

   private:
    friend class GuardedDevice;
    Job* next_ = nullptr;
    bool posted_ = false;
  };
  // Runs `job` on Gloo's thread soon. If it is posted again before it has run, it runs only once. Does not
  // wait.
  void post(Job& job) noexcept;
  // Runs `call` on Gloo's thread, waits for it, and passes on its exceptions. If the caller is another
  // thread, Gloo's thread has stopped using everything that was unregistered earlier when this returns.
  void run(const std::function<void()>& call);

 private:
  class Turns final : public gloo::transport::tcp::Handler {
   public:
    void handleEvents(int events) override;
    const Descriptor readable = always_readable();
    std::atomic<std::thread::id> thread;  // the id of Gloo's thread, once it has run
    std::mutex mutex;
    std::condition_variable turned;
    uint64_t count = 0;
    Job* posted = nullptr;
  };
  void turn(std::unique_lock<std::mutex>& lock);
  Turns turns_;
  std::shared_ptr<gloo::transport::tcp::Device> device_;
};

class GuardedPair final : public gloo::transport::tcp::Pair {
 public:
  // Listens. The connection fails if the peer's system acknowledges nothing for `unacknowledged`. Must be
  // called on Gloo's thread.
  GuardedPair(gloo::transport::tcp::Context& context, gloo::transport::tcp::Device& device, int rank,
              std::chrono::milliseconds unacknowledged, ConnectionUser& user)
      : Pair(&context, &device, rank, std::chrono::milliseconds(0)),
        unacknowledged_(unacknowledged),
        user_(user) {}

  // These must be called on Gloo's thread. begin() connects to the peer, or waits for it, as Gloo does, but
  // does not block. It throws Gloo's exceptions.
  void begin(const std::vector<char>& address);
  void end() noexcept;
  bool ended() noexcept;

  // Move as many bytes as possible without waiting. Return their number, 0 if none can be moved now, or -1 if
  // the connection is closed.
  std::ptrdiff_t write_now(std::span<const std::span<const std::byte>> parts) noexcept;
  std::ptrdiff_t read_now(std::span<const std::span<std::byte>> parts) noexcept;

  void handleEvents(int events) override;

 protected:
  bool read() override;
  void waitUntilConnected(std::unique_lock<std::mutex>&, bool) override {}
  void changeState(state next) noexcept override;

 private:
  bool has_message() noexcept;
  void handle(int events);
  bool await_room(bool awaits) noexcept;
  void fail(const std::exception_ptr& why) noexcept;

  const std::chrono::milliseconds unacknowledged_;
  ConnectionUser& user_;
  bool begun_ = false;
  bool awaits_room_ = false;  // user_.ready() is called when the socket is writable
  bool writable_ = false;     // the socket is writable, and nothing has been written since
  // The message that is being written, and how many bytes of its head and data are left.
  gloo::transport::tcp::Op going_;
  std::size_t going_left_ = 0;
};

}  // namespace dist::gloo_link
