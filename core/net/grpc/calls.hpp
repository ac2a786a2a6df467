// SPDX-License-Identifier: Apache-2.0
// Calls: the CallNetwork over gRPC. A server listens. It has a line for each connected client, and a line for
// each server that it calls itself. A line has at most one link at a time, which begins with the handshake of
// hello.hpp and then carries the frames of call_frames.hpp.
//
// Lock order: the lock of a line, the lock of the list of lines, the locks of LinkOwner, the lock of a link
// or a queue. None of them is held while a link is started, flushed or ended, or while the handler is called.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/memory.hpp"
#include "core/net/calls.hpp"
#include "core/net/grpc/call_frames.hpp"
#include "core/net/grpc/link_owner.hpp"
#include "core/net/grpc/reasons.hpp"

namespace dist::grpc_link {

class Calls final : public CallNetwork, public LinkOwner {
 public:
  // If `handler` is NULL, this network does not listen.
  Calls(Memory& memory, Config config, const CallLimits& limits, CallHandler* handler);
  ~Calls();

  // Returns an empty string, or the reason for a failure.
  std::string start();
  // All channels must have been closed. Sends the responses that have been given first, for at most the
  // lease.
  void stop() noexcept;

  int port() const noexcept override { return LinkOwner::port(); }
  CallChannel* open(const char* address) noexcept override;
  void close(CallChannel* channel) noexcept override;

  std::string took(const LinkRef& link, std::span<const grpc::Slice> message) noexcept override;
  bool more(Link& link) noexcept override;
  void over(const LinkRef& link, const std::string& why, const std::string& status) noexcept override;

 private:
  friend struct CallLine;
  class Channel;
  class Served;

  // ---- call_handshake.cpp: how links begin ----
  void say_hello(Link& link);
  std::string took_answer(Link& link, std::span<const std::byte> message) noexcept;
  std::string took_admission(Link& link, std::span<const std::byte> message) noexcept;
  std::string why_not(const Hello& hello) const;
  std::string took_hello(Link& link, std::span<const std::byte> message) noexcept;
  std::string took_proof(const LinkRef& link, std::span<const std::byte> message) noexcept;

  // ---- call_channel.cpp: the client ----
  void connect(const std::shared_ptr<CallLine>& line) noexcept;
  void answered(CallLine& line, CallReceiver::Event& event) noexcept;
  void out_over(const std::shared_ptr<CallLine>& line, const LinkRef& link, const std::string& why,
                const std::string& status) noexcept;
  // Minimum time between two probes of a server.
  static constexpr int64_t kProbeAgainNs = 1'000'000'000;
  void probed(uint64_t number, const std::string& cause, bool final) noexcept;
  void fail_all(CallLine& line, bool begun_alone, dist_status code, const std::string& text) noexcept;

  // ---- calls.cpp: the server ----
  void served(const std::shared_ptr<CallLine>& line, std::vector<CallReceiver::Event>& events) noexcept;
  void refuse(CallLine& line, uint64_t id, dist_status code, const std::string& text) noexcept;
  void in_over(const std::shared_ptr<CallLine>& line) noexcept;

  int64_t look(const Turn& turn) noexcept override;
  void silent(CallLine& line, Link& link) noexcept;

  Memory& memory_;
  const CallLimits limits_;
  const Ref<MessagePool> pool_;
  CallHandler* const handler_;
  Identity incarnation_{};

  std::mutex mutex_;
  std::vector<std::shared_ptr<CallLine>> lines_;
  uint64_t last_line_ = 0;
};

// The calls with one client or one server.
struct CallLine {
  CallLine(Memory& memory, bool served, const CallLimits& limits, MessagePool* with)
      : serves(served), pool(Ref<MessagePool>::share(with)), receiver(memory, served, limits, with) {}

  const bool serves;
  const Ref<MessagePool> pool;
  mutable std::mutex mutex;
  FrameQueue queue;
  CallSender sender;
  CallReceiver receiver;
  LinkRef link;
  std::atomic<int64_t> heard_ns{0};

  // ---- Only on the server ----
  std::unordered_map<uint64_t, Ref<IncomingCall>> calls;  // calls that have not been answered
  std::string client_host;                                // the IP address of the client

  // ---- Only on the client ----
  std::string name;  // "server 10.0.0.7:2222"
  std::string address;
  Route route;
  bool connecting = false;
  std::unordered_map<uint64_t, OutgoingCall*> waiting;
  std::string why;          // why the server cannot be reached so far
  Reasons failed_attempts;  // results of the attempts to reach it since it was last reached
  Reasons causes;           // causes of these failures, as probes have found them
  std::string early_cause;  // what a probe that is waiting for the server knows so far; empty: nothing
  int64_t probe_ns = 0;     // when it may be probed again
  uint64_t number = 0;
  uint64_t last_id = 0;
  int64_t retry_ns = 0;   // when to try again; 0: not scheduled
  bool silent = false;    // the link was ended because its peer was silent
  bool rejected = false;  // the server has proven that it knows the secret, and has rejected this client
  bool closed = false;
};

}  // namespace dist::grpc_link
