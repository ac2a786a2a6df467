// SPDX-License-Identifier: Apache-2.0
// Link: one gRPC stream between two workers, as seen from either side. It passes messages to its owner one at
// a time. At most one write is in flight; the next one takes everything that has been queued meanwhile.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/net/grpc/carrier.hpp"
#include "core/net/grpc/config.hpp"
#include "core/net/grpc/frame.hpp"
#include "core/net/grpc/hand_over.hpp"
#include "core/net/grpc/hello.hpp"
#include "core/net/grpc/queue.hpp"
#include "core/net/grpc/statuses.hpp"

namespace dist::grpc_link {

struct CallLine;

inline constexpr char kMethod[] = "/dist.Workers/Link";

// The owner of a link's end. None of these functions is called under a lock of the link.
class LinkUser {
 public:
  // A message has arrived. Returns an empty string, or the reason for which the link must end.
  virtual std::string took(const LinkRef& link, std::span<const grpc::Slice> message) noexcept = 0;
  // The link's queue is empty. Returns whether something has been added to it.
  virtual bool more(Link& link) noexcept = 0;
  // The last call. `why` is the reason given to end(). If it is empty, `status` is gRPC's text.
  virtual void over(const LinkRef& link, const std::string& why, const std::string& status) noexcept = 0;
  // The link, with its gRPC objects and its carrier, has been destroyed. The owner may now free everything
  // that they used.
  virtual void destroyed() noexcept = 0;

 protected:
  ~LinkUser() = default;
};

// The first base of Link, so it is destroyed last and notifies the owner after everything else has been
// destroyed.
class OwnedLink {
 public:
  OwnedLink(const OwnedLink&) = delete;
  OwnedLink& operator=(const OwnedLink&) = delete;

 protected:
  explicit OwnedLink(LinkUser& user) noexcept : user_(user) {}
  ~OwnedLink() { user_.destroyed(); }

  LinkUser& user_;
};

class Link : private OwnedLink, public std::enable_shared_from_this<Link> {
 public:
  // The message that the link is waiting for.
  enum class Stage { kHello, kAnswer, kProof, kAdmission, kMeeting, kOpen };

  virtual ~Link() = default;

  // Sends a message of the handshake, which does not consist of frames.
  void put_raw(const std::byte* data, std::size_t bytes);
  // From here on, the link sends the frames in this queue. In stage kAdmission it keeps them until the peer
  // has admitted it.
  void open(FrameQueue& queue) noexcept;
  // From here on, the link's carrier sends the frames. put_raw() still uses the stream.
  void open_carried() noexcept;
  bool opened() const noexcept { return open_; }
  // Sets the link's carrier. The previous one must have been removed. Returns false if the link is ending and
  // accepts none.
  bool change_carrier(CarrierRef* carrier) noexcept;
  CarrierRef carrier() const noexcept;
  bool ending() const noexcept;
  // The IP address of the peer, once the link is connected.
  virtual std::string peer_host() const = 0;
  void flush() noexcept;
  // Ends the link and its carrier. over() follows soon.
  void end(const std::string& why) noexcept;
  // For servers: ends the link after everything that was put has been sent.
  void end_after_writes(const std::string& why) noexcept;

  // ---- For the owner ----

  bool outgoing = false;  // this side has created the link
  Purpose purpose = Purpose::kData;
  int peer = -1;         // worker number; -1 for an incoming link that is not authenticated
  bool refused = false;  // by either side
  std::atomic<Stage> stage{Stage::kHello};  // of the handshake; only took() changes it
  int64_t born_ns = 0;
  std::byte hello[Hello::kBytes] = {};
  std::byte answer[Answer::kBytes] = {};
  FrameReader reader;
  std::vector<std::byte> control_data;  // of the control frame that is arriving
  std::string host;                     // if this side has created it: the peer's host name,
  std::vector<std::string> hosts;       // and the IP addresses that it tries, in ascending order
  std::string certificate;              // the peer's, in PEM; on the server side only
  std::string connection;               // of an incoming link: its peer, for Listener::proven()
  std::shared_ptr<CallLine> line;       // if it carries calls
  // ---- For carriers ----
  std::atomic<uint32_t> attempt{0};
  std::byte meets[2][Meet::kBytes] = {};  // the sender's, the receiver's
  std::atomic<bool> met{false};           // the carrier of this attempt has been started
  std::atomic<bool> carrying{false};
  std::atomic<bool> stream_over{false};

 protected:
  explicit Link(LinkUser& user) noexcept : OwnedLink(user) {}
  virtual void start_write(const grpc::ByteBuffer* message) noexcept = 0;
  virtual void start_read(grpc::ByteBuffer* message) noexcept = 0;
  // Makes the operations in flight fail.
  virtual void cut() noexcept = 0;
  // Called once. Nothing more will be written, and no write is in flight.
  virtual void writes_over() noexcept = 0;

  void read_done(bool ok) noexcept;
  void write_done(bool ok) noexcept;
  void done(const std::string& status) noexcept;
  void no_more_writes() noexcept;

  grpc::ByteBuffer reading_;
  LinkRef self_;  // keeps the link alive until gRPC no longer uses it

 private:
  mutable std::mutex mutex_;
  CarrierRef carrier_;
  bool carried_ = false;
  std::deque<std::vector<std::byte>> raw_;
  FrameQueue* queue_ = nullptr;
  std::atomic<bool> open_{false};
  bool writing_ = false;
  bool closing_ = false;  // nothing more will be written
  bool drain_ = false;    // except what is already queued
  bool told_ = false;     // writes_over() has been called
  int cutting_ = 0;       // number of threads inside cut()
  std::string why_;
  grpc::ByteBuffer written_;
  std::vector<grpc::Slice> slices_;
};

// ---- The beginning of links, for their owners ----

template <class Message>
void put(Link& link, const Message& message) {
  std::byte bytes[Message::kBytes];
  message.write(bytes);
  link.put_raw(bytes, sizeof bytes);
}
// Copies a message of the handshake into `to` as one block. Returns false if it is longer than any message of
// the handshake.
inline constexpr std::size_t kMostBeginningBytes = Hello::kBytes + Answer::kBytes;
bool gather(std::span<const grpc::Slice> message, std::byte (&to)[kMostBeginningBytes],
            std::span<const std::byte>* out) noexcept;
// Ends a client's link because the server's certificate is wrong. The client sends the reason in place of its
// proof, so that the server can report it, too. `why` continues the words "its certificate". Returns "".
std::string reject_server(Link& link, const std::string& why) noexcept;
// On the server: whether the client has sent such a reason.
bool is_rejection(std::span<const std::byte> message, Admission* out) noexcept;
// Time limit for the handshake: as long as peers tolerate a process that does not run, within bounds.
int64_t prove_within_ns(int64_t lease_ns) noexcept;

// Refuses an incoming stream and ends it.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(grpc::Status status) { Finish(std::move(status)); }
  void OnDone() override { delete this; }
};

// A link, and the object through which gRPC reports its operations.
template <class Reactor>
class StreamLink : public Link, public Reactor {
 protected:
  using Link::Link;

  void start_write(const grpc::ByteBuffer* message) noexcept final {
    give_to_grpc(this);
    this->StartWrite(message);
  }
  void start_read(grpc::ByteBuffer* message) noexcept final {
    give_to_grpc(this);
    this->StartRead(message);
  }
  void OnReadDone(bool ok) final {
    take_from_grpc(this);
    read_done(ok);
  }
  void OnWriteDone(bool ok) final {
    take_from_grpc(this);
    write_done(ok);
  }
};

class ClientLink final : public StreamLink<grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
 public:
  ClientLink(LinkUser& user, std::shared_ptr<grpc::Channel> channel)
      : StreamLink(user), channel_(std::move(channel)) {
    outgoing = true;
  }
  // The server's certificate in PEM, available once a message has arrived.
  std::string server_certificate() const;
  // Call this before the link becomes visible to other threads. From then on it may be ended at any time, but
  // must be started in any case.
  void prepare();
  // Call this when the first message is in the queue.
  void start();
  std::string peer_host() const override { return host_of_peer(context_->peer()); }

 private:
  void cut() noexcept override { context_->TryCancel(); }
  void writes_over() noexcept override {
    give_to_grpc(this);
    RemoveHold();
  }
  void OnDone(const grpc::Status& status) override {
    take_from_grpc(this);
    done(explain_status(status.error_message()));
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::ClientContext> context_ = std::make_unique<grpc::ClientContext>();
};

class ServerLink final : public StreamLink<grpc::ServerGenericBidiReactor> {
 public:
  ServerLink(LinkUser& user, grpc::GenericCallbackServerContext* context)
      : StreamLink(user), context_(context) {}
  void start();
  std::string peer_host() const override { return host_of_peer(context_->peer()); }

 private:
  void cut() noexcept override { context_->TryCancel(); }
  void writes_over() noexcept override {
    give_to_grpc(this);
    Finish(grpc::Status::OK);
  }
  void OnCancel() override {
    take_from_grpc(this);
    no_more_writes();
  }
  void OnDone() override {
    take_from_grpc(this);
    done("");
  }

  grpc::GenericCallbackServerContext* const context_;
};

}  // namespace dist::grpc_link
