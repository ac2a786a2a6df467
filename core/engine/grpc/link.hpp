// SPDX-License-Identifier: Apache-2.0
// Link: one gRPC stream between two workers, seen from either side. Reads are passed on one at a time. At
// most one write is in flight; it carries everything that the queue has collected meanwhile.
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

#include "core/engine/grpc/carrier.hpp"
#include "core/engine/grpc/frame.hpp"
#include "core/engine/grpc/hand_over.hpp"
#include "core/engine/grpc/hello.hpp"
#include "core/engine/grpc/queue.hpp"

namespace dist::grpc_link {

struct CallLine;

inline constexpr char kMethod[] = "/dist.Workers/Link";

// Who is at a link's end here. None of it is called under a lock of the link's.
class LinkUser {
 public:
  // A message has come. The answer: why the link must end, or "".
  virtual std::string took(const LinkRef& link, std::span<const grpc::Slice> message) noexcept = 0;
  // Its queue is empty. Whether something has been put there.
  virtual bool more(Link& link) noexcept = 0;
  // The last call. `why`: what who ended it here has said; else "", and `status` is what gRPC says.
  virtual void over(const LinkRef& link, const std::string& why, const std::string& status) noexcept = 0;
  // The link is no more: it has let go all of gRPC's that it had.
  virtual void destroyed() noexcept = 0;

 protected:
  ~LinkUser() = default;
};

class Link : public std::enable_shared_from_this<Link> {
 public:
  // What is waited for.
  enum class Stage { kHello, kAnswer, kProof, kVerdict, kMeeting, kOpen };

  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // A message of the beginning, which is not of frames.
  void put_raw(const std::byte* data, std::size_t bytes);
  // Frames flow, out of this queue, from here on.
  void open(FrameQueue& queue) noexcept;
  // The same by its carrier; what is put raw goes by the stream all the same.
  void open_carried() noexcept;
  bool opened() const noexcept { return open_; }
  // Whoever had this place before has been taken out of it. False: the link ends, and takes none.
  bool change_carrier(CarrierRef* carrier) noexcept;
  CarrierRef carrier() const noexcept;
  bool ending() const noexcept;
  void flush() noexcept;
  // Cuts it, and its carrier. over() comes soon after.
  void end(const std::string& why) noexcept;
  // The same once everything that was put has gone; of servers.
  void end_after_writes(const std::string& why) noexcept;

  // ---- Of its user ----

  bool outgoing = false;  // this side has made it
  Purpose purpose = Purpose::kData;
  int peer = -1;                            // worker; of an unproven one that has come in: none
  bool refused = false;                     // by either side
  std::atomic<Stage> stage{Stage::kHello};  // of reading: changed by took() alone
  int64_t born_ns = 0;
  std::byte hello[Hello::kBytes] = {};
  std::byte answer[Answer::kBytes] = {};
  FrameReader reader;
  std::byte control_data[kReasonTextBytes + 1] = {};
  std::string peer_names;          // by its certificate, each with a line end
  std::shared_ptr<CallLine> line;  // of calls
  // Of its carriers.
  std::atomic<uint32_t> attempt{0};
  std::byte meets[2][Meet::kBytes] = {};  // the sender's, the receiver's
  std::atomic<bool> met{false};           // the one of this attempt has been started
  std::atomic<bool> carrying{false};
  std::atomic<bool> stream_over{false};

 protected:
  explicit Link(LinkUser& user) noexcept : user_(user) {}
  virtual void start_write(const grpc::ByteBuffer* message) noexcept = 0;
  virtual void start_read(grpc::ByteBuffer* message) noexcept = 0;
  // Makes what is under way fail.
  virtual void cut() noexcept = 0;
  // Nothing will be written any more, and no write is under way. Once.
  virtual void writes_over() noexcept = 0;

  void read_done(bool ok) noexcept;
  void write_done(bool ok) noexcept;
  void done(const std::string& status) noexcept;
  void no_more_writes() noexcept;

  LinkUser& user_;
  grpc::ByteBuffer reading_;
  LinkRef self_;  // until gRPC is done with it

 private:
  mutable std::mutex mutex_;
  CarrierRef carrier_;
  bool carried_ = false;
  std::deque<std::vector<std::byte>> raw_;
  FrameQueue* queue_ = nullptr;
  std::atomic<bool> open_{false};
  bool writing_ = false;
  bool closing_ = false;  // nothing more is to be written
  bool drain_ = false;    // but for what is there
  bool told_ = false;     // writes_over()
  int cutting_ = 0;       // how many are at it
  std::string why_;
  grpc::ByteBuffer written_;
  std::vector<grpc::Slice> slices_;
};

class ClientLink final : public Link, private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  ClientLink(LinkUser& user, std::shared_ptr<grpc::Channel> channel);
  ~ClientLink() override;
  // Before anybody else knows of it: it may then be ended at any time, and is started all the same.
  void prepare();
  // Its first message is there.
  void start();

 private:
  void start_write(const grpc::ByteBuffer* message) noexcept override {
    give_to_grpc(this);
    StartWrite(message);
  }
  void start_read(grpc::ByteBuffer* message) noexcept override {
    give_to_grpc(this);
    StartRead(message);
  }
  void cut() noexcept override { context_->TryCancel(); }
  void writes_over() noexcept override {
    give_to_grpc(this);
    RemoveHold();
  }
  void OnReadDone(bool ok) override {
    take_from_grpc(this);
    read_done(ok);
  }
  void OnWriteDone(bool ok) override {
    take_from_grpc(this);
    write_done(ok);
  }
  void OnDone(const grpc::Status& status) override {
    take_from_grpc(this);
    done(status.error_message());
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::ClientContext> context_ = std::make_unique<grpc::ClientContext>();
};

// ---- How a link begins, for whoever has links ----

template <class Message>
void put(Link& link, const Message& message) {
  std::byte bytes[Message::kBytes];
  message.write(bytes);
  link.put_raw(bytes, sizeof bytes);
}
// A message of the beginning, in one piece, which lies in `to`. They have fixed sizes: false for a larger one than any.
inline constexpr std::size_t kMostBeginningBytes = Hello::kBytes + Answer::kBytes;
bool gather(std::span<const grpc::Slice> message, std::byte (&to)[kMostBeginningBytes],
            std::span<const std::byte>* out) noexcept;
// Within which it must be proven: as long as a process may stand still for all others, in bounds.
int64_t prove_within_ns(int64_t lease_ns) noexcept;
// NULL: it is not in the list.
LinkRef take_out(std::vector<LinkRef>& list, const Link& link) noexcept;

// Says no, and ends.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(grpc::Status status) { Finish(std::move(status)); }
  void OnDone() override { delete this; }
};

class ServerLink final : public Link, public grpc::ServerGenericBidiReactor {
 public:
  ServerLink(LinkUser& user, grpc::GenericCallbackServerContext* context) : Link(user), context_(context) {}
  ~ServerLink() override { user_.destroyed(); }
  void start();

 private:
  void start_write(const grpc::ByteBuffer* message) noexcept override {
    give_to_grpc(this);
    StartWrite(message);
  }
  void start_read(grpc::ByteBuffer* message) noexcept override {
    give_to_grpc(this);
    StartRead(message);
  }
  void cut() noexcept override { context_->TryCancel(); }
  void writes_over() noexcept override {
    give_to_grpc(this);
    Finish(grpc::Status::OK);
  }
  void OnReadDone(bool ok) override {
    take_from_grpc(this);
    read_done(ok);
  }
  void OnWriteDone(bool ok) override {
    take_from_grpc(this);
    write_done(ok);
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
